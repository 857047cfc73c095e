# title: Is a custom GELU right?
# tip: An autograd.Function with a hand-written backward, checked by gradcheck.
# kind: gradcheck
# function: Gelu.apply
# inputs: x

# %% code
import math
import torch

class Gelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        phi = torch.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
        return g * (0.5 * (1 + torch.erf(x / math.sqrt(2))) + x * phi)

x = torch.linspace(-2, 2, 6, requires_grad=True)

# %% call
y = Gelu.apply(x)
y.sum().backward()
