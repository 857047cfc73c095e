# title: No gradient: a tensor of integers
# happens: i.grad is None; requires_grad=True for it would raise.
# why: A derivative measures the effect of a very small change, and integers have no small changes.
#   Only floating-point and complex tensors can require grad.
# root: loss
# node: MulBackward0
# look: MulBackward0 passes a gradient to w only: the edge to i is cut.
# missing: i

import torch

# %% wrong
w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
i = torch.arange(3)
loss = (w * i).sum()
loss.backward()

# %% right
w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
i = torch.arange(3.0, requires_grad=True)
loss = (w * i).sum()
loss.backward()
