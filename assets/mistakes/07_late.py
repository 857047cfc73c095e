# title: No gradient: requires_grad set too late
# happens: w.grad is None, and nothing is raised.
# why: The graph is recorded as the operations run. When w was multiplied it did not require grad,
#   and what is recorded later does not reach back.
# root: loss
# node: MulBackward0
# look: The way to w is cut at MulBackward0, though w requires grad now.
# missing: w

import torch

# %% wrong
w = torch.tensor([1.0, 2.0])
b = torch.tensor([1.0, 1.0], requires_grad=True)
loss = (w * b).sum()
w.requires_grad_()
loss.backward()

# %% right
w = torch.tensor([1.0, 2.0]).requires_grad_()
b = torch.tensor([1.0, 1.0], requires_grad=True)
loss = (w * b).sum()
loss.backward()
