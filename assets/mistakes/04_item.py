# title: No gradient: through item() or numpy()
# happens: w.grad is None, and nothing is raised.
# why: item() gives a Python number, and Python keeps no graph. The same holds for numpy() and
#   tolist().
# root: loss
# node: b
# look: The graph has one leaf, b: nothing of w is in it.
# missing: w

import torch

# %% wrong
w = torch.tensor(2.0, requires_grad=True)
b = torch.tensor(1.0, requires_grad=True)
loss = b * (w ** 2).item()
loss.backward()

# %% right
w = torch.tensor(2.0, requires_grad=True)
b = torch.tensor(1.0, requires_grad=True)
loss = b * w ** 2
loss.backward()
