# title: No gradient: not used at all
# happens: unused.grad is None, and nothing is raised. An optimizer does not change it.
# why: The loss was computed without it. In a model it is a layer that forward never calls.
# root: loss
# node: used
# look: Count the leaves: there is only one.
# missing: unused

import torch

# %% wrong
used = torch.tensor(2.0, requires_grad=True)
unused = torch.tensor(3.0, requires_grad=True)
loss = used ** 2
loss.backward()

# %% right
used = torch.tensor(2.0, requires_grad=True)
unused = torch.tensor(3.0, requires_grad=True)
loss = used ** 2 * unused
loss.backward()
