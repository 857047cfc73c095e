"""The watchpoints of a window, in the loop of a script that it is attached to."""

from __future__ import annotations

from collections.abc import Callable

from engine.project.document import HoldWhen
from engine.protocol import (
    ContinueTrainingCommand,
    ErrorSnapshot,
    HeldSnapshot,
    HoldWhenSignal,
    LoopSnapshot,
    OutputSnapshot,
    PauseSignal,
    RunHeldCommand,
    StepLineCommand,
)
from tests.engine.attached.test_attached import LONG, TRAINING, plain
from tests.engine.attaching import Script


def test_it_is_held_before_the_update_and_ends_as_without_the_lab(
    script: Callable[..., Script],
) -> None:
    source = TRAINING.replace(
        "        loss.backward()\n", "        (loss * (nan if step == 1500 else 1)).backward()\n"
    ).replace("import sys\n", "import sys\nnan = float('nan')\n")
    running = script(source, "wait")
    running.address()
    window, watching = running.attach(), running.attach()
    watching.send(HoldWhenSignal(when=HoldWhen(gradient_norm=1e-30)))  # only one steers
    window.send(HoldWhenSignal(when=HoldWhen(not_finite=True)))
    held = window.until(HeldSnapshot, lambda held: held.at)
    assert (held.at, held.function) == ("update", "train")
    loop = next(s for s in reversed(window.seen) if isinstance(s, LoopSnapshot))
    assert loop.hold is not None and (loop.step, loop.hold.step) == (1500, 1501)
    assert loop.hold.text == "The loss is nan. It is held before the update."
    window.send(RunHeldCommand(source="step, model[0].weight.grad.isnan().all().item()"))
    assert window.until(OutputSnapshot).text == "(1500, True)\n"
    # The gradient that this step would have had without the NaN.
    mend = "optimizer.zero_grad(); nn.functional.mse_loss(model[:1](x).sum(1, keepdim=True), y)"
    window.send(RunHeldCommand(source=f"{mend}.backward()"))
    window.send(ContinueTrainingCommand())
    last = [s for s in window.to_end() if isinstance(s, LoopSnapshot)][-1]
    assert (last.state, last.step, last.hold) == ("finished", LONG, None)
    assert "nan" not in running.end()


def test_lines_are_not_stepped_and_the_script_goes_on(script: Callable[..., Script]) -> None:
    running = script(TRAINING, "wait")
    running.address()
    window = running.attach()
    window.send(PauseSignal())
    window.until(HeldSnapshot, lambda held: held.at)
    window.send(StepLineCommand())
    assert "line by line" in window.until(ErrorSnapshot).error.message
    window.send(ContinueTrainingCommand())
    window.to_end()
    assert running.end() == plain()


def test_the_limits_go_with_the_window(script: Callable[..., Script]) -> None:
    running = script(TRAINING, "wait")
    running.address()
    window = running.attach()
    window.send(HoldWhenSignal(when=HoldWhen(gradient_norm=1e-30)))
    assert window.until(HeldSnapshot, lambda held: held.at).at == "update"
    window.close()
    again = running.attach()
    again.send(PauseSignal())
    assert again.until(HeldSnapshot, lambda held: held.at).at == "step"
    again.send(ContinueTrainingCommand())
    again.to_end()
    assert running.end() == plain()
