"""Random sessions: whatever is done in passes and between them, the script does it once more."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st

from engine.console.output import Output
from engine.errors import LabError
from engine.handlers.models import start_forward
from engine.lab import Lab
from engine.project.files import load
from engine.protocol import (
    CompareGradientsCommand,
    EditGradientCommand,
    MoveBackwardCommand,
    StartBackwardCommand,
    StartForwardCommand,
    ZeroGradientsCommand,
)
from engine.session import handler_of
from tests.engine.autograd.backward.test_roots import TEMPLATES, ask, console
from tests.engine.autograd.script.script_runs import exported, run_here, same
from tests.examples import examples, seconds

POWERS = (
    "x = torch.tensor([0.5, -1.5, 2.0], requires_grad=True)",
    "w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)\nscale = 2.0\nv = torch.ones(3)",
    "h = x * w\na, b, c = (h * h).unbind()\ny = (h**3).sum() + a * b\nz = h.sin() * x",
)
NETWORK = (
    "torch.manual_seed(1)\nfrom torch.utils.checkpoint import checkpoint",
    "class Twice(torch.autograd.Function):\n"
    "    @staticmethod\n"
    "    def forward(ctx, t, factor):\n"
    "        ctx.factor = factor\n"
    "        return t * factor\n"
    "    @staticmethod\n"
    "    def backward(ctx, g):\n"
    "        return g * ctx.factor, None",
    "net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Dropout(0.5),"
    " nn.Linear(4, 2))\nx = torch.randn(5, 3, requires_grad=True)\nw = net[0].weight\nscale = 0.5",
    "opt = torch.optim.SGD(net.parameters(), lr=0.1)\nv = torch.ones(5, 2)",
    "def forward():\n"
    "    global h, z, y\n"
    "    h = net(x)\n"
    "    z = Twice.apply(checkpoint(torch.sin, h, use_reentrant=False), 2.0)\n"
    "    with torch.autocast('cpu', dtype=torch.bfloat16):\n"
    "        y = (z @ z.t()).float().square().sum()\n"
    "forward()",
)
CELLS = (
    "x.grad = None",
    "w.grad = None; x.grad = None",
    "scale = scale + 1",
    "h.register_hook(lambda g: g if g is None else g * 2)",
    "h.retain_grad()",
    "x.register_hook(lambda g: g if g is None else g + 0.25)",
    "noise = torch.randn(3)",
    "y.backward(retain_graph=True)",
    "raise ValueError('by hand')",
    "print(x.grad)",
    "unrelated = torch.ones(2) * 3",
    "x.grad = torch.ones_like(x)\nboom",
    "def double(g):\n    g.mul_(2)\n    return g",
    "x.register_hook(lambda g: g if g is None else g + torch.randn_like(g))",
    "w.register_post_accumulate_grad_hook(lambda t: t.grad.mul_(0.5))",
    "h = x * w if x.dim() == 1 else net(x)\ny = (h * h).sum()\nz = h.tanh() * h",
    "if 'net' in globals():\n    forward()",
    "if 'opt' in globals():\n    opt.step(); opt.zero_grad()",
)
EXPRESSIONS = (
    "g if g is None else g * 2.0",
    "g if g is None else g * scale",
    "g if g is None else torch.zeros_like(g)",
    "g if g is None else g.clamp(-1.0, 1.0)",
    "g if g is None else g + torch.randn_like(g)",
    "g if g is None else g.mul_(3)",
    "None",
    "g if g is None else double(g)",
)
ROOTS = (("y", ""), ("y", "scale"), ("z", "v"), ("z, y", "v, None"), ("z.sum()", ""), ("z", "2"),
         ("h", "torch.ones_like(h)"), ("y + z.sum()", ""))  # fmt: skip


def starts(model: bool) -> st.SearchStrategy[Any]:
    roots = st.just(("", "")) if model else st.sampled_from(ROOTS)
    names: tuple[tuple[str, ...], ...] = ((), ()) if model else ((), (), (), ("x",), ("w", "h"))
    return st.builds(
        lambda root, **options: StartBackwardCommand(root=root[0], gradient=root[1], **options),
        root=roots,
        create_graph=st.booleans(),
        accumulate=st.booleans(),
        real_engine=st.sampled_from((False, False, True)),
        retain_graph=st.booleans(),
        inputs=st.sampled_from(names),
    )


def actions(model: bool) -> st.SearchStrategy[Any]:
    moves = ["step", "step", "back", "end", "end", "end", "reset", "again", "again", "leaf"]
    cells = ("mask = 0.5", "scale = 3.0", "scale = scale + 1") if model else CELLS
    expressions = EXPRESSIONS[:7] if model else EXPRESSIONS
    return st.one_of(
        st.tuples(st.just("start"), starts(model)),
        st.tuples(st.just("of"), st.integers(0, 5), st.booleans(), st.booleans()),
        st.tuples(st.just("move"), st.sampled_from(moves), st.integers(1, 4)),
        st.tuples(st.just("move"), st.sampled_from(moves), st.integers(1, 4)),
        st.tuples(st.just("edit"), st.integers(0, 30), st.sampled_from(expressions)),
        st.tuples(st.just("zero"), st.booleans()),
        st.tuples(st.just("cell"), st.sampled_from(cells)),
        st.tuples(st.just("compare")),
    )


class Session:
    """A lab and what is done with it; what the lab refuses is as if it had not been asked."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab

    def send(self, command: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ask(handler_of(type(command))(self.lab, command))[-1]

    def do(self, action: tuple[Any, ...]) -> None:
        kind, *arguments = action
        try:
            getattr(self, kind)(*arguments)
        except (LabError, RuntimeError, ValueError, NameError):
            return

    def start(self, command: StartBackwardCommand) -> None:
        self.send(command)

    def of(self, number: int, create_graph: bool, accumulate: bool) -> None:
        names = list(self.lab.backward.under_way.parameters) if self.lab.backward.under_way else []
        if names:
            name = names[number % len(names)]
            self.send(
                StartBackwardCommand(of=name, create_graph=create_graph, accumulate=accumulate)
            )

    def move(self, way: Any, count: int) -> None:
        for _ in range(count if way in ("step", "back") else 1):
            self.send(MoveBackwardCommand(move=way))

    def edit(self, number: int, expression: str) -> None:
        if self.lab.backward.under_way is None:
            return
        stepped = self.lab.backward.under_way.stepper
        following = stepped.plan[stepped.position :]
        if following:
            node = following[number % len(following)]
            self.send(EditGradientCommand(node=node.id, expression=expression))

    def zero(self, set_to_none: bool) -> None:
        self.send(ZeroGradientsCommand(set_to_none=set_to_none))

    def cell(self, source: str) -> None:
        output = Output(lambda told: None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.lab.console.namespace.run(source, "<cell>", output, self.lab.control)

    def compare(self) -> None:
        self.send(CompareGradientsCommand())


def in_console(cells: tuple[str, ...]) -> Callable[[], Session]:
    return lambda: Session(console(*cells))


def in_model(path: Path) -> Callable[[], Session]:
    def begun() -> Session:
        project, lab = load(path), Lab(emit=lambda snapshot: None)
        command = StartForwardCommand(model=project.model, training=project.training)
        ask(start_forward(lab, command))
        session = Session(lab)
        session.cell("scale = 2.0")
        return session

    return begun


def check(session: Session) -> None:
    """The last pass is run to its end; then its script leaves the same in all leaves."""
    session.do(("move", "end", 1))
    lab = session.lab
    if lab.backward.under_way is None or lab.backward.under_way.stepper.next_node is not None:
        event("no pass at its end")
        lab.backward.close()
        return
    with TemporaryDirectory() as folder:
        path = Path(folder) / "backward.py"
        try:
            text = exported(lab, path).text
        except LabError as error:
            assert str(error).startswith("No script can"), error
            event(str(error)[:40])
            lab.backward.close()
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = run_here(text, path)
            except Exception as error:
                raise AssertionError(f"{text}\n{error!r}") from error
    event("compared")
    wanted = {**tensors(lab), **captured(lab)}
    for name, tensor in wanted.items():
        if name.startswith("gradient of "):
            results = lab.backward.under_way.inputs
            title = f'print("{name}:", '
            (line,) = [line for line in text.splitlines() if line.startswith(title)]
            got = eval(line.removeprefix(title).removesuffix(")"), found)
            assert name.removeprefix("gradient of ") in results
            assert same(got, tensor), f"{name}\n{text}"
            continue
        got = eval(name, found)
        assert same(got, tensor), f"{name}: {got} {tensor}\n{text}"
        if tensor is not None and tensor.is_leaf:
            assert same(got.grad, tensor.grad), f"{name}: {got.grad} {tensor.grad}\n{text}"
    lab.backward.close()


def tensors(lab: Lab) -> dict[str, Any]:
    """The tensors that the passes are about, as the script names them."""
    if (
        lab.backward.under_way.subject.owner is lab.models.forward
        and lab.models.forward is not None
    ):
        parameters = lab.models.forward.module.named_parameters()
        return {f'model.get_parameter("{name}")': p for name, p in parameters}
    variables = lab.console.namespace.variables
    found = {name: variables[name] for name in ("x", "w") if name in variables}
    if "net" in variables:
        found |= {f'net.get_parameter("{n}")': p for n, p in variables["net"].named_parameters()}
    return {name: t for name, t in found.items() if isinstance(t, torch.Tensor)}


def captured(lab: Lab) -> dict[str, Any]:
    return {
        f"gradient of {n}": lab.backward.under_way.gradient_of(n)
        for n in lab.backward.under_way.inputs
    }


SUBJECTS = {
    "powers": (in_console(POWERS), False),
    "network": (in_console(NETWORK), False),
    **{path.stem: (in_model(path), True) for path in TEMPLATES},
}


@pytest.mark.timeout(seconds(50))
@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_script_does_what_any_session_did(subject: str) -> None:
    begin, is_model = SUBJECTS[subject]

    @settings(
        max_examples=examples(5 if is_model else 25),
        suppress_health_check=[HealthCheck.too_slow],
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],  # a session takes long: none is shrunk
    )
    @given(st.tuples(st.just("start"), starts(is_model)), st.lists(actions(is_model), max_size=12))
    def sessions(first: Any, rest: list[Any]) -> None:
        with torch.random.fork_rng(devices=[]):
            session = begin()
            for action in (first, *rest):
                session.do(action)
            check(session)

    sessions()
