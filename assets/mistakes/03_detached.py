# title: No gradient: a detached path
# happens: w.grad is None, and nothing is raised.
# why: detach() gives the same numbers without their history: for autograd h is data, and no way
#   leads from loss to w.
# root: loss
# node: MulBackward0
# look: The way from MulBackward0 ends in a cut where h came in.
# missing: w

import torch

# %% wrong
w = torch.tensor([1.0, 2.0], requires_grad=True)
b = torch.tensor([0.5, 0.5], requires_grad=True)
h = (w * 3).detach()
loss = (h * b).sum()
loss.backward()

# %% right
w = torch.tensor([1.0, 2.0], requires_grad=True)
b = torch.tensor([0.5, 0.5], requires_grad=True)
h = w * 3
loss = (h * b).sum()
loss.backward()
