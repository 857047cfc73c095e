"""Looks at the parameters of loops in cells, against what the same loop reads from torch."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

import pytest
import torch

from engine.handlers.training.pictures.looks import read_histograms, read_module_norms
from engine.loops.loop_looks import LoopLooks
from engine.protocol import (
    HistogramsSnapshot,
    ModuleNormsSnapshot,
    ReadHistogramsCommand,
    ReadModuleNormsCommand,
)
from engine.runs import parameter_figures
from engine.system.control import Control
from engine.training.looks.looks import EARLY, Looks
from tests.engine.loops.test_own_loops import BEGIN, Desk

LOOP = """
norms, kept = {}, {}
for step in range(1, 21):
    optimizer.zero_grad()
    F.mse_loss(net(x), y).backward()
    before = [p.detach().clone() for p in net.parameters()]
    gradients = [p.grad.norm().item() for p in net.parameters()]
    optimizer.step()
    moved = [(p.detach() - b).norm().item() for p, b in zip(net.parameters(), before)]
    kept[step] = net[0].weight.detach().clone()
    norms[step] = list(zip(gradients, [b.norm().item() for b in before], moved))
drawn = torch.rand(3)
"""


@pytest.fixture
def desk() -> Iterator[Desk]:
    desk = Desk()
    yield desk
    desk.session.close()


def lines(desk: Desk, **changes) -> ModuleNormsSnapshot:
    command = ReadModuleNormsCommand(folder="", of_loop=True, by_parameter=True, **changes)
    (found,) = read_module_norms(desk.session.lab, command)
    return found


def histograms(
    desk: Desk, name: str, kind: Literal["weights", "gradients"] = "weights"
) -> HistogramsSnapshot:
    command = ReadHistogramsCommand(folder="", of_loop=True, name=name, kind=kind)
    (found,) = read_histograms(desk.session.lab, command)
    return found


def test_norms_and_histograms_are_those_that_torch_gives(desk: Desk) -> None:
    assert lines(desk) == ModuleNormsSnapshot(folder="")
    desk.run(BEGIN)
    desk.run(LOOP)
    found, norms = lines(desk), desk.variables["norms"]
    assert {1, 2, 4, 8, 16} <= set(found.steps)
    assert found.names == ("net.0.weight", "net.0.bias", "net.3.weight", "net.3.bias")
    for place, line in enumerate(found.lines):
        for at, step in enumerate(found.steps):
            of_step = (line.gradient[at], line.weight[at], line.update[at])
            assert of_step == pytest.approx(norms[step][place], rel=1e-5)
    of_weight = histograms(desk, "net.3.weight", "gradients")
    assert of_weight.names == found.names and of_weight.steps == found.steps
    weight, kept = histograms(desk, "net.0.weight"), desk.variables["kept"]
    ends = [(float(kept[step].min()), float(kept[step].max())) for step in weight.steps]
    assert list(zip(weight.lows, weight.highs, strict=True)) == ends
    counts = torch.frombuffer(bytearray(weight.counts), dtype=torch.int32).reshape(-1, 64)
    for step, of_step in zip(weight.steps, counts, strict=True):
        assert torch.equal(of_step.float(), torch.histc(kept[step], 64))


def test_the_loop_computes_the_same_bits_as_without(desk: Desk) -> None:
    desk.run(BEGIN)
    desk.run(LOOP)
    alone: dict[str, object] = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional}
    exec(BEGIN, alone)
    exec(LOOP, alone)
    assert torch.equal(desk.variables["drawn"], alone["drawn"])  # pyright: ignore[reportArgumentType]
    assert desk.variables["norms"] == alone["norms"]


def test_a_step_with_a_closure_has_the_gradients_of_its_last_call(desk: Desk) -> None:
    desk.run(BEGIN)
    desk.run("""
optimizer = torch.optim.LBFGS(net.parameters(), max_iter=3)
def closure():
    optimizer.zero_grad()
    loss = F.mse_loss(net(x), y)
    loss.backward()
    return loss
optimizer.step(closure)
last = [p.grad.norm().item() for p in net.parameters()]
""")
    found = [line.gradient[0] for line in lines(desk).lines]
    assert found == pytest.approx(desk.variables["last"], rel=1e-5)


def test_parameters_have_the_names_of_the_modules_that_hold_them(desk: Desk) -> None:
    """The name of the module's variable before; a parameter of no variable has a number."""
    desk.run("""
a, b = nn.Linear(2, 2), nn.Linear(2, 1, bias=False)
first = torch.optim.SGD([*a.parameters(), *b.parameters(), nn.Parameter(torch.ones(3))], lr=0.1)
second = torch.optim.SGD(b.parameters(), lr=0.1)
for _ in range(3):
    b(a(torch.ones(4, 2))).sum().backward()
    first.step()
    second.step()
""")
    assert lines(desk).names == ("a.weight", "a.bias", "b.weight", "parameter 1")
    assert set(histograms(desk, "").names) == set(lines(desk).names)


def test_a_parameter_that_is_frozen_or_a_plain_tensor_has_no_line(desk: Desk) -> None:
    desk.run("""
a = nn.Linear(2, 2)
a.bias.requires_grad_(False)
plain = torch.ones(2, requires_grad=True)
optimizer = torch.optim.SGD([*a.parameters(), plain], lr=0.1)
for _ in range(3):
    (a(torch.ones(4, 2)) + plain).sum().backward()
    optimizer.step()
""")
    assert lines(desk).names == ("a.weight",)


def test_an_optimizer_that_steps_for_the_first_time_late_waits_for_its_look() -> None:
    """Until then no step is shown; an error of a look ends all of them."""
    steps, spent, begun = 0, [], []
    looks = LoopLooks(Control(), dict, spent.append, begun.append, lambda: steps)
    first, late = (torch.optim.SGD([torch.nn.Parameter(torch.ones(2))], 0.1) for _ in range(2))

    def step(optimizer: torch.optim.Optimizer) -> bool:
        """Whether it was looked at."""
        nonlocal steps
        before = len(spent)
        looks.before_step(optimizer, False)
        steps += 1
        looks.after_step(optimizer, False)
        return len(spent) > before

    assert step(first) and step(first)
    assert looks.shown_from_s == -math.inf and len(begun) == 1
    steps = 2 * EARLY
    for each in (first, late):
        looks._of[each] = Looks(looks._named(each), 0.0)
        looks._of[each].due_s = math.inf
    looks._of[late].due_s = 7.0
    assert not step(first) and looks.shown_from_s == 7.0
    assert step(late) and looks.shown_from_s > 7.0 and len(begun) == 1
    del late, first
    steps = 0
    fresh = torch.optim.SGD([torch.nn.Parameter(torch.ones(2))], 0.1)
    assert step(fresh)


def test_a_long_loop_keeps_some_of_its_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parameter_figures, "SOME", 1)
    monkeypatch.setattr(parameter_figures, "LEAST_LOOKS", 2)
    monkeypatch.setattr(parameter_figures, "MAX_LOOKS", {"parameters": 4, "histograms": 4})
    begun: list = []
    done = [0]
    looks = LoopLooks(Control(), dict, lambda seconds: None, begun.append, lambda: done[0])
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(2))], 0.1)
    for done[0] in range(16):  # steps 1, 2, 4, 8 and 16 have a look however long it takes
        looks.before_step(optimizer, False)
        looks.after_step(optimizer, False)
    rows = begun[0].execute("SELECT DISTINCT step FROM parameters").fetchall()
    kept = [step for (step,) in rows]
    assert len(begun) == 1 and (kept[0], kept[-1]) == (1, 16) and len(kept) <= 4


def test_gradients_that_a_fused_step_unscales_are_told_unscaled() -> None:
    begun: list = []
    looks = LoopLooks(Control(), dict, lambda seconds: None, begun.append, lambda: 0)
    weight = torch.nn.Parameter(torch.ones(4))
    optimizer = torch.optim.SGD([weight], 0.1)
    weight.grad = torch.full((4,), 8.0)
    optimizer.grad_scale = torch.tensor(4.0)  # pyright: ignore[reportAttributeAccessIssue]
    looks.before_step(optimizer, False)
    looks.after_step(optimizer, False)
    (row,) = begun[0].execute("SELECT * FROM parameters").fetchall()
    assert 4.0 in row and 16.0 not in row  # the norm is that of four twos


def test_the_next_loop_begins_anew_and_code_without_one_keeps_it(desk: Desk) -> None:
    desk.run(BEGIN)
    desk.run(LOOP)
    desk.run("x = x * 2")
    assert lines(desk).steps[0] == 1 and len(lines(desk).names) == 4
    desk.run("""
other = nn.Linear(1, 1)
other(torch.ones(1, 1)).backward()
torch.optim.SGD(other.parameters(), lr=0.1).step()
""")
    assert lines(desk).names == ("other.weight", "other.bias") and lines(desk).steps == (1,)


def test_an_error_of_a_look_does_not_reach_the_loop(desk: Desk, monkeypatch, caplog) -> None:
    desk.run(BEGIN)
    monkeypatch.setattr("engine.training.looks.looks.histogram", lambda values: 1 / 0)
    desk.run(LOOP)
    assert desk.end.ok and len(desk.variables["norms"]) == 20
    assert caplog.text.count("cannot be looked at") == 1
