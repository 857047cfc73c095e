"""A function of tensors as a subject, against plain torch."""

from __future__ import annotations

import copy
import functools

import pytest
import torch

from engine.handlers.subjects.find import find_subject
from engine.project.document import Model, TrainingSetup
from engine.project.subject import ConsoleSubject, FileSubject, Objective
from engine.protocol import (
    ExportCommand,
    FileSnapshot,
    FlowCommand,
    FlowSnapshot,
    ReadStructureCommand,
    ReadVariablesCommand,
    RunCellCommand,
    RunFileCommand,
    ShowSubjectCommand,
    StartBackwardCommand,
    TrainCommand,
    TrainingSnapshot,
    VariablesSnapshot,
)
from engine.system.errors import LabError
from engine.system.signatures import takes_tensors

pytestmark = pytest.mark.usefixtures("forked_processes")  # of the process that reads exports

CODE = """
torch.manual_seed(0)
w = torch.randn(3, 2, requires_grad=True)
net = nn.Linear(2, 1)
layers = [{"b": torch.ones(1, requires_grad=True)}]
shift = torch.randn(1)
def inner(x): return torch.tanh(x @ w)
def f(x, scale=torch.ones(1, requires_grad=True), *, more=nn.Parameter(torch.zeros(1))):
    return net(inner(x)) * scale + more + layers[0]["b"] + shift
x, y = torch.randn(12, 3), torch.randn(12, 1)
"""
F = ConsoleSubject("f")
DATA = Objective(data="(x, y)")
SETUP = TrainingSetup(batch_size=4, epochs=2, seed=5)
NAMES = {"inner.w", "net.weight", "net.bias", "layers.0.b", "scale", "more"}


@pytest.fixture
def found(lab, ask):
    """The module around `f`, asked for each time."""
    ask(RunCellCommand(source=CODE))
    return lambda: find_subject(lab, F, Model(), TrainingSetup()).module


def test_its_parameters_are_the_leaves_that_the_function_names(lab, found):
    variables, parameters = lab.console.namespace.variables, dict(found().named_parameters())
    assert set(parameters) == NAMES
    assert parameters["inner.w"] is variables["w"]
    assert parameters["net.weight"] is variables["net"].weight
    assert torch.equal(found()(variables["x"]), variables["f"](variables["x"]))


def test_a_copy_calls_a_copy_of_the_function(lab, found):
    module, x = found(), lab.console.namespace.variables["x"]
    copied = copy.deepcopy(module)
    assert torch.equal(copied(x), module(x))
    with torch.no_grad():
        for parameter in copied.parameters():
            parameter.zero_()
    assert torch.equal(copied(x), lab.console.namespace.variables["shift"].expand(12, 1))
    copied(x).sum().backward()
    assert all(p.grad is not None for p in copied.parameters())
    assert all(p.grad is None for p in module.parameters())


def test_a_function_that_calls_itself_is_copied_whole(lab, ask):
    source = "v = torch.ones(1, requires_grad=True)\n"
    source += "def r(x, n=3): return r(x, n - 1) * v if n else x"
    ask(RunCellCommand(source=source))
    copied = copy.deepcopy(find_subject(lab, ConsoleSubject("r"), Model(), TrainingSetup()).module)
    with torch.no_grad():
        copied.v.fill_(2)
    assert copied(torch.ones(1)).item() == 8


def test_the_module_stays_until_the_function_names_other_tensors(ask, found):
    module = found()
    assert found() is module
    ask(RunCellCommand(source="w.requires_grad_(False)"))
    assert found() is module  # frozen, and still in the table
    ask(RunCellCommand(source="w = torch.zeros(3, 2, requires_grad=True)"))
    other = found()
    assert other is not module and not dict(other.named_parameters())["inner.w"].any()
    ask(RunCellCommand(source="def f(x): return x @ w"))
    assert set(dict(found().named_parameters())) == {"w"}


def test_structure_shows_it_and_lines_reach_its_tensors(lab, ask, found):
    (answer,) = ask(ReadStructureCommand(subject=F, objective=DATA, training=SETUP))
    assert (answer.unrun, answer.made) == (None, True)
    rows = {row.name: row for row in answer.weights}
    assert set(rows) == NAMES and answer.totals.parameters == 6 + 3 + 3
    calls = {row.path: row.calls for row in answer.modules}
    assert calls[""][0].inputs == ((4, 3),) and calls["net"][0].outputs == ((4, 1),)
    ask(ShowSubjectCommand(subject=F))
    ask(RunCellCommand(source=f"lab.subject{rows['inner.w'].code}.requires_grad_(False)"))
    assert not lab.console.namespace.variables["w"].requires_grad


def plain() -> tuple[dict, torch.optim.Optimizer, list[torch.Tensor]]:
    names: dict = {"torch": torch, "nn": torch.nn}
    exec(CODE, names)
    f, net = names["f"], names["net"]
    own = [names["w"], names["layers"][0]["b"], f.__defaults__[0], f.__kwdefaults__["more"]]
    return names, torch.optim.Adam([*own, *net.parameters()]), own


def test_train_trains_the_users_own_tensors_bit_for_bit(lab, ask, found):
    found()
    answers = ask(TrainCommand(model=Model(), subject=F, objective=DATA, training=SETUP))
    last = [a for a in answers if isinstance(a, TrainingSnapshot)][-1]
    assert (last.state, last.error) == ("finished", None)
    names, optimizer, _own = plain()
    torch.manual_seed(SETUP.seed)
    dataset = torch.utils.data.TensorDataset(names["x"], names["y"])
    loader = torch.utils.data.DataLoader(dataset, 4, shuffle=True)
    for _ in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            prediction = names["f"](x).squeeze(-1)
            torch.nn.functional.mse_loss(prediction, y.squeeze(-1)).backward()
            optimizer.step()
    variables = lab.console.namespace.variables
    assert torch.equal(variables["w"], names["w"])
    assert torch.equal(variables["net"].weight, names["net"].weight)


def test_gradient_flow_leaves_its_tensors_alone(lab, ask, found):
    before = {name: p.detach().clone() for name, p in found().named_parameters()}
    command = FlowCommand(
        model=Model(), training=SETUP, subject=F, objective=DATA, steps=3,
        initialisations=("default",),
    )  # fmt: skip
    last = [a for a in ask(command) if isinstance(a, FlowSnapshot)][-1]
    assert last.steps == 3 and {"", "net", "inner"} <= set(last.layers)
    assert len(set(last.losses)) == 3
    assert all(torch.equal(p, before[name]) for name, p in found().named_parameters())
    assert all(p.grad is None for p in found().parameters())


def test_its_step_is_stepped_through_and_its_tensors_are_exported(ask, found, tmp_path):
    graph = ask(StartBackwardCommand(subject=F, objective=DATA, training=SETUP))[0]
    assert {"inner.w", "net.weight", "scale"} <= {node.label for node in graph.nodes}
    path = tmp_path / "f.pt"
    ask(
        ExportCommand(
            subject=F, model=Model(), training=SETUP, path=str(path), format="pt", verify=False
        )
    )
    assert torch.load(path).keys() == NAMES


def test_a_function_that_returns_its_loss_takes_the_whole_batch(ask, found):
    ask(RunCellCommand(source="def loss(x, y): return (f(x) - y).square().mean()"))
    subject = ConsoleSubject("loss")
    (answer,) = ask(ReadStructureCommand(subject=subject, objective=DATA, training=SETUP))
    assert answer.unrun is None and answer.modules[0].calls[0].inputs == ((4, 3), (4, 1))
    assert {row.name for row in answer.weights} == {f"f.{name}" for name in NAMES}


def test_a_function_of_a_file_is_a_subject_too(lab, ask, write):
    path = write("net.py", f"import torch\nfrom torch import nn\n{CODE}")
    ask(RunFileCommand(path=str(path)))
    module = find_subject(lab, FileSubject(str(path), "f"), Model(), TrainingSetup()).module
    assert set(dict(module.named_parameters())) == NAMES


METHODS = """
from functools import partial
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 2), nn.Linear(2, 1)
    def features(self, x):
        return self.a(x).relu()
class Plain:
    def __init__(self):
        self.net, self.w, self.name = Net(), torch.ones(2, requires_grad=True), "plain"
    def scaled(self, x, by=1):
        return self.net.features(x) * self.w * by
net, plain = Net(), Plain()
method, scaled = net.features, plain.scaled
half = partial(plain.scaled, by=torch.tensor(0.5, requires_grad=True))
x = torch.randn(4, 3)
"""
OF_NET = {"a.weight", "a.bias", "b.weight", "b.bias"}
OF_PLAIN = {"self.w", *(f"self.net.{name}" for name in OF_NET)}


@pytest.mark.parametrize(
    "name, parameters",
    [
        ("method", {f"self.{name}" for name in OF_NET}),
        ("net.features", {f"self.{name}" for name in OF_NET}),
        ("scaled", OF_PLAIN),
        ("half", {"by", *(f"function.{name}" for name in OF_PLAIN)}),
    ],
)
def test_methods_and_partials_are_functions_of_their_objects_tensors(lab, ask, name, parameters):
    ask(RunCellCommand(source=METHODS))
    variables = lab.console.namespace.variables

    def find():
        return find_subject(lab, ConsoleSubject(name), Model(), TrainingSetup()).module

    module, x = find(), variables["x"]
    assert find() is module
    own = [variables["net"].a.weight, variables["plain"].net.a.weight]
    found = dict(module.named_parameters())
    assert set(found) == parameters and any(p is w for p in found.values() for w in own)
    expected = eval(name, variables)(x)
    assert torch.equal(module(x), expected)
    copied = copy.deepcopy(module)
    with torch.no_grad():
        for parameter in copied.parameters():
            parameter.zero_()
    assert not copied(x).any() and torch.equal(module(x), expected)
    zeros = {key: torch.zeros_like(p) for key, p in found.items()}
    assert not torch.func.functional_call(module, zeros, (x,)).any()
    assert torch.equal(eval(name, variables)(x), expected)
    copied(x).sum().backward()
    assert all(p.grad is None for p in module.parameters())


VAE = """
class Base(nn.Module):
    def sample(self, count: int): return torch.randn(count, 2)
    def decode(self, z): return self.out(z)
class Net(Base):
    def __init__(self):
        super().__init__()
        self.inner, self.out = nn.Linear(3, 2), nn.Linear(2, 3)
    def forward(self, x): return self.decode(self.encode(x))
    def encode(self, x: torch.Tensor): return self.inner(x)
    def count(self): return 2
    def _hidden(self, x): return x
    @property
    def broken(self): raise RuntimeError
    @staticmethod
    def twice(x): return 2 * x
net, plain = Net(), nn.Linear(2, 2)
x = torch.ones(4, 3)
"""


def test_the_methods_of_a_module_that_take_tensors_are_told_and_are_subjects(lab, ask, write):
    answers = ask(RunCellCommand(source=VAE))
    (listed,) = [a for a in answers if isinstance(a, VariablesSnapshot)]
    assert {each.name: each.methods for each in listed.variables if each.methods} == {
        "net": ("encode", "decode")
    }
    net = lab.console.namespace.variables["net"]
    module = find_subject(lab, ConsoleSubject("net.encode"), Model(), TrainingSetup()).module
    assert torch.equal(module(torch.ones(4, 3)), net.encode(torch.ones(4, 3)))
    path = str(write("vae.py", "import torch\nfrom torch import nn\n" + VAE))
    (file,) = [a for a in ask(RunFileCommand(path=path)) if isinstance(a, FileSnapshot)]
    assert {found.name: found.methods for found in file.objects if found.methods} == {
        "net": ("encode", "decode")
    }


def test_a_partial_without_arguments_left_makes_a_module(lab, ask):
    ask(RunCellCommand(source="import functools\nmake = functools.partial(nn.Linear, 3, 2)"))
    module = find_subject(lab, ConsoleSubject("make"), Model(), TrainingSetup(seed=3)).module
    torch.manual_seed(3)
    assert torch.equal(module.get_parameter("weight"), torch.nn.Linear(3, 2).weight)


def test_variables_tell_functions_of_tensors(lab, ask):
    source = """
import functools
def f(x): ...
def typed(x: torch.Tensor, y: "Tensor"): ...
def build(width: int): ...
def make(): ...
square = lambda x: x * x
part = torch.nn.functional.relu
class Net(nn.Module):
    def features(self, x): ...
    def sample(self): ...
    @classmethod
    def load(cls, path): ...
method, sample, load = Net().features, Net().sample, Net.load
bound = functools.partial(typed, y=1)
whole = functools.partial(typed, 1, 2)
build2 = functools.partial(build)
"""
    ask(RunCellCommand(source=source))
    (listed,) = [a for a in ask(ReadVariablesCommand()) if isinstance(a, VariablesSnapshot)]
    kinds = {variable.name: variable.kind for variable in listed.variables}
    assert kinds == {
        "f": "function", "typed": "function", "build": "other", "make": "other",
        "square": "function", "part": "function", "Net": "other", "method": "function",
        "sample": "other", "load": "other", "bound": "function", "whole": "other",
        "build2": "other", "functools": "other",
    }  # fmt: skip
    assert not takes_tensors(functools.partial(torch.add, 1)) and not takes_tensors(3)
    with pytest.raises(LabError, match="`build` needs arguments: width"):
        find_subject(lab, ConsoleSubject("build"), Model(), TrainingSetup())
