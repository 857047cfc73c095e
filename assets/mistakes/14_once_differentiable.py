# title: Double backward of a function that has none
# happens: The second backward raises: trying to differentiate twice a function marked with
#   @once_differentiable.
# why: once_differentiable keeps this backward from being recorded, so its result has no graph for a
#   second backward. The Error node says so.
# error: RuntimeError
# root: g
# node: Error
# look: Under g stands an Error node where the graph of the gradient should be.

import torch

# %% wrong
from torch.autograd.function import once_differentiable

class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 3

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x ** 2 * g

x = torch.tensor(3.0, requires_grad=True)
y = Cube.apply(x) ** 2
(g,) = torch.autograd.grad(y, x, create_graph=True)
g.backward()

# %% right
class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x ** 2 * g

x = torch.tensor(3.0, requires_grad=True)
y = Cube.apply(x) ** 2
(g,) = torch.autograd.grad(y, x, create_graph=True)
g.backward()          # x.grad is 30 · 3⁴ = 2430
