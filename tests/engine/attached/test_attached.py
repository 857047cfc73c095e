"""A script that a window attaches to: held, its backward stepped, a gradient edited, let go on.
What it computes is what plain torch computes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
import torch
from torch import nn

from engine.protocol import (
    BackwardSnapshot,
    CellSnapshot,
    ContinueTrainingCommand,
    DoneSnapshot,
    ErrorSnapshot,
    HeldSnapshot,
    LoopSnapshot,
    OutputSnapshot,
    PauseSignal,
    ReadVariablesCommand,
    ReadySnapshot,
    RunCellCommand,
    RunHeldCommand,
    StepBackwardSignal,
    StepTrainingCommand,
    VariablesSnapshot,
)
from tests.engine.attaching import Script, Window
from tests.engine.drawn import drawn

TRAINING = """
import itertools, sys
import torch
from torch import nn
import tensorlab as lab

def train():
    torch.manual_seed(0)
    x = torch.randn(64, 5)
    y = x.sum(1, keepdim=True)
    model = nn.Sequential(nn.Linear(5, 8), nn.Dropout(0.5), nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    lab.watch(model, optimizer, name="net", wait="wait" in sys.argv)
    limit = [10**9]
    for step in itertools.count():
        if step == limit[0]:
            break
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        lab.log(doubled=2 * loss, half=loss.item() / 2)
    print(torch.cat([p.flatten() for p in model.parameters()]).tolist())
    print(torch.rand(3).tolist())

train()
"""
"""It goes on until a window that holds it lets it end."""
SHORT = 200
BRIEF = TRAINING.replace("10**9", str(SHORT))


def let_it_end(window: Window) -> int:
    """In 20 steps, while it is held. Returns how many it will have made."""
    asked = window.send(RunHeldCommand(source="limit[0] = step + 20; limit[0]"))
    steps = window.until(OutputSnapshot, lambda printed: printed.reply_to == asked).text
    window.until(DoneSnapshot, lambda done: done.reply_to == asked)
    return int(steps)


@cache
def plain(steps: int, edit: Callable[[int, nn.Module], None] = lambda step, model: None) -> str:
    """What the script prints, by plain torch; `edit(step, model)` comes before each update."""
    torch.manual_seed(0)
    x = torch.randn(64, 5)
    y = x.sum(1, keepdim=True)
    model = nn.Sequential(nn.Linear(5, 8), nn.Dropout(0.5), nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(steps):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        edit(step, model)
        optimizer.step()
    weights = torch.cat([p.flatten() for p in model.parameters()]).tolist()
    return f"{weights}\n{torch.rand(3).tolist()}\n"


def test_without_a_window_the_script_is_as_without_the_lab(script: Callable[..., Script]) -> None:
    assert script(BRIEF).end() == plain(SHORT)


def test_a_loop_is_drawn_held_and_let_go_on(script: Callable[..., Script]) -> None:
    running = script(TRAINING, "wait")
    running.address()
    window = running.attach()
    assert window.welcome.about.name == "net"
    assert window.welcome.about.pid == running.process.pid
    assert window.next().__class__ is ReadySnapshot
    window.send(PauseSignal())
    held = window.until(HeldSnapshot)
    assert (held.at, held.function) == ("step", "train")
    assert held.source == TRAINING
    names = {v.name: v for v in window.until(VariablesSnapshot).variables}
    assert names["loss"].shape == ()
    asked = window.send(RunHeldCommand(source="print(step, len(optimizer.state)); step"))
    printed = window.until(OutputSnapshot)
    step = int(printed.text.split()[0])
    assert printed.text == f"{step} 4\n"
    assert printed.reply_to == asked
    assert window.until(CellSnapshot).ok
    window.until(DoneSnapshot, lambda done: done.reply_to == asked)
    window.send(StepTrainingCommand())
    assert window.until(HeldSnapshot, lambda held: held.at).at == "step"
    asked = window.send(RunHeldCommand(source="step"))
    assert window.until(OutputSnapshot).text == f"{step + 1}\n"
    steps = let_it_end(window)
    window.send(ContinueTrainingCommand())
    last = window.to_end()
    ended = [s for s in last if isinstance(s, LoopSnapshot)][-1]
    assert (ended.state, ended.step) == ("finished", steps)
    assert running.end() == plain(steps)


def test_a_breakpoint_holds_the_script_where_it_stands(script: Callable[..., Script]) -> None:
    """In the thread that trains; another one runs on."""
    stops = "if step == 3:\n            aside(); breakpoint()\n        optimizer.zero_grad()"
    aside = "def aside():\n    other = Thread(target=lambda: breakpoint())\n    other.start()\n"
    aside += "    other.join()\n\n"
    source = BRIEF.replace("optimizer.zero_grad()", stops).replace(
        "def train", f"from threading import Thread\n{aside}def train"
    )
    running = script(source, "wait")
    running.address()
    window = running.attach()
    held = window.until(HeldSnapshot, lambda held: held.at)
    assert (held.at, held.function) == ("line", "train")
    assert "breakpoint()" in source.splitlines()[held.line - 1]
    asked = window.send(RunHeldCommand(source="step"))
    assert window.until(OutputSnapshot, lambda said: said.reply_to == asked).text == "3\n"
    window.send(ContinueTrainingCommand())
    window.to_end()
    assert running.end() == plain(SHORT)


def test_figures_are_those_of_the_loop(script: Callable[..., Script]) -> None:
    running = script(BRIEF, "wait")
    running.address()
    window = running.attach()
    loops = [s for s in window.to_end() if isinstance(s, LoopSnapshot)]
    columns = [s.steps for s in loops]
    found = dict(
        zip(
            (step for c in columns for step in c.step),
            (loss for c in columns for loss in c.loss),
            strict=True,
        )
    )
    expected: dict[int, float] = {}
    torch.manual_seed(0)
    x = torch.randn(64, 5)
    y = x.sum(1, keepdim=True)
    model = nn.Sequential(nn.Linear(5, 8), nn.Dropout(0.5), nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(SHORT):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        expected[step + 1] = loss.item()
    assert found.keys() <= expected.keys()
    assert loops[-1].step == SHORT
    assert len(found) >= 2  # a loop of so short steps is not measured in each of them
    for step, loss in found.items():
        assert loss == pytest.approx(expected[step], rel=1e-6)
    assert running.end() == plain(SHORT)


def test_a_gradient_that_is_edited_while_held_in_backward_is_the_one_that_the_step_takes(
    script: Callable[..., Script],
) -> None:
    held_in = 3
    source = BRIEF.replace(
        "        loss.backward()",
        f"""
        if step == {held_in}:
            with lab.backward(loss):
                pass
        else:
            loss.backward()
        if step == {held_in}:
            lab.hold()
""",
    )
    running = script(source, "wait")
    running.address()
    window = running.attach()
    assert window.until(HeldSnapshot, lambda held: held.at).at == "backward"
    window.until(BackwardSnapshot)
    window.send(ContinueTrainingCommand())
    assert window.until(HeldSnapshot, lambda held: held.at).at == "line"
    asked = window.send(RunHeldCommand(source="model[0].weight.grad *= 100; step"))
    assert window.until(OutputSnapshot).text == f"{held_in}\n"
    window.until(DoneSnapshot, lambda done: done.reply_to == asked)
    window.send(ContinueTrainingCommand())

    def edit(step: int, model: nn.Module) -> None:
        if step == held_in:
            gradient = model.get_parameter("0.weight").grad
            assert gradient is not None
            gradient *= 100

    window.to_end()
    assert running.end() == plain(SHORT, edit) != plain(SHORT)


def test_backward_of_the_body_is_stepped_once(script: Callable[..., Script]) -> None:
    """`with lab.backward(loss):` runs backward itself, unless its body does."""
    body = """
        with lab.backward(loss):
            loss.backward()
"""
    running = script(BRIEF.replace("        loss.backward()", body))
    assert running.end() == plain(SHORT)


def test_the_window_steps_the_loops_own_backward(script: Callable[..., Script]) -> None:
    running = script(TRAINING, "wait")
    running.address()
    window = running.attach()
    window.send(StepBackwardSignal(on=True))
    held = window.until(HeldSnapshot, lambda held: held.at == "backward")
    assert held.source.splitlines()[held.line - 1].strip() == "loss.backward()"
    window.until(BackwardSnapshot)
    window.send(StepBackwardSignal(on=False))
    steps = let_it_end(window)
    window.send(ContinueTrainingCommand())
    window.to_end()
    assert running.end() == plain(steps)


def test_a_window_that_leaves_while_the_script_is_held_lets_it_go_on(
    script: Callable[..., Script],
) -> None:
    running = script(TRAINING, "wait")
    running.address()
    window = running.attach()
    window.send(PauseSignal())
    window.until(HeldSnapshot)
    steps = let_it_end(window)
    window.close()
    assert running.end() == plain(steps)


def test_a_second_window_watches(script: Callable[..., Script]) -> None:
    running = script(TRAINING, "wait")
    running.address()
    first = running.attach()
    first.send(PauseSignal())
    first.until(HeldSnapshot)
    second = running.attach()
    assert second.welcome.role == "watch"
    assert second.until(HeldSnapshot).at == "step"
    asked = second.send(ReadVariablesCommand())
    variables = second.until(VariablesSnapshot, lambda s: s.reply_to == asked)
    assert "loss" in {variable.name for variable in variables.variables}
    second.send(RunHeldCommand(source="loss"))
    assert "steers" in second.until(ErrorSnapshot).error.message
    second.send(ContinueTrainingCommand())
    second.until(ErrorSnapshot)
    steps = let_it_end(first)
    first.send(ContinueTrainingCommand())
    assert [s for s in second.to_end() if isinstance(s, LoopSnapshot)][-1].state == "finished"
    first.to_end()
    assert running.end() == plain(steps)


def test_other_code_does_not_run_in_the_users_process(script: Callable[..., Script]) -> None:
    running = script(BRIEF, "wait")
    running.address()
    window = running.attach()
    window.send(RunCellCommand(source="1 / 0"))
    assert "only while it is held" in window.until(ErrorSnapshot).error.message
    window.to_end()
    assert running.end() == plain(SHORT)


def test_a_script_that_is_killed_hangs_up(script: Callable[..., Script]) -> None:
    running = script(TRAINING, "wait")
    running.address()
    window = running.attach()
    window.send(PauseSignal())
    window.until(HeldSnapshot)
    running.kill()
    window.to_end()


def test_a_loop_without_an_optimizer_has_a_step_at_each_log(
    script: Callable[..., Script],
) -> None:
    """As gradient descent by hand does: w -= rate * w.grad."""
    running = script("""
import torch
import tensorlab as lab

w = torch.tensor(4.0, requires_grad=True)
lab.watch(wait=True)
for step in range(1, 9):
    loss = w.square()
    loss.backward()
    with torch.no_grad():
        w -= 0.25 * w.grad
        w.grad = None
    lab.log(step=10 * step, loss=loss, weight=w)
""")
    running.address()
    window = running.attach()
    loops = [s for s in window.to_end() if isinstance(s, LoopSnapshot)]
    columns = [s.steps for s in loops]
    steps = [step for c in columns for step in c.step]
    losses = [loss for c in columns for loss in c.loss]
    assert (loops[-1].state, loops[-1].step) == ("finished", 80)
    assert set(steps) <= {10 * step for step in range(1, 9)}
    assert steps[0] == 10
    # Each step halves the weight.
    assert losses == [(4.0 * 0.5 ** (step // 10 - 1)) ** 2 for step in steps]
    weights = drawn(loops, "weight")
    assert weights == {step: 4.0 * 0.5 ** (step // 10) for step in weights}
    assert weights.keys() >= {10, 80}
    running.end()


def test_figures_logged_before_the_first_optimizer_step_are_of_that_step(
    script: Callable[..., Script],
) -> None:
    source = BRIEF.replace("        optimizer.step()\n", "").replace(
        "half=loss.item() / 2)", "half=loss.item() / 2)\n        optimizer.step()"
    )
    running = script(source, "wait")
    running.address()
    window = running.attach()
    loops = [s for s in window.to_end() if isinstance(s, LoopSnapshot)]
    assert loops[-1].step == SHORT
    columns, halves = [s.steps for s in loops], drawn(loops, "half")
    losses = {s: loss for c in columns for s, loss in zip(c.step, c.loss, strict=True)}
    assert len(halves.keys() & losses.keys()) >= 50
    for step in halves.keys() & losses.keys():
        loss = losses[step]
        assert loss is not None and halves[step] == pytest.approx(loss / 2, rel=1e-6)
    assert running.end() == plain(SHORT)
