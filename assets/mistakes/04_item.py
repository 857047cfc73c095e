# title: No gradient: through item() or numpy()
# happens: w.grad is None, and nothing is raised.
# why: item() returns a Python number, which has no graph. numpy() and tolist() lose the graph too.
# root: loss
# node: b
# look: The graph has only one leaf, b. w is not in it.
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
