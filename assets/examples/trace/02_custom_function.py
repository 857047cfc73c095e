# title: A custom autograd.Function, forward and backward
# tip: GELU with a hand-written backward: forward and backward run line by line.

import torch

# %% code
import math

class Gelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        below = 0.5 * (1 + torch.erf(x / math.sqrt(2)))
        return x * below

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        below = 0.5 * (1 + torch.erf(x / math.sqrt(2)))
        density = torch.exp(-x * x / 2) / math.sqrt(2 * math.pi)
        return grad * (below + x * density)

x = torch.linspace(-3, 3, 13, requires_grad=True)
y = Gelu.apply(x)
y.sum().backward()
