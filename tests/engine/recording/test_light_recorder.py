"""What a light recorder leaves out, and that nothing is lost by it."""

from __future__ import annotations

import gc
import inspect
from collections.abc import Mapping
from contextlib import nullcontext
from types import MappingProxyType
from typing import ClassVar

import pytest
import torch
from torch import nn
from torch.autograd.profiler import record_function
from torch.nn import functional as F
from torch.optim.optimizer import _global_optimizer_pre_hooks
from torch.overrides import TorchFunctionMode

from engine.console.namespace import Namespace
from engine.recording import remembered
from engine.recording.light import library_modules
from engine.recording.light.library_modules import ONE_FUNCTION
from engine.recording.light.light_recorder import LightRecorder
from engine.recording.recording import GradientCut
from tests.engine.namespaces import run

ARGUMENTS: Mapping[type[nn.Module], tuple[int, ...]] = MappingProxyType(
    {
        nn.Linear: (4, 3), nn.Conv1d: (2, 3, 1), nn.Conv2d: (2, 3, 1), nn.Conv3d: (2, 3, 1),
        nn.Embedding: (5, 4), nn.LayerNorm: (4,), nn.GroupNorm: (2, 4), nn.Softmax: (1,),
        nn.LogSoftmax: (1,),
    }
)  # fmt: skip
SHAPES: Mapping[type[nn.Module], tuple[int, ...]] = MappingProxyType(
    {nn.Conv2d: (1, 2, 4, 4), nn.Conv3d: (1, 2, 4, 4, 4)}
)
LABELS = (nn.CrossEntropyLoss, nn.NLLLoss)


def call_of(kind: type[nn.Module], requires_grad: bool) -> tuple[nn.Module, tuple]:
    torch.manual_seed(0)
    module = kind(*ARGUMENTS.get(kind, ()))
    x = torch.rand(SHAPES.get(kind, (2, 2, 4) if kind is nn.Conv1d else (2, 4)))
    if kind is nn.Embedding:
        return module, (torch.tensor([[0, 3]]),)
    x.requires_grad_(requires_grad)
    if kind in LABELS:
        return module, (x, torch.tensor([0, 1]))
    return module, ((x, torch.rand(2, 4)) if "Loss" in kind.__name__ else (x,))


def told(kind: type[nn.Module], requires_grad: bool, frozen: bool = False) -> list:
    module, args = call_of(kind, requires_grad)
    for parameter in [*module.parameters()][:1] if frozen else ():
        parameter.requires_grad_(False)
    torch.manual_seed(1)
    with LightRecorder(modules={module: "net"}) as recorder:
        result = module(*args)
        result.sum()
    found: list = [result.tolist(), result.grad_fn and result.grad_fn.name()]
    for call in recorder.recording.calls:
        slots = [s.reason if isinstance(s, GradientCut) else s for s in call.slots]
        tiny = None if call.tiny is None else (call.tiny.numbers, call.tiny.dtype)
        nodes = call.end - call.first
        found.append((call.name, call.module, call.place, nodes, slots, tiny))
    return found


@pytest.mark.parametrize("case", ["plain", "data", "frozen", "no_grad"])
@pytest.mark.parametrize("kind", ONE_FUNCTION)
def test_a_module_of_one_function_is_told_as_if_it_was_looked_at(monkeypatch, kind, case) -> None:
    with torch.set_grad_enabled(case != "no_grad"):
        outside = told(kind, case in ("plain", "frozen"), case == "frozen")
        monkeypatch.setattr(library_modules, "ONE_FUNCTION", {})
        assert outside == told(kind, case in ("plain", "frozen"), case == "frozen")
    if case == "plain":
        assert outside[2][:2] == (ONE_FUNCTION[kind][0].__name__, "net")


def test_the_modules_of_one_function_have_no_other_settings_that_matter() -> None:
    """A setting in the list must be one of the class's own."""
    for kind, (name, value) in library_modules._SETTINGS.items():
        assert inspect.signature(kind).parameters[name].default == value


@pytest.mark.parametrize(
    "line",
    [
        "net = nn.Linear(2, 2); net.register_forward_hook(lambda m, a, out: out * 3)",
        "net = nn.Linear(2, 2); net.register_forward_pre_hook(lambda m, a: (a[0] * 3,))",
        "net = nn.Linear(2, 2); net.forward = lambda x: x * 3",
        "net = nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))",
    ],
)
def test_what_the_user_adds_to_such_a_module_is_recorded(line: str) -> None:
    namespace = Namespace()
    run(namespace, f"{line}\ny = net(torch.ones(2, 2, requires_grad=True)).sum()")
    names = {call.name for call in namespace.recordings.kept[-1].calls}
    assert names & {"mul", "_weight_norm"}


def test_a_module_that_raises_raises_the_same_once() -> None:
    namespace = Namespace()
    run(
        namespace,
        "try:\n    nn.Linear(2, 3)(torch.ones(1, 5))\nexcept RuntimeError as error:\n"
        "    told, context = str(error), error.__context__\n"
        "z = torch.ones(1, requires_grad=True) * 2",
    )
    with pytest.raises(RuntimeError) as plain:
        F.linear(torch.ones(1, 5), torch.ones(3, 2), torch.ones(3))
    assert namespace.variables["told"] == str(plain.value)
    assert namespace.variables["context"] is None
    assert namespace.recordings.kept[-1].calls[-1].name == "mul"


class Names(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.append(func.__name__)
        return func(*args, **(kwargs or {}))


class Loud(torch.Tensor):
    seen: ClassVar[list[str]] = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.seen.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs)


def some_calls(x: torch.Tensor) -> None:
    y = x.exp()
    y.view(-1)[0].add_(torch.add(input=x.sum(), other=2, alpha=3))
    torch.split(x, 1), x.data, x.detach(), x.shape, x.is_leaf
    with torch.no_grad():
        x.mul_(2)


def test_modes_and_classes_of_the_users_see_only_what_the_user_runs() -> None:
    seen: list[list[str]] = []
    for is_recorded in (False, True):
        with Names() as names, LightRecorder() if is_recorded else nullcontext():
            some_calls(torch.ones(2, requires_grad=True).sigmoid())
        Loud.seen.clear()
        with LightRecorder() if is_recorded else nullcontext():
            some_calls(torch.ones(2).as_subclass(Loud))
        seen += [names.seen, [*Loud.seen]]
    assert seen[:2] == seen[2:] and "exp" in seen[0] and "exp" in seen[1]


TRAIN = """
net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
opt = torch.optim.Adam(net.parameters())
for _ in range(3):
    opt.zero_grad()
    loss = net(torch.ones(4, 2)).square().mean()
    loss.backward()
    opt.step()
"""


def test_an_optimizer_is_not_recorded_and_its_step_is_told() -> None:
    namespace = Namespace()
    run(namespace, TRAIN)
    names = {call.name for call in namespace.recordings.kept[-1].calls}
    assert names == {"linear", "relu", "square", "mean"}
    net, opt = namespace.variables["net"], namespace.variables["opt"]
    for t in (*net.parameters(), opt.state[net[0].weight]["exp_avg"]):
        where = namespace.writes.last_write(t)
        assert where is not None and (where.op, where.line, where.text) == ("step", 8, "opt.step()")
    run(namespace, "with torch.no_grad():\n    net[0].weight.zero_()")
    where = namespace.writes.last_write(net[0].weight)
    assert where is not None and (where.op, where.line) == ("zero_", 2)


def test_a_write_after_the_step_is_the_last() -> None:
    namespace = Namespace()
    run(namespace, TRAIN + "with torch.no_grad():\n    net[0].bias.mul_(2)")
    where = namespace.writes.last_write(namespace.variables["net"][0].bias)
    assert where is not None and where.op == "mul_"


def test_an_optimizer_of_the_user_and_a_closure_are_recorded() -> None:
    namespace = Namespace()
    run(
        namespace,
        "class Mine(torch.optim.Optimizer):\n"
        "    def __init__(self, params):\n        super().__init__(params, {})\n"
        "    @torch.no_grad()\n    def step(self):\n"
        "        for p in self.param_groups[0]['params']:\n            p.sub_(p.grad)  # mine\n"
        "w = torch.ones(2, requires_grad=True)\nopt = Mine([w])\nw.sin().sum().backward()\n"
        "opt.step()",
    )
    where = namespace.writes.last_write(namespace.variables["w"])
    assert where is not None and where.op == "sub_" and where.text.endswith("# mine")
    run(
        namespace,
        "opt = torch.optim.LBFGS([w], max_iter=1)\n"
        "def closure():\n    opt.zero_grad()\n    loss = w.cos().sum()\n    loss.backward()\n"
        "    return loss\nopt.step(closure)",
    )
    assert "cos" in {call.name for call in namespace.recordings.kept[-1].calls}


def test_recording_goes_on_after_a_step_that_raised() -> None:
    namespace = Namespace()
    run(
        namespace,
        "w = torch.ones(2, requires_grad=True)\nopt = torch.optim.SGD([w], lr=0.1)\n"
        "w.sum().backward()\nopt.param_groups[0]['lr'] = 'much'\n"
        "try:\n    opt.step()\nexcept Exception as error:\n    told = type(error)\n"
        "y = w.exp()",
    )
    assert issubclass(namespace.variables["told"], Exception)
    assert namespace.recordings.kept[-1].calls[-1].name == "exp"
    assert torch.overrides._get_current_function_mode() is None


def test_torch_is_left_as_it_was() -> None:
    before = [nn.Module.__call__, nn.Module.zero_grad, torch.Tensor.backward]
    before += [torch.optim.Optimizer.zero_grad, record_function.__enter__]
    run(Namespace(), TRAIN)
    after = [nn.Module.__call__, nn.Module.zero_grad, torch.Tensor.backward]
    after += [torch.optim.Optimizer.zero_grad, record_function.__enter__]
    assert before == after
    assert not _global_optimizer_pre_hooks


def test_the_profiler_gets_the_labels_of_an_optimizer_while_it_is_on(monkeypatch) -> None:
    told: list[str] = []
    enter = torch.ops.profiler._record_function_enter_new
    monkeypatch.setattr(
        torch.ops.profiler,
        "_record_function_enter_new",
        lambda name, args: (told.append(name), enter(name, args))[1],
    )
    namespace = Namespace()
    run(namespace, TRAIN)
    assert told == []
    run(
        namespace,
        "from torch.autograd.profiler import profile, record_function\n"
        "with record_function('mine'):\n    opt.zero_grad()\n"
        "with profile() as profiled:\n"
        "    opt.zero_grad()\n    net(torch.ones(4, 2)).mean().backward()\n    opt.step()\n"
        "opt.step()",
    )
    labels = ["Optimizer.zero_grad#Adam.zero_grad", "Optimizer.step#Adam.step"]
    assert told == ["mine", *labels]
    names = [event.name for event in namespace.variables["profiled"].function_events]
    assert [name for name in names if name.startswith("Optimizer.")] == labels
    calls = {call.name for call in namespace.recordings.kept[-1].calls}
    assert calls == {"linear", "relu", "mean"}


LONG = """
w = torch.ones(3, requires_grad=True)
opt = torch.optim.SGD([w], lr=1e-6)
h = torch.zeros(3)
for _ in range({steps}):
    opt.zero_grad()
    h = (h * 0.5 + w).detach()
    loss = nn.MSELoss()(w * 2, torch.zeros(3)) + h.sum()
    loss.backward()
    opt.step()
"""


def objects_after(steps: int) -> int:
    namespace = Namespace()
    counts: list[int] = []
    namespace.variables["count"] = lambda: (gc.collect(), counts.append(len(gc.get_objects())))
    run(namespace, LONG.format(steps=steps) + "count()")
    return counts[0]


def test_a_loop_of_any_length_holds_as_much(monkeypatch) -> None:
    """Counted while the cell runs: objects that Python's collector knows."""
    options = {**(LightRecorder.__init__.__kwdefaults__ or {}), "max_calls": 500}
    monkeypatch.setattr(LightRecorder.__init__, "__kwdefaults__", options)
    monkeypatch.setattr(remembered, "MIN_LIMIT", 50)
    objects_after(10)
    short = objects_after(300)
    assert objects_after(8_000) - short < 2_500  # what is remembered goes up and down by 1,000


@pytest.mark.parametrize("kind", LABELS)
def test_the_weight_of_a_loss_may_be_a_parameter(kind: type[nn.Module]) -> None:
    """torch keeps it among the buffers, until the user assigns one."""
    loss, (x, y) = call_of(kind, requires_grad=True)
    loss.weight = nn.Parameter(torch.tensor([1.0, 2, 3, 4]), requires_grad=False)
    with LightRecorder() as recorder:
        found = loss(x, y)
    assert torch.equal(found, loss(x, y))
    call = recorder.recording.calls[-1]
    assert (call.name, call.module) == (ONE_FUNCTION[kind][0].__name__, kind.__name__)
