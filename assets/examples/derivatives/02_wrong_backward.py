# title: A backward with a mistake
# tip: The derivative of x³ is written as 3x instead of 3x²: gradcheck shows where it is wrong.
# kind: gradcheck
# function: Cube.apply
# inputs: x

import torch

# %% code
class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x

x = torch.tensor([0.0, 1.0, 2.0, 3.0])
