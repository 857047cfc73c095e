"""The usual mistakes with autograd, each as code that makes it and code that does not."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mistake:
    """`code` runs as a cell and makes the mistake; `instead` is the same without it.

    `happens` says what becomes of it, `why` the reason. `error` is the name of the exception's
    type, empty where nothing is raised. `root` is the expression whose graph shows it, `node` the
    first node of that name (or leaf of that label) where it shows, and `look` what to see there.
    `missing` names a tensor whose `.grad` is None against expectation.
    """

    key: str
    title: str
    code: str
    happens: str
    why: str
    instead: str
    error: str = ""
    root: str = ""
    node: str = ""
    look: str = ""
    missing: str = ""


def _code(text: str) -> str:
    return text.strip("\n") + "\n"


MISTAKES: tuple[Mistake, ...] = (
    Mistake(
        key="freed",
        title="backward twice through one graph",
        code=_code("""
x = torch.tensor(2.0, requires_grad=True)
y = x ** 3
y.backward()
y.backward()
"""),
        happens="The second backward raises: the saved tensors have been freed.",
        why="Each node frees what it saved as soon as backward has run it, so that memory is there"
        " again. The nodes remain, their saved tensors do not.",
        instead=_code("""
x = torch.tensor(2.0, requires_grad=True)
y = x ** 3
y.backward(retain_graph=True)
y.backward()          # x.grad is now twice 12: gradients add up
"""),
        error="RuntimeError",
        root="y",
        node="PowBackward0",
        look="PowBackward0 is flagged: what it saved was freed by the first backward.",
    ),
    Mistake(
        key="leaf_in_place",
        title="a leaf changed in place",
        code=_code("""
w = torch.ones(3, requires_grad=True)
loss = (w * 2).sum()
w += 0.1
"""),
        happens="The write raises: a leaf that requires grad is used in an in-place operation.",
        why="A leaf is where gradients end. Were the write recorded, w would be the result of an"
        " operation and no leaf any more.",
        instead=_code("""
w = torch.ones(3, requires_grad=True)
loss = (w * 2).sum()
loss.backward()
with torch.no_grad():  # as every optimizer does
    w -= 0.1 * w.grad
"""),
        error="RuntimeError",
        root="loss",
        node="w",
        look="w is a leaf: its node is an AccumulateGrad, which adds to w.grad.",
    ),
    Mistake(
        key="detached",
        title="no gradient: a detached path",
        code=_code("""
w = torch.tensor([1.0, 2.0], requires_grad=True)
b = torch.tensor([0.5, 0.5], requires_grad=True)
h = (w * 3).detach()
loss = (h * b).sum()
loss.backward()
"""),
        happens="w.grad is None, and nothing is raised.",
        why="detach() gives the same numbers without their history: for autograd h is data, and no"
        " way leads from loss to w.",
        instead=_code("""
w = torch.tensor([1.0, 2.0], requires_grad=True)
b = torch.tensor([0.5, 0.5], requires_grad=True)
h = w * 3
loss = (h * b).sum()
loss.backward()
"""),
        root="loss",
        node="MulBackward0",
        look="The way from MulBackward0 ends in a cut where h came in.",
        missing="w",
    ),
    Mistake(
        key="item",
        title="no gradient: through item() or numpy()",
        code=_code("""
w = torch.tensor(2.0, requires_grad=True)
b = torch.tensor(1.0, requires_grad=True)
loss = b * (w ** 2).item()
loss.backward()
"""),
        happens="w.grad is None, and nothing is raised.",
        why="item() gives a Python number, and Python keeps no graph. The same holds for numpy()"
        " and tolist().",
        instead=_code("""
w = torch.tensor(2.0, requires_grad=True)
b = torch.tensor(1.0, requires_grad=True)
loss = b * w ** 2
loss.backward()
"""),
        root="loss",
        node="b",
        look="The graph has one leaf, b: nothing of w is in it.",
        missing="w",
    ),
    Mistake(
        key="integer",
        title="no gradient: a tensor of integers",
        code=_code("""
w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
i = torch.arange(3)
loss = (w * i).sum()
loss.backward()
"""),
        happens="i.grad is None; requires_grad=True for it would raise.",
        why="A derivative asks what a very small change would do, and integers have none. Only"
        " floating and complex tensors can require grad.",
        instead=_code("""
w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
i = torch.arange(3.0, requires_grad=True)
loss = (w * i).sum()
loss.backward()
"""),
        root="loss",
        node="MulBackward0",
        look="MulBackward0 passes a gradient on to w alone: the way to i is cut.",
        missing="i",
    ),
    Mistake(
        key="unused",
        title="no gradient: not used at all",
        code=_code("""
used = torch.tensor(2.0, requires_grad=True)
unused = torch.tensor(3.0, requires_grad=True)
loss = used ** 2
loss.backward()
"""),
        happens="unused.grad is None, and nothing is raised; an optimizer leaves it as it is.",
        why="The loss was computed without it. In a model it is a layer that forward never calls.",
        instead=_code("""
used = torch.tensor(2.0, requires_grad=True)
unused = torch.tensor(3.0, requires_grad=True)
loss = used ** 2 * unused
loss.backward()
"""),
        root="loss",
        node="used",
        look="Count the leaves: there is one.",
        missing="unused",
    ),
    Mistake(
        key="late",
        title="no gradient: requires_grad set too late",
        code=_code("""
w = torch.tensor([1.0, 2.0])
b = torch.tensor([1.0, 1.0], requires_grad=True)
loss = (w * b).sum()
w.requires_grad_()
loss.backward()
"""),
        happens="w.grad is None, and nothing is raised.",
        why="The graph is recorded as the operations run. When w was multiplied it did not require"
        " grad, and what is recorded later does not reach back.",
        instead=_code("""
w = torch.tensor([1.0, 2.0]).requires_grad_()
b = torch.tensor([1.0, 1.0], requires_grad=True)
loss = (w * b).sum()
loss.backward()
"""),
        root="loss",
        node="MulBackward0",
        look="The way to w is cut at MulBackward0, though w requires grad now.",
        missing="w",
    ),
    Mistake(
        key="not_a_leaf",
        title="no gradient: not a leaf",
        code=_code("""
x = torch.tensor([1.0, 2.0], requires_grad=True)
h = x * 2
loss = (h ** 2).sum()
loss.backward()
"""),
        happens="h.grad is None (asking for it warns), x.grad is there.",
        why="A gradient passes through h on its way to x and is not kept: memory is spent on leaves"
        " alone.",
        instead=_code("""
x = torch.tensor([1.0, 2.0], requires_grad=True)
h = x * 2
h.retain_grad()
loss = (h ** 2).sum()
loss.backward()
"""),
        root="loss",
        node="MulBackward0",
        look="h is MulBackward0, in the midst of the graph: its incoming gradient is what h.grad"
        " would hold.",
        missing="h",
    ),
    Mistake(
        key="non_scalar",
        title="backward of more than one number",
        code=_code("""
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x ** 2
y.backward()
"""),
        happens="backward raises: a gradient can be created implicitly only for scalar outputs.",
        why="Backward computes vector · Jacobian. For a scalar the vector is 1; for more numbers"
        " you have to say which.",
        instead=_code("""
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x ** 2
y.backward(torch.ones_like(y))  # the same as y.sum().backward()
"""),
        error="RuntimeError",
        root="y",
        node="PowBackward0",
        look="Give a gradient in the options of the backward pass: torch.ones_like(y).",
    ),
    Mistake(
        key="overwritten",
        title="a saved tensor overwritten",
        code=_code("""
x = torch.tensor([0.0, 1.0], requires_grad=True)
y = x.exp()
z = y * 2
y.add_(1)
z.sum().backward()
"""),
        happens="backward raises: a variable needed for gradient computation has been modified by"
        " an inplace operation.",
        why="The slope of exp is its result, so ExpBackward0 saved y. The write changed it and"
        " raised its version from 0 to 1; backward compares.",
        instead=_code("""
x = torch.tensor([0.0, 1.0], requires_grad=True)
y = x.exp()
z = y * 2
y = y + 1  # a new tensor; the saved one stays
z.sum().backward()
"""),
        error="RuntimeError",
        root="z",
        node="ExpBackward0",
        look="ExpBackward0 is marked as stale before backward is called, with the line that wrote.",
    ),
    Mistake(
        key="step_before_backward",
        title="optimizer.step() between forward and backward",
        code=_code("""
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
first = net(torch.ones(4, 2)).mean()
second = net(torch.zeros(4, 2)).mean()
first.backward()
optimizer.step()
second.backward()
"""),
        happens="The second backward raises: a weight has been modified by an inplace operation.",
        why="step() writes into the weights. The second graph saved them as they were before.",
        instead=_code("""
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
first = net(torch.ones(4, 2)).mean()
second = net(torch.zeros(4, 2)).mean()
(first + second).backward()
optimizer.step()
"""),
        error="RuntimeError",
        root="second",
        node="AddmmBackward0",
        look="AddmmBackward0 of the last layer saved a view of its weight, which is stale.",
    ),
    Mistake(
        key="dtype",
        title="dtypes that do not match",
        code=_code("""
w = torch.ones(3, 2, requires_grad=True)
x = torch.ones(4, 3, dtype=torch.float64)
h = w * 2
y = x @ h
"""),
        happens="The product raises: both must have the same dtype.",
        why="NumPy's arrays are float64 and torch's parameters float32. Sums and products of"
        " elements convert; matrix products and layers do not.",
        instead=_code("""
w = torch.ones(3, 2, requires_grad=True)
x = torch.ones(4, 3, dtype=torch.float64)
h = w * 2
y = x.float() @ h
"""),
        error="RuntimeError",
        root="h",
        node="MulBackward0",
        look="The graph ends with the last operation that ran: the product is not in it.",
    ),
    Mistake(
        key="device",
        title="devices that do not match",
        code=_code("""
other = "cuda" if torch.cuda.is_available() else "meta"
w = torch.ones(4, 3, requires_grad=True)
x = torch.ones(4, 3, device=other)
h = w * 2
y = x + h
"""),
        happens="The sum raises: the tensors are on different devices.",
        why="An operation runs on one device and reads its memory only. Model and batch have to be"
        " moved to the same one.",
        instead=_code("""
device = "cuda" if torch.cuda.is_available() else "cpu"
w = torch.ones(4, 3, device=device, requires_grad=True)
x = torch.ones(4, 3).to(device)
h = w * 2
y = x + h
"""),
        error="RuntimeError",
        root="h",
        node="MulBackward0",
        look="Each node says on which device its result is.",
    ),
    Mistake(
        key="once_differentiable",
        title="double backward of a function that has none",
        code=_code("""
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
"""),
        happens="The second backward raises: trying to differentiate twice a function marked with"
        " @once_differentiable.",
        why="This backward was written not to be recorded, so its result has no graph that leads"
        " on. Its node only says so.",
        instead=_code("""
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
"""),
        error="RuntimeError",
        root="g",
        node="Error",
        look="Under g stands an Error node where the graph of the gradient should be.",
    ),
    Mistake(
        key="no_zero_grad",
        title="zero_grad() forgotten",
        code=_code("""
w = torch.tensor(2.0, requires_grad=True)
for step in range(3):
    loss = 3 * w ** 2 / 2
    loss.backward()
    print(w.grad)
"""),
        happens="The gradient is 6, then 12, then 18: nothing is raised.",
        why="backward adds to .grad. That is wanted when a batch is split, and a mistake between"
        " steps.",
        instead=_code("""
w = torch.tensor(2.0, requires_grad=True)
for step in range(3):
    w.grad = None      # optimizer.zero_grad()
    loss = 3 * w ** 2 / 2
    loss.backward()
    print(w.grad)
"""),
        root="loss",
        node="w",
        look="w's node is an AccumulateGrad: it adds to w.grad and never replaces it.",
    ),
    Mistake(
        key="no_no_grad",
        title="evaluation without no_grad()",
        code=_code("""
net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
total = 0.0
for batch in range(3):
    loss = net(torch.randn(4, 8)).square().mean()
    total = total + loss
"""),
        happens="Nothing is raised; memory grows with each batch.",
        why="total holds the graphs of all batches with everything that they saved, and none of it"
        " will ever be used.",
        instead=_code("""
net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
net.eval()
total = 0.0
with torch.no_grad():
    for batch in range(3):
        loss = net(torch.randn(4, 8)).square().mean()
        total += loss.item()
"""),
        root="total",
        node="AddBackward0",
        look="Three times the model's graph hang under total.",
    ),
    Mistake(
        key="kept_losses",
        title="a list of losses, each with its graph",
        code=_code("""
w = torch.tensor(2.0, requires_grad=True)
losses = []
for step in range(3):
    loss = (w * step) ** 2
    loss.backward()
    losses.append(loss)
total = sum(losses)
"""),
        happens="Nothing is raised; the list grows by a graph with each step.",
        why="A tensor holds its grad_fn, and that the whole graph under it. backward freed what the"
        " nodes saved, not the nodes.",
        instead=_code("""
w = torch.tensor(2.0, requires_grad=True)
losses = []
for step in range(3):
    loss = (w * step) ** 2
    loss.backward()
    losses.append(loss.item())     # or loss.detach()
total = sum(losses)
"""),
        root="total",
        node="AddBackward0",
        look="The graphs of all three steps hang under total, freed and yet kept.",
    ),
    Mistake(
        key="hook_stays",
        title="a hook that was not removed",
        code=_code("""
w = torch.tensor(2.0, requires_grad=True)
for step in range(2):
    w.grad = None
    handle = w.register_hook(lambda g: 2 * g)
    loss = 3 * w
    loss.backward()
"""),
        happens="w.grad is 6 at first, then 12: nothing is raised.",
        why="Each register_hook adds one more. Hooks stay until their handle removes them, and each"
        " is given what the one before made.",
        instead=_code("""
w = torch.tensor(2.0, requires_grad=True)
for step in range(2):
    w.grad = None
    handle = w.register_hook(lambda g: 2 * g)
    loss = 3 * w
    loss.backward()
    handle.remove()
"""),
        root="loss",
        node="w",
        look="Step to w: its tab Node lists the hooks, two of them.",
    ),
    Mistake(
        key="nan_where",
        title="NaN from the branch not taken",
        code=_code("""
x = torch.tensor([0.0, 4.0], requires_grad=True)
y = torch.where(x > 0, x.sqrt(), torch.zeros_like(x))
y.sum().backward(retain_graph=True)  # so that the graph can be stepped through
"""),
        happens="x.grad[0] is NaN, though y is finite.",
        why="where computes both branches. The slope of the square root at 0 is infinite, and"
        " backward multiplies it by the zero of the branch not taken: 0 · inf = NaN.",
        instead=_code("""
x = torch.tensor([0.0, 4.0], requires_grad=True)
safe = torch.where(x > 0, x, torch.ones_like(x))
y = torch.where(x > 0, safe.sqrt(), torch.zeros_like(x))
y.sum().backward()
"""),
        root="y",
        node="SqrtBackward0",
        look="Give a gradient of ones and stop where a NaN is made: at SqrtBackward0.",
    ),
)
