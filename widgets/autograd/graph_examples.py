"""Graphs worth stepping through, small enough to check every number by hand."""

from __future__ import annotations

from typing import NamedTuple


class Example(NamedTuple):
    """`source` runs in the console; then the graph of `root` is read."""

    title: str
    tip: str
    root: str
    source: str


EXAMPLES = (
    Example(
        "Chain rule: x → ·2 → +3 → squared",
        "dL/dz = 2z = 10, dL/dy = 10, dL/dx = 2 · 10 = 20: factor by factor, from L to x.",
        "L",
        """\
x = torch.tensor(1.0, requires_grad=True)
y = 2 * x
z = y + 3
L = z ** 2
""",
    ),
    Example(
        "Chain rule with three factors: 75 · 1 · 4 = 300",
        "The cube gives 3 · 5² = 75, the sum 1, the product 4.",
        "L",
        """\
x = torch.tensor(1.0, requires_grad=True)
L = (4 * x + 1) ** 3
""",
    ),
    Example(
        "Used twice: x² + 3x at 2",
        "Two gradients meet at x and are added: 2x + 3 = 7.",
        "y",
        """\
x = torch.tensor(2.0, requires_grad=True)
y = x ** 2 + 3 * x
""",
    ),
    Example(
        "A product, squared: (x · w)²",
        "With y = x · w = 11: dz/dx = 2y w = [66, 88] and dz/dw = 2y x = [22, 44].",
        "z",
        """\
x = torch.tensor([1.0, 2.0], requires_grad=True)
w = torch.tensor([3.0, 4.0], requires_grad=True)
y = x @ w
z = y ** 2
""",
    ),
    Example(
        "A mean: 2x + 1 of two elements",
        "The mean of n elements gives each 1/n: here 2 · 1/2 = 1 for each.",
        "m",
        """\
x = torch.tensor([1.0, 5.0], requires_grad=True)
m = (2 * x + 1).mean()
""",
    ),
    Example(
        "Matmul + bias + cross entropy",
        "One linear layer and its loss. The gradient of the logits is softmax minus one-hot;"
        " the weight's is xᵀ times that.",
        "loss",
        """\
x = torch.tensor([[1.0, 2.0]])
W = torch.tensor([[0.1, -0.2, 0.3], [0.4, 0.5, -0.6]], requires_grad=True)
b = torch.zeros(3, requires_grad=True)
logits = x @ W + b
loss = torch.nn.functional.cross_entropy(logits, torch.tensor([2]))
""",
    ),
    Example(
        "Gradients add up: 6, 12, 18",
        "Run all, then Another pass, twice: each adds its 6 to what .grad holds. zero_grad empties"
        " it.",
        "y",
        """\
x = torch.tensor(3.0, requires_grad=True)
y = x ** 2
""",
    ),
    Example(
        "Three derivatives of x³ at 3: 27, 18, 6",
        "Set create_graph in Options, Start, Run all. Then right-click x under Gradients to step"
        " through its gradient's own graph; and again.",
        "y",
        """\
x = torch.tensor(3.0, requires_grad=True)
y = x ** 3
""",
    ),
    Example(
        "More than one number: backward needs a gradient",
        "Options hold the gradient to start with, one number for each of y's: ones give the sum's.",
        "y",
        """\
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x ** 2
""",
    ),
    Example(
        "Cuts: detach() and no_grad()",
        "Two of three ways back are cut: only the one left brings a gradient, 1 instead of 9.",
        "y",
        """\
x = torch.tensor(2.0, requires_grad=True)
with torch.no_grad():
    a = 3 * x
y = a + (5 * x).detach() + x
""",
    ),
    Example(
        "Checkpoint: computed again in backward",
        "The region keeps its input only: when backward comes to it, its forward runs again.",
        "y",
        """\
from torch.utils.checkpoint import checkpoint
x = torch.linspace(-1, 1, 5, requires_grad=True)
y = checkpoint(lambda t: t.exp().sin(), x, use_reentrant=False).sum()
""",
    ),
)
