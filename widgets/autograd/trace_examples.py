"""Code worth stepping through."""

from __future__ import annotations

from typing import NamedTuple


class Example(NamedTuple):
    title: str
    tip: str
    source: str


EXAMPLES = (
    Example(
        "A model with a loop and an if",
        "How often the loop turns, and which branch is taken, depends on the numbers: the graph is"
        " made anew in each pass (define-by-run). A static graph, as TensorFlow 1 had it, is"
        " declared before there are numbers.",
        """\
class Halver(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(4, 4)

    def forward(self, x):
        while x.norm() > 1:
            if x.sum() > 0:
                x = x / 2
            else:
                x = self.mix(x).abs()
        return x

torch.manual_seed(0)
model = Halver()
y = model(torch.tensor([[6.0, -9.0, 4.0, -2.0]]))
loss = y.square().sum()
""",
    ),
    Example(
        "A custom autograd.Function, forward and backward",
        "GELU with a backward written by hand: both run, line by line.",
        """\
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
""",
    ),
    Example(
        "Where does the NaN come from?",
        "One operator makes it, the others pass it on. First NaN leads there.",
        """\
def normalised(x):
    centred = x - x.mean(dim=1, keepdim=True)
    spread = centred.square().mean(dim=1, keepdim=True).sqrt()
    return centred / spread  # a row whose numbers are equal has no spread

x = torch.tensor([[1.0, 2.0, 3.0], [5.0, 5.0, 5.0]], requires_grad=True)
scores = normalised(x) @ torch.ones(3, 2)
loss = scores.softmax(dim=1).sum()
""",
    ),
    Example(
        "Writing in place",
        "A view shares its memory: each write is marked, and values stay as they were.",
        """\
x = torch.zeros(3, 4)
row = x[1]
row += 1
x[:, 2] = torch.arange(3.0)
row.mul_(10)
total = x.sum()
""",
    ),
    Example(
        "Gradient descent, written out",
        "new = old − lr · grad, three times: w goes from 0 towards 2. The update runs under"
        " no_grad, or autograd would record it too.",
        """\
x = torch.tensor([[1.0], [2.0], [3.0]])
target = 2 * x
w = torch.zeros(1, 1, requires_grad=True)
lr = 0.05

@torch.no_grad()
def update(w):
    w -= lr * w.grad
    w.grad = None

for step in range(3):
    loss = (x @ w - target).square().mean()
    loss.backward()
    update(w)
""",
    ),
)
