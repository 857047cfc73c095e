# title: A leaf changed in place
# happens: The write raises: a leaf that requires grad is used in an in-place operation.
# why: Gradients end at leaves. If the write were recorded, w would be the result of an operation,
#   not a leaf.
# error: RuntimeError
# root: loss
# node: w
# look: w is a leaf: its node is an AccumulateGrad, which adds to w.grad.

import torch

# %% wrong
w = torch.ones(3, requires_grad=True)
loss = (w * 2).sum()
w += 0.1

# %% right
w = torch.ones(3, requires_grad=True)
loss = (w * 2).sum()
loss.backward()
with torch.no_grad():  # as every optimizer does
    w -= 0.1 * w.grad
