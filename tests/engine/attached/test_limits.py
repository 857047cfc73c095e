"""The watchpoints of a window, in the loop of a script that it is attached to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from engine.project.document import HoldWhen
from engine.protocol import (
    CellSnapshot,
    ContinueTrainingCommand,
    DoneSnapshot,
    HeldSnapshot,
    HoldWhenSignal,
    InterruptSignal,
    LoopSnapshot,
    OutputSnapshot,
    PauseSignal,
    ReadVariablesCommand,
    RunHeldCommand,
    StepLineCommand,
)
from tests.engine.attached.test_attached import TRAINING, let_it_end, plain
from tests.engine.attaching import Script


def test_it_is_held_before_the_update_and_ends_as_without_the_lab(
    script: Callable[..., Script],
) -> None:
    source = TRAINING.replace(
        "        loss.backward()\n", "        (loss * (nan if step == 150 else 1)).backward()\n"
    ).replace("\ndef train", "\nnan = float('nan')\n\ndef train")
    running = script(source, "wait")
    running.address()
    window, watching = running.attach(), running.attach("watch")
    watching.send(HoldWhenSignal(when=HoldWhen(gradient_norm=1e-30)))  # only one steers
    window.send(HoldWhenSignal(when=HoldWhen(not_finite=True)))
    held = window.until(HeldSnapshot, lambda held: held.at)
    assert (held.at, held.function) == ("update", "train")
    loop = next(s for s in reversed(window.seen) if isinstance(s, LoopSnapshot))
    assert loop.hold is not None and (loop.step, loop.hold.step) == (150, 151)
    assert loop.hold.text == "The loss is nan. It is held before the update."
    window.send(RunHeldCommand(source="step, model[0].weight.grad.isnan().all().item()"))
    assert window.until(OutputSnapshot).text == "(150, True)\n"
    # The gradient that this step would have had without the NaN.
    mend = "optimizer.zero_grad(); nn.functional.mse_loss(model[:1](x).sum(1, keepdim=True), y)"
    window.send(RunHeldCommand(source=f"{mend}.backward()"))
    steps = let_it_end(window)
    window.send(ContinueTrainingCommand())
    last = [s for s in window.to_end() if isinstance(s, LoopSnapshot)][-1]
    assert (last.state, last.step, last.hold) == ("finished", steps, None)
    assert "nan" not in running.end()


LOOP = """
import torch
import tensorlab as lab

net = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
lab.watch(net, optimizer, wait=True)
done = False
while not done:
    loss = net(torch.ones(4, 2)).sum()
    loss.backward()
    optimizer.step()
print("ended")
"""


def test_its_lines_are_stepped(script: Callable[..., Script]) -> None:
    running = script(LOOP)
    running.address()
    window = running.attach()
    window.send(PauseSignal())
    window.until(HeldSnapshot, lambda held: held.at == "step")
    # What an interrupt of an answer left behind, Python's tracing must get past.
    window.send(RunHeldCommand(source="print('begun')\nwhile True: pass"))
    window.until(OutputSnapshot)
    window.send(InterruptSignal())
    window.until(CellSnapshot)
    for line in 9, 10, 11, 12:
        window.send(StepLineCommand())
        held = window.until(HeldSnapshot, lambda held: held.at)
        assert (held.at, held.line) == ("line", line)
    window.send(RunHeldCommand(source="done = True"))
    window.send(ContinueTrainingCommand())
    window.to_end()
    assert running.end() == "ended\n"


def test_the_limits_go_with_the_window(script: Callable[..., Script]) -> None:
    running = script(TRAINING, "wait")
    running.address()
    window = running.attach()
    window.send(HoldWhenSignal(when=HoldWhen(gradient_norm=1e-30)))
    assert window.until(HeldSnapshot, lambda held: held.at).at == "update"
    window.close()
    again = running.attach_again()
    again.send(PauseSignal())
    assert again.until(HeldSnapshot, lambda held: held.at).at == "step"
    steps = let_it_end(again)
    again.send(ContinueTrainingCommand())
    again.to_end()
    assert running.end() == plain(steps)


def test_a_question_that_is_answered_before_the_next_step_does_not_end_a_pause(
    script: Callable[..., Script], tmp_path: Path
) -> None:
    """The window asks for variables and figures whenever it likes."""
    wait = tmp_path / "wait"
    wait.touch()
    waiting = f"    while Path({str(wait)!r}).exists(): pass\n"
    source = "from pathlib import Path\n" + LOOP.replace("    loss = ", f"{waiting}    loss = ")
    running = script(source)
    running.address()
    window = running.attach()
    window.send(PauseSignal())
    asked = window.send(ReadVariablesCommand())
    window.until(DoneSnapshot, lambda done: done.reply_to == asked)
    wait.unlink()
    assert window.until(HeldSnapshot, lambda held: held.at).at == "step"
    window.send(RunHeldCommand(source="done = True"))
    window.until(CellSnapshot)
    window.send(ContinueTrainingCommand())
    running.end()
