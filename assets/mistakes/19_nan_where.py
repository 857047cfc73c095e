# title: NaN from the branch not taken
# happens: x.grad[0] is NaN, though y is finite.
# why: where computes both branches. The derivative of sqrt at 0 is infinite, and backward
#   multiplies it by the zero gradient of the branch not taken: 0 · inf = NaN.
# root: y
# node: SqrtBackward0
# look: Give a gradient of ones in Options, and stop where a NaN is made: at SqrtBackward0.

import torch

# %% wrong
x = torch.tensor([0.0, 4.0], requires_grad=True)
y = torch.where(x > 0, x.sqrt(), torch.zeros_like(x))
y.sum().backward(retain_graph=True)  # so that the graph can be stepped through

# %% right
x = torch.tensor([0.0, 4.0], requires_grad=True)
safe = torch.where(x > 0, x, torch.ones_like(x))
y = torch.where(x > 0, safe.sqrt(), torch.zeros_like(x))
y.sum().backward()
