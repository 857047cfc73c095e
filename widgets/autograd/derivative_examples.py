"""Questions about derivatives that are worth asking, with the code that they are about."""

from __future__ import annotations

from typing import NamedTuple


class Example(NamedTuple):
    """`source` runs in the console; then `kind` is asked of `function` at `inputs`."""

    title: str
    tip: str
    kind: str
    function: str
    inputs: str
    source: str


GELU = """\
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
"""
TRACED_GELU = GELU + "y = Gelu.apply(x)\ny.sum().backward()\n"

EXAMPLES = (
    Example(
        "Is a custom GELU right?",
        "An autograd.Function with a backward written by hand, by gradcheck.",
        "gradcheck",
        "Gelu.apply",
        "x",
        GELU,
    ),
    Example(
        "A backward with a mistake",
        "The slope of the cube written as 3x instead of 3x²: gradcheck shows where.",
        "gradcheck",
        "Cube.apply",
        "x",
        """\
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
""",
    ),
    Example(
        "A Jacobian by hand: [[2, 1], [8, 12]]",
        "Two functions of two numbers at (1, 2): x² + y and x·y³.",
        "jacobian",
        "f",
        "p",
        """\
def f(p):
    x, y = p
    return torch.stack((x**2 + y, x * y**3))

p = torch.tensor([1.0, 2.0])
""",
    ),
    Example(
        "The Jacobian of softmax",
        "Each output moves with every input: diag(s) - s sᵀ.",
        "jacobian",
        "lambda z: z.softmax(0)",
        "z",
        "z = torch.tensor([2.0, 1.0, 0.0, -1.0])\n",
    ),
    Example(
        "The Hessian of a valley",
        "Rosenbrock's function: steep across, flat along.",
        "hessian",
        "rosenbrock",
        "p",
        """\
def rosenbrock(p):
    x, y = p
    return (1 - x) ** 2 + 100 * (y - x**2) ** 2

p = torch.tensor([1.0, 1.0])
""",
    ),
)
