"""What Python writes to reach a part of a module, lines that run on it, and initial values."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from engine.project.subject import ConsoleSubject, FileSubject, Objective
from engine.protocol import (
    CellSnapshot,
    ErrorReport,
    PreviewInitCommand,
    ReadStructureCommand,
    RunCellCommand,
    RunFileCommand,
    ShowSubjectCommand,
)
from engine.subjects.initial_values import preview
from engine.subjects.structure import (
    bare_tensors,
    module_rows,
    optimizers_among,
    unregistered,
    weight_rows,
)
from engine.subjects.written import written
from engine.system.errors import LabError
from tests.engine.subjects.conftest import Ask


class Odd(nn.Module):
    """Children and parameters whose names Python writes in different ways."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.BatchNorm1d(3)))
        self.heads = nn.ModuleDict({"a": nn.Linear(3, 1), "b-c": nn.Linear(3, 1), "if": nn.ReLU()})
        self.scales = nn.ParameterList([torch.ones(2), torch.ones(3)])
        self.add_module("0", nn.Linear(1, 1))
        self.register_parameter("w w", nn.Parameter(torch.ones(1)))
        self.register_buffer("1", torch.ones(1))
        self.gap = nn.Sequential()
        self.gap.add_module("7", nn.ReLU())


def run(ask: Ask, source: str) -> ErrorReport | None:
    """Run a cell. Returns its error."""
    (done,) = [a for a in ask(RunCellCommand(source=source)) if isinstance(a, CellSnapshot)]
    return done.error


def test_every_part_is_reached_by_its_code():
    module = Odd()
    codes = {row.path: row.code for row in module_rows(module)}
    for path, code in codes.items():
        assert eval(f"module{code}") is module.get_submodule(path)
    assert codes["net.1.0"] == ".net[1][0]" and codes[""] == ""
    assert codes["heads.b-c"] == ".heads.get_submodule('b-c')"
    assert codes["gap.7"] == ".gap.get_submodule('7')"
    tensors = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    weights = {row.name: row.code for row in weight_rows(module)}
    assert weights.keys() == tensors.keys()
    for name, code in weights.items():
        assert eval(f"module{code}") is tensors[name]
    assert weights["scales.1"] == ".scales[1]" and weights["w w"] == ".get_parameter('w w')"
    assert weights["1"] == ".get_buffer('1')"
    assert written(module, "net.1.0.running_mean") == ".net[1][0].running_mean"


def test_the_optimizers_that_hold_a_parameter_are_told():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    variables = {
        "model": model,
        "adam": torch.optim.Adam(model[0].parameters()),
        "sgd": torch.optim.SGD([{"params": [model[0].bias]}, {"params": []}], lr=0.1),
    }
    optimizers = optimizers_among(variables)
    assert list(optimizers) == ["adam", "sgd"]
    rows = {row.name: row.fed_by for row in weight_rows(model, optimizers)}
    assert rows == {
        "0.weight": ("adam",),
        "0.bias": ("adam", "sgd"),
        "1.weight": (),
        "1.bias": (),
    }


class Lost(nn.Module):
    """Two attributes hold what torch does not know; the others hold nothing that learns or is
    lost."""

    def __init__(self) -> None:
        super().__init__()
        self.known = nn.Linear(1, 1)
        self.again = [self.known, self.known.weight]
        self.losses = [nn.MSELoss()]
        self.layers = [nn.Linear(1, 1)]
        self.inside = nn.Sequential(nn.LSTM(1, 1))
        vars(self.inside)["scales"] = {"a": nn.Parameter(torch.ones(1))}


def test_modules_and_parameters_in_plain_lists_are_found(ask):
    module = Lost()
    assert unregistered(module) == ("layers", "inside.scales")
    assert len(list(module.parameters())) == 2 + 4  # so torch does not know them
    ask(RunCellCommand(source="net = nn.Linear(1, 1)\nnet.extra = [nn.Linear(1, 1)]"))
    (answer,) = ask(ReadStructureCommand(subject=ConsoleSubject("net")))
    assert answer.unregistered == ("extra",)


class Deeper(Lost):
    """What is lost stands in lists of lists, or alone."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = {"a": [("b", nn.Linear(1, 1))]}
        self.inside = nn.Sequential(nn.Linear(1, 1))
        self.round: list[object] = [torch.ones(1)]
        self.round.append(self.round)
        self.free = [torch.ones(1, requires_grad=True)]
        self.scale = torch.ones(1, requires_grad=True)
        self.result = self.scale * 2
        self.register_buffer("mean", torch.ones(1, requires_grad=True))


def test_what_stands_in_nested_lists_and_bare_tensors_are_found(ask):
    assert unregistered(Deeper()) == ("layers", "free")
    assert bare_tensors(Deeper()) == ("scale",)
    ask(RunCellCommand(source="net = nn.Linear(1, 1)\nnet.w = torch.ones(1).requires_grad_()"))
    (answer,) = ask(ReadStructureCommand(subject=ConsoleSubject("net")))
    assert answer.bare == ("w",) and not answer.unregistered


# -- lines -----------------------------------------------------------------------------------------


def test_a_line_on_lab_subject_reaches_a_module_that_a_file_made(lab, ask, write):
    path = write(
        "net.py",
        """
        from torch import nn
        class Net(nn.Module):
            def __init__(self, width=2):
                super().__init__()
                self.layer = nn.Linear(width, 2)
        """,
    )
    ask(RunFileCommand(path=str(path)))
    subject = FileSubject(str(path), "Net(width=3)")
    ask(ShowSubjectCommand(subject=subject))
    (before,) = ask(ReadStructureCommand(subject=subject))
    assert before.made and all(row.trainable for row in before.weights)
    line = "lab.subject.layer.weight.requires_grad_(False)\n"
    line += "torch.nn.init.ones_(lab.subject.layer.bias)"
    assert run(ask, line) is None
    (after,) = ask(ReadStructureCommand(subject=subject))
    rows = {row.name: row for row in after.weights}
    assert not rows["layer.weight"].trainable and rows["layer.bias"].mean == 1.0
    assert rows["layer.weight"].mean == before.weights[0].mean
    assert run(ask, "lab.subject.layer.no()").type == "AttributeError"


def test_a_module_of_the_console_was_not_made_for_the_subject(ask):
    ask(
        RunCellCommand(
            source="net = nn.Linear(3, 2)\nopt = torch.optim.SGD(net.parameters(), 0.1)\n"
            "def Net(): return nn.Linear(3, 2)"
        )
    )
    (answer,) = ask(ReadStructureCommand(subject=ConsoleSubject("net")))
    assert not answer.made and answer.optimizers == ("opt",)
    assert {row.fed_by for row in answer.weights} == {("opt",)}
    (answer,) = ask(ReadStructureCommand(subject=ConsoleSubject("Net")))
    assert answer.made


def test_data_that_cannot_be_had_hides_no_structure(ask):
    ask(RunCellCommand(source="net = nn.Linear(1, 1)"))
    for data, words in (
        ("dta", "There is no variable named `dta`"),
        ("abs(1 / 0)", "ZeroDivisionError"),
    ):
        objective = Objective(data=data)
        (answer,) = ask(ReadStructureCommand(subject=ConsoleSubject("net"), objective=objective))
        assert words in f"{answer.unrun.type}: {answer.unrun.message}" and len(answer.weights) == 2


# -- initial values --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "arguments"),
    [("normal_", "std=0.02"), ("constant_", "3"), ("kaiming_uniform_", "nonlinearity='relu'")],
)
def test_a_preview_is_what_the_line_gives_next(lab, ask, function, arguments):
    ask(RunCellCommand(source="net = nn.Sequential(nn.Linear(4, 5), nn.Linear(5, 6))"))
    net = lab.console.namespace.variables["net"]
    before, state = copy.deepcopy(net.state_dict()), torch.get_rng_state()
    names = ("1.weight", "0.weight")
    (answer,) = ask(
        PreviewInitCommand(
            subject=ConsoleSubject("net"), names=names, function=function, arguments=arguments
        )
    )
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())
    lines = [f"nn.init.{function}(net[{name[0]}].weight, {arguments})" for name in names]
    ask(RunCellCommand(source="\n".join(lines)))
    for row in answer.rows:
        tensor = net.get_parameter(row.name).detach().double()
        assert (row.mean, row.std) == (tensor.mean().item(), tensor.std().item())


def test_a_preview_names_shared_tensors_by_any_of_their_names(ask):
    ask(
        RunCellCommand(
            source="a, norm = nn.Linear(2, 2), nn.BatchNorm1d(2)\n"
            "net = nn.ModuleList([a, a, norm, norm])"
        )
    )
    names = ("1.weight", "3.running_mean")
    command = PreviewInitCommand(subject=ConsoleSubject("net"), names=names, function="ones_")
    assert [(row.name, row.mean) for row in ask(command)[0].rows] == [(name, 1.0) for name in names]


def test_a_preview_tells_what_a_function_cannot_initialise(ask):
    tensors = {"bias": torch.ones(3), "weight": torch.ones(2, 2)}
    bias, weight = preview("xavier_normal_", "", tensors)
    assert "ValueError: Fan in and fan out" in bias.problem and not weight.problem
    for function, arguments in (
        ("nothing_", ""),
        ("math", ""),
        ("normal_", "std=f()"),
        ("ones_", "("),
    ):
        with pytest.raises(LabError):
            preview(function, arguments, tensors)
    ask(RunCellCommand(source="net = nn.Linear(1, 1)"))
    with pytest.raises(LabError, match="There is no parameter or buffer `no`"):
        command = PreviewInitCommand(subject=ConsoleSubject("net"), names=("no",), function="ones_")
        ask(command)


def test_a_line_that_ties_runs_on_a_module_that_an_expression_made(ask):
    source = (
        "class Net(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)"
    )
    ask(RunCellCommand(source=source))
    subject = ConsoleSubject("Net")
    ask(ShowSubjectCommand(subject=subject))
    assert run(ask, "lab.subject.b.weight = lab.subject.a.weight") is None
    part = ask(ReadStructureCommand(subject=subject))[-1]
    assert {row.name: row.shared_with for row in part.weights}["b.weight"] == ("a.weight",)
    assert part.totals.parameters == 4 + 2 + 2
