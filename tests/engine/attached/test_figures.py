"""Figures of an attached loop: what is logged, and modules that are watched, against the script's
own numbers. Of many short steps only some are looked at."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import pytest
import torch

from engine.attached.figures import LoggedFigures
from engine.console.users_lab import UsersLab
from engine.loops.logged import histogram
from engine.project.subject import ConsoleSubject
from engine.protocol import (
    ContinueTrainingCommand,
    DoneSnapshot,
    HeldSnapshot,
    HistogramsSnapshot,
    ImagesSnapshot,
    LoopSnapshot,
    ModuleNormsSnapshot,
    ReadHistogramsCommand,
    ReadImagesCommand,
    ReadModuleNormsCommand,
    ReadValuesCommand,
    Snapshot,
    ValuesSnapshot,
    WatchCommand,
)
from tests.engine.attaching import Script
from tests.engine.drawn import drawn

SCRIPT = """
import torch
from torch import nn
import tensorlab as lab

torch.manual_seed(0)
x = torch.randn(64, 5)
model = nn.Sequential(nn.Linear(5, 8), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
means = []
model[0].register_forward_hook(lambda m, args, out: means.append(out.mean().item()))
lab.watch(model, optimizer, wait=True)
lab.hold()
for number in range(1, 1201):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
    lab.log(each=torch.tensor(number))
    if number % 400 == 0:
        lab.log(seldom=number)
print(means)
"""


def rows(snapshots: Iterable[Snapshot]) -> dict[int, dict[str, float]]:
    """The figures of the steps, by their number."""
    found: dict[int, dict[str, float]] = {}
    for snapshot in snapshots:
        if isinstance(snapshot, LoopSnapshot):
            columns = snapshot.steps
            for place, step in enumerate(columns.step):
                figures = {name: column[place] for name, column in columns.figures.items()}
                found[step] = {**figures, "step_ms": columns.step_ms[place]}
    return found


def test_what_is_logged_in_each_step_has_no_gaps_and_what_is_seldom_is_not_lost(
    script: Callable[..., Script],
) -> None:
    running = script(SCRIPT)
    running.address()
    window = running.attach()
    window.until(HeldSnapshot)
    window.send(ContinueTrainingCommand())
    told = window.to_end()
    running.end()
    found, each = rows(told), drawn(told, "each")
    assert len(found) > 50 and len(each) > 50
    assert each == {step: step for step in each}
    assert each[1200] == 1200  # the last one, whether its step was looked at or not
    assert drawn(told, "seldom") == {400: 400, 800: 800, 1200: 1200}
    assert all(row["step_ms"] > 0 for step, row in found.items() if step > 1)


IN_BOTH_ORDERS = """
import torch
import tensorlab as lab

net = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)
lab.watch(net, optimizer, wait=True)
losses = []
for number in range(1, 31):
    optimizer.zero_grad()
    loss = net(torch.ones(4, 2)).square().mean()
    lab.log(after_forward=number, forward_loss=loss)
    loss.backward()
    lab.log(after_backward=number)
    optimizer.step()
    losses.append(loss.item())
    lab.log(after_step=number, step_loss=2 * loss)
    lab.log(step=100 * number, far=number)
print(losses)
"""


def test_what_is_logged_is_drawn_at_its_step_before_the_update_and_after_it(
    script: Callable[..., Script],
) -> None:
    """In the order that the script has, also what it logs last; or at the step that it names."""
    running = script(IN_BOTH_ORDERS)
    running.address()
    told = running.attach().to_end()
    losses = dict(enumerate(eval(running.end()), 1))
    numbers = {number: number for number in range(1, 31)}
    for name in ("after_forward", "after_backward", "after_step"):
        assert drawn(told, name) == numbers, name
    assert drawn(told, "forward_loss") == pytest.approx(losses)
    assert drawn(told, "step_loss") == pytest.approx({n: 2 * each for n, each in losses.items()})
    assert drawn(told, "far") == {100 * number: number for number in range(1, 31)}


LOGGING = """
import torch
from torch import nn
import tensorlab as lab

torch.manual_seed(0)
x = torch.randn(64, 5)
model = nn.Linear(5, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
lab.log(before=x)
lab.watch(model, optimizer, wait=True)
lab.hold()
for number in range(4):
    optimizer.zero_grad()
    out = model(x)
    out.square().mean().backward()
    if number == 2:
        lab.log(out=out, weight=lab.histogram(model.weight), batch=lab.image(x))
        logged = out.detach().clone()
    optimizer.step()
lab.hold()
print(torch.histc(logged, 64).tolist(), logged.tolist())
"""


def test_tensors_that_are_logged_are_counted_and_copied(script: Callable[..., Script]) -> None:
    running = script(LOGGING)
    running.address()
    window = running.attach()
    window.until(HeldSnapshot)
    window.send(ContinueTrainingCommand())
    window.until(HeldSnapshot, lambda held: held.at)
    window.send(ReadHistogramsCommand(folder="", of_loop=True, name="out"))
    found = window.until(HistogramsSnapshot)
    assert (found.kind, found.names, found.steps) == ("logged", ("out", "weight"), (3,))
    window.send(ReadValuesCommand(expression="lab.logged['out']", row_count=64, column_count=3))
    values = window.until(ValuesSnapshot)
    window.send(ReadImagesCommand())
    (images,) = window.until(ImagesSnapshot).steps
    assert (images.step, images.shape) == (3, (64, 5))
    window.send(ContinueTrainingCommand())
    window.to_end()
    counts, logged = eval(running.end().replace("] [", "], ["))
    assert torch.frombuffer(bytearray(found.counts), dtype=torch.int32).tolist() == counts
    assert torch.equal(
        torch.tensor([[float(text) for text in row] for row in values.cells]), torch.tensor(logged)
    )


LOOKED_AT = """
import torch
import tensorlab as lab

torch.manual_seed(0)
x = torch.randn(64, 5)
model = torch.nn.Linear(5, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-1)
lab.watch(model, optimizer, wait=True)
norms, highs = {}, {}
for number in range(1, 20):
    if number == 4:
        lab.hold()
    optimizer.zero_grad()
    model(x).square().mean().backward()
    before = [p.detach().clone() for p in model.parameters()]
    gradients = [p.grad.norm().item() for p in model.parameters()]
    optimizer.step()
    moved = [(p.detach() - b).norm().item() for p, b in zip(model.parameters(), before)]
    norms[number] = list(zip(gradients, [b.norm().item() for b in before], moved))
    highs[number] = model.weight.max().item()
lab.hold()
print((norms, highs))
"""


def test_how_the_parameters_move_is_looked_at_once_a_window_asks(
    script: Callable[..., Script],
) -> None:
    running = script(LOOKED_AT)
    running.address()
    window = running.attach()
    ask = ReadModuleNormsCommand(folder="", of_loop=True, by_parameter=True)
    window.until(HeldSnapshot, lambda held: held.at)
    window.send(ask)
    assert window.until(ModuleNormsSnapshot) == ModuleNormsSnapshot(reply_to=1, folder="")
    window.send(ContinueTrainingCommand())
    window.until(HeldSnapshot, lambda held: held.at)
    window.send(ask)
    found = window.until(ModuleNormsSnapshot)
    window.send(ReadHistogramsCommand(folder="", of_loop=True, name="model.weight"))
    weight = window.until(HistogramsSnapshot)
    window.send(ContinueTrainingCommand())
    window.to_end()
    norms, highs = eval(running.end())
    first = {3 + number for number in (1, 2, 4, 8, 16)}  # of those since it has asked
    assert first <= set(found.steps) and min(found.steps) == 4
    assert found.names == ("model.weight", "model.bias")
    for place, line in enumerate(found.lines):
        for at, step in enumerate(found.steps):
            of_step = (line.gradient[at], line.weight[at], line.update[at])
            assert of_step == pytest.approx(norms[step][place], rel=1e-5)
    assert dict(zip(weight.steps, weight.highs, strict=True)) == {
        step: highs[step] for step in found.steps
    }


def test_a_script_without_an_optimizer_counts_the_steps_itself(
    script: Callable[..., Script],
) -> None:
    running = script("""
import torch
import tensorlab as lab
lab.watch(wait=True)
lab.hold()
for step in range(10, 50, 10):
    lab.log(step=step, x=torch.arange(4.0) * step)
lab.hold()
""")
    running.address()
    window = running.attach()
    window.until(HeldSnapshot)
    window.send(ContinueTrainingCommand())
    window.until(HeldSnapshot, lambda held: held.at)
    window.send(ReadHistogramsCommand(folder="", of_loop=True))
    found = window.until(HistogramsSnapshot)
    assert dict(zip(found.steps, found.highs, strict=True)) == {10: 30, 20: 60, 30: 90, 40: 120}
    window.close()
    running.end()


def test_a_module_that_a_window_watches_has_its_figures_in_each_step(
    script: Callable[..., Script],
) -> None:
    running = script(SCRIPT.replace("1201", "61"))
    running.address()
    window = running.attach()
    window.until(HeldSnapshot)
    asked = window.send(WatchCommand(subject=ConsoleSubject("model"), paths=("0",)))
    window.send(ContinueTrainingCommand())
    found = rows(window.to_end())
    assert any(isinstance(s, DoneSnapshot) and s.reply_to == asked for s in window.seen)
    means = eval(running.end())
    watched = {
        step: row["0: output mean"]
        for step, row in found.items()
        if not math.isnan(row.get("0: output mean", math.nan))
    }
    assert len(watched) > 40
    for step, mean in watched.items():
        assert math.isclose(mean, means[step - 1], rel_tol=1e-4, abs_tol=1e-6)


def test_figures_that_are_passed_by_are_those_that_would_not_be_read() -> None:
    figures = LoggedFigures(UsersLab())
    assert not figures.pass_by({"a": 1.0}, 0, None)  # new
    figures.add({"a": 1.0}, 0, 1, is_looked_at=False)
    for steps in (1, 2, 2):
        assert figures.pass_by({"a": torch.ones(1)}, steps, None)
    assert not figures.pass_by({"a": 1.0}, 4, None)  # not logged in every step
    figures.add({"a": 1.0}, 4, 5, is_looked_at=False)
    assert not figures.pass_by({"a": torch.ones(2)}, 5, None)
    assert not figures.pass_by({"a": histogram(1.0)}, 5, None)
    assert not figures.pass_by({"a": 1.0, "b": 1.0}, 5, None)
    assert figures.pass_by({"a": 1.0}, 5, None)


@pytest.mark.parametrize("kind", [float, int, torch.tensor, lambda x: torch.full((1,), x / 1.0)])
def test_of_figures_that_are_passed_by_the_last_is_drawn(kind: Callable[[float], Any]) -> None:
    """At its step, as it was: its tensor may be written into, and is not kept."""
    lab = UsersLab()
    figures, steps = LoggedFigures(lab), 0

    def step_of(names: object) -> int:
        return steps + 1  # it is logged before the step that it belongs to

    with lab.counted(step_of):
        for steps in range(10):
            value = kind(steps)
            figures.add({"a": value}, steps, None, is_looked_at=steps in (0, 4))
            if isinstance(value, torch.Tensor):
                value.fill_(-1)
                kept = weakref.ref(value)
                del value
                assert kept() is None
        figures.catch_up()
        figures.catch_up()
    ((name, points),) = lab.numbers.read().items()
    assert (name, points.steps, points.values) == ("a", (1, 5, 10), (0, 4, 9))


def test_a_figure_that_is_passed_by_and_not_logged_again_at_once_is_drawn_at_the_step_it_names():
    lab = UsersLab()
    figures = LoggedFigures(lab)
    for steps in range(4):
        figures.add({"a": steps}, steps, 10 * steps, is_looked_at=steps == 0)
    figures.add({"a": 9}, 9, 90, is_looked_at=False)
    assert lab.numbers.read()["a"].steps == (0, 30, 90)
