# title: No gradient: a detached path
# happens: w.grad is None, and nothing is raised.
# why: detach() returns the same numbers without a graph. For autograd h is plain data, so no edge
#   leads from loss to w.
# root: loss
# node: MulBackward0
# look: The edge from MulBackward0 to h ends in a cut.
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
