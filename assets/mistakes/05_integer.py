# title: No gradient: a tensor of integers
# happens: i.grad is None; requires_grad=True for it would raise.
# why: A derivative asks what a very small change would do, and integers have none. Only floating
#   and complex tensors can require grad.
# root: loss
# node: MulBackward0
# look: MulBackward0 passes a gradient on to w alone: the way to i is cut.
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
