"""What a terminal and a log are told of a run."""

from __future__ import annotations

import math
from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import structs

from app.commands import progress
from app.commands.progress import Progress
from engine.protocol import EpochRow, ErrorReport, StepColumns, TrainingSnapshot

ROWS = (
    EpochRow(1, 4, 0.5, math.nan, math.nan, math.nan),
    EpochRow(2, 8, 0.25, 0.75, math.nan, math.nan),
    EpochRow(3, 12, 0.125, 0.8, 2.5, math.nan),
    EpochRow(4, 16, 0.0625, math.nan, 3.0, 0.9),
)


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def told(**fields: Any) -> TrainingSnapshot:
    """Of a run of four epochs."""
    return TrainingSnapshot(
        run="", state="running", device="cpu", steps=StepColumns(), epochs=4, total_steps=1600,
        steps_per_second=1234.0, **fields,
    )  # fmt: skip


def test_a_log_has_a_line_for_each_epoch_with_the_numbers_that_there_are() -> None:
    log = StringIO()
    Progress(log).show(told(step=16, epoch_rows=ROWS))
    assert log.getvalue().splitlines() == [
        "epoch 1/4: loss 0.5",
        "epoch 2/4: loss 0.25, accuracy 75.0%",
        "epoch 3/4: loss 0.125, accuracy 80.0%; validation loss 2.5",
        "epoch 4/4: loss 0.0625; validation loss 3, accuracy 90.0%",
    ]


def test_a_terminal_has_one_line_that_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now[0]))
    terminal = Terminal()
    shown = Progress(terminal)
    shown.show(told(epoch=1, step=1000, remaining_s=90.0))
    first = "epoch 1/4 · step 1,000/1,600 · 1,234 steps/s · 90 s left"
    assert terminal.getvalue() == f"\r{first}"
    now[0] = 0.05
    shown.show(told(epoch=2, step=1001))
    assert terminal.getvalue() == f"\r{first}"
    now[0] = 0.1
    shown.show(told(epoch=4, step=1600, epoch_rows=ROWS))
    second = (
        "epoch 4/4 · step 1,600/1,600 · 1,234 steps/s · loss 0.0625 · validation accuracy 90.0%"
    )
    assert terminal.getvalue() == f"\r{first}\r{second}"
    shown.end()
    shown.end()
    assert terminal.getvalue() == f"\r{first}\r{second}\r{second}\n"


def test_lines_between_leave_nothing_of_the_line_that_is_drawn_again() -> None:
    terminal = Terminal()
    shown = Progress(terminal)
    shown.end()
    shown.say("before")
    assert terminal.getvalue() == "before\n"
    shown.show(told(epoch=1, step=1, remaining_s=90.0))
    line, left = "epoch 1/4 · step 1/1,600 · 1,234 steps/s", " · 90 s left"
    assert terminal.getvalue() == f"before\n\r{line}{left}"
    shown.say("between")
    cleared = " " * len(line + left)
    assert terminal.getvalue().endswith(f"{left}\r{cleared}\rbetween\n")
    shown.show(structs.replace(told(epoch=1, step=1, remaining_s=90.0), state="paused"))
    assert terminal.getvalue().endswith(f"between\n\r{line}" + " " * len(left))
    shown.end()
    shown.say("after")
    assert terminal.getvalue().endswith(f"\r{line}\nafter\n")


@pytest.mark.parametrize("stream", [StringIO, Terminal])
def test_what_does_not_end_the_run_is_a_warning(monkeypatch: pytest.MonkeyPatch, stream) -> None:
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: 1.0))
    out = stream()
    shown = Progress(out)
    shown.show(told(epoch=1, step=1))
    trouble = told(epoch=1, step=2, error=ErrorReport("OSError", "Disk full.", "Free some."))
    shown.show(trouble)
    assert out.getvalue().endswith("warning: Disk full. Free some.\n")
    assert out.getvalue().count("\r") == (3 if out.isatty() else 0)
    shown.show(structs.replace(trouble, state="failed"))
    assert out.getvalue().count("warning") == 1 and shown.last.state == "failed"
