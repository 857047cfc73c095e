"""Two modules, or one before and after, compared; every number against plain torch."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from torch import nn

from app.templates import load_template
from engine.handlers.subjects.find import find_subject
from engine.lab import Lab
from engine.project.document import Model, TrainingSetup
from engine.project.subject import CanvasSubject, ConsoleSubject, Objective
from engine.protocol import (
    CompareSubjectsCommand,
    DifferenceSnapshot,
    KeepBeforeCommand,
    KeptSnapshot,
    ModuleDifference,
    RunCellCommand,
    RunFileCommand,
    TrainCommand,
    WatchCommand,
)
from engine.restoring.module_kept import module_kept
from engine.subjects.comparing import (
    max_difference,
    module_differences,
    output_differences,
    weight_differences,
)
from engine.system.errors import LabError

from .conftest import Ask
from .eight import CASES, SEED, SETUP, Case, imported

NET = ConsoleSubject("net")
CELL = """
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Dropout(0.5), nn.Linear(6, 2))
data = (torch.randn(40, 4), torch.randn(40, 2))
"""
DATA = Objective(data="data")


def compared(ask: Ask, command: CompareSubjectsCommand) -> DifferenceSnapshot:
    (told,) = ask(command)
    assert isinstance(told, DifferenceSnapshot)
    return told


def test_the_largest_difference_is_that_of_torch():
    a, b = torch.randn(5, 3), torch.randn(5, 3)
    assert max_difference(a, b) == float((a.double() - b.double()).abs().max())
    assert max_difference(a, a.clone()) == 0.0
    odd = torch.tensor([math.nan, math.inf, 1.0])
    assert max_difference(odd, odd.clone()) == 0.0
    assert math.isnan(max_difference(odd, torch.ones(3)) or 0.0)
    assert max_difference(torch.tensor([2, 5]), torch.tensor([2, 1])) == 4.0
    assert max_difference(torch.tensor([3j]), torch.tensor([4 + 0j])) == 5.0
    assert max_difference(torch.ones(0), torch.ones(0)) == 0.0
    assert max_difference(torch.ones(2, device="meta"), torch.ones(2, device="meta")) is None
    assert max_difference(torch.eye(3).to_sparse(), 3 * torch.eye(3).to_sparse()) == 2.0


def test_modules_and_weights_that_were_added_taken_away_and_changed():
    before = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    after = nn.Sequential(nn.Linear(3, 5), nn.GELU())
    after.extra = nn.BatchNorm1d(5)
    assert module_differences(before, after) == [
        ModuleDifference("1", "ReLU", "GELU"),
        ModuleDifference("extra", "", "BatchNorm1d"),
        ModuleDifference("2", "Linear", ""),
    ]
    weights, equal = weight_differences(before, after)
    told = {row.name: (row.before, row.after, row.difference) for row in weights}
    assert equal == 0
    assert told["0.weight"] == ("(4, 3) float32", "(5, 3) float32", None)
    assert told["2.bias"] == ("(2,) float32", "", None)
    assert told["extra.running_mean"] == ("", "(5,) float32, buffer", None)
    changed = copy.deepcopy(before)
    with torch.no_grad():
        changed.get_parameter("2.bias")[1] += 0.25
    changed.get_parameter("0.weight").requires_grad_(False)
    weights, equal = weight_differences(before, changed)
    assert [(row.name, row.difference) for row in weights] == [
        ("0.weight", None),
        ("2.bias", pytest.approx(0.25, abs=1e-6)),
    ]
    assert equal == 2 and weights[0].after == "(4, 3) float32, frozen"
    assert weight_differences(before, copy.deepcopy(before)) == ([], 4)
    weights, _ = weight_differences(nn.LazyLinear(2), nn.Linear(3, 2))
    assert [(row.before, row.after, row.difference) for row in weights] == [
        ("no shape yet float32", "(2, 3) float32", None),
        ("no shape yet float32", "(2,) float32", None),
    ]


class Twice(nn.Module):
    def __init__(self, times: int) -> None:
        super().__init__()
        self.layer, self.head, self.times = nn.Linear(2, 2), nn.Linear(2, 1), times

    def forward(self, x: torch.Tensor, *, shift: torch.Tensor) -> torch.Tensor:
        for _ in range(self.times):
            x = self.layer(x)
        return self.head(x.add_(shift))


def test_outputs_are_compared_call_by_call_and_nothing_is_changed():
    torch.manual_seed(3)
    before = Twice(2)
    after = copy.deepcopy(before)
    with torch.no_grad():
        after.head.weight.mul_(2)
    x, shift = torch.randn(5, 2), torch.ones(2)
    kept = x.clone()
    rows = output_differences(before, after, ((x,), {"shift": shift}))
    assert torch.equal(x, kept)
    assert not any(part._forward_hooks for m in (before, after) for part in m.modules())
    assert [(row.path, row.call) for row in rows] == [
        ("layer", 1), ("layer", 2), ("head", 1), ("", 1)
    ]  # fmt: skip
    expected = (before(x.clone(), shift=shift) - after(x.clone(), shift=shift)).detach().abs().max()
    assert [row.difference for row in rows[:2]] == [0.0, 0.0]
    assert rows[2].difference == rows[3].difference == pytest.approx(float(expected))
    after.times, before.times = 1, 3
    rows = output_differences(before, after, ((x,), {"shift": shift}))
    assert [(row.path, row.call, row.before, row.after) for row in rows[-2:]] == [
        ("layer", 2, "(5, 2) float32", ""),
        ("layer", 3, "(5, 2) float32", ""),
    ]
    (row,) = output_differences(nn.Linear(2, 3), nn.Linear(2, 4), ((x,), {}))
    assert (row.before, row.after, row.difference) == ("(5, 3) float32", "(5, 4) float32", None)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_of_eight_models_before_and_after_an_epoch(lab: Lab, ask: Ask, case: Case) -> None:
    ask(RunFileCommand(path=str(case.path)))
    assert ask(KeepBeforeCommand(subject=case.subject, training=SETUP))[0].title
    command = CompareSubjectsCommand(subject=case.subject, objective=case.objective, training=SETUP)
    same = compared(ask, command)
    assert (same.modules, same.weights, same.first) == ((), (), -1)
    with imported(case.path) as file:
        initial = {name: value.clone() for name, value in case.model(file).state_dict().items()}
    train = TrainCommand(
        model=Model(), training=SETUP, subject=case.subject, objective=case.objective
    )
    assert ask(train)[-1].state == "finished"
    told = compared(ask, command)
    assert told.module_count == 0
    module = find_subject(lab, case.subject, Model(), SETUP).module
    now = module.state_dict()
    apart = {name: max_difference(initial[name], now[name]) for name in now}
    shared = dict(module.named_parameters(remove_duplicate=False))
    assert {row.name: row.difference for row in told.weights} == {
        name: value for name, value in apart.items() if value != 0.0
    }
    assert told.weight_count + told.equal_weights >= len(shared)
    if not told.unrun:
        assert told.outputs[told.first].difference != 0.0
        assert all(row.difference == 0.0 for row in told.outputs[: told.first])
        assert all(row.difference == 0.0 for row in same.outputs)
        assert len(same.outputs) == same.output_count > 0
    assert SETUP.seed == SEED


def test_equal_outputs_with_dropout_and_batch_norm_and_what_differs_first(lab, ask):
    ask(RunCellCommand(source=CELL))
    ask(WatchCommand(subject=NET, paths=("0",)))
    assert ask(KeepBeforeCommand(subject=NET)) == [KeptSnapshot(title="net")]
    command = CompareSubjectsCommand(subject=NET, objective=DATA)
    before = {k: v.clone() for k, v in ask_net(lab).state_dict().items()}
    same = compared(ask, command)
    assert all(torch.equal(before[k], v) for k, v in ask_net(lab).state_dict().items())
    assert same.before == "net, before" and same.after == "net"
    assert same.first == -1 and same.output_count == 6 and same.unrun is None
    lab.subjects.watching.begin()
    with lab.subjects.before[1] as state, module_kept(state.module):
        state.module(torch.ones(3, 4))
    assert lab.subjects.watching.take() == {}  # the kept state is not watched
    ask(RunCellCommand(source="with torch.no_grad(): net[1].bias[2] += 0.5"))
    told = compared(ask, command)
    assert [(row.name, row.difference) for row in told.weights] == [("1.bias", 0.5)]
    assert told.equal_weights == 8
    assert told.outputs[told.first].path == "1"
    assert told.outputs[told.first].difference == pytest.approx(0.5, abs=1e-6)
    ask(RunCellCommand(source="net.eval()"))
    assert compared(ask, command).outputs[1].path == "1"
    assert not ask_net(lab).training


def ask_net(lab: Lab) -> nn.Module:
    return lab.console.namespace.variables["net"]


def test_two_subjects_and_a_forward_that_does_not_fit(ask):
    ask(
        RunCellCommand(
            source=CELL + "import copy\nother = copy.deepcopy(net)\nwide = nn.Linear(9, 1)"
        )
    )
    other = ConsoleSubject("other")
    told = compared(ask, CompareSubjectsCommand(subject=NET, other=other, objective=DATA))
    assert told.before == "other" and told.first == -1 and told.weight_count == 0
    wide = ConsoleSubject("wide")
    told = compared(ask, CompareSubjectsCommand(subject=NET, other=wide, objective=DATA))
    assert told.unrun.type == "RuntimeError" and told.outputs == ()
    assert told.modules[0] == ModuleDifference("", "Linear", "Sequential")
    told = compared(ask, CompareSubjectsCommand(subject=NET, other=other))
    assert told.unrun.hint == "Name data under Train."


def test_code_is_compared_with_the_model_of_blocks(ask):
    """With a copy of it, before and after one of its weights has changed."""
    project = load_template("mlp")
    source = "data = canvas.batch()\nimport copy\nnet = copy.deepcopy(canvas.model)\n"
    ask(RunCellCommand(source=source, model=project.model, training=project.training))
    command = CompareSubjectsCommand(
        subject=NET,
        other=CanvasSubject(),
        model=project.model,
        objective=DATA,
        training=project.training,
    )
    told = compared(ask, command)
    assert (told.before, told.after, told.unrun, told.first) == ("Canvas", "net", None, -1)
    assert {row.path for row in told.modules} <= {""}  # torch.fx copies it under another class
    assert told.weight_count == 0 and told.equal_weights > 0
    ask(RunCellCommand(source="with torch.no_grad():\n    net.linear2.weight[0, 0] += 1"))
    told = compared(ask, command)
    assert [row.name for row in told.weights] == ["linear2.weight"]
    assert told.outputs[told.first].path == "linear2"


def test_a_step_that_calls_only_parts_is_told(ask):
    source = "def step(batch):\n    return net[0](batch[0]).sum()"
    ask(RunCellCommand(source=CELL + source))
    told = compared(ask, CompareSubjectsCommand(subject=NET, other=NET, objective=DATA))
    assert "does not call net itself" in told.unrun.message


def test_a_kept_copy_holds_nothing_of_the_console(lab, ask):
    ask(RunCellCommand(source=CELL))
    ask(KeepBeforeCommand(subject=NET))
    title, before = lab.subjects.before
    assert title == "net, before"
    own = {p.data_ptr() for p in ask_net(lab).parameters()}
    assert own.isdisjoint(p.data_ptr() for _, p in before.named_parameters())


def test_without_a_copy_it_says_what_to_do_and_what_deepcopy_refuses_is_kept(ask):
    ask(RunCellCommand(source=CELL))
    with pytest.raises(LabError, match="No copy is kept") as refused:
        ask(CompareSubjectsCommand(subject=NET, training=TrainingSetup()))
    assert refused.value.hint == "Keep one first, then change the subject."
    ask(RunCellCommand(source="net.lines = (i for i in [])"))
    ask(KeepBeforeCommand(subject=NET))
    assert compared(ask, CompareSubjectsCommand(subject=NET, objective=DATA)).equal_weights
