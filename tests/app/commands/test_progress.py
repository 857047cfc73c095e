"""What a terminal and a log are told of a run."""

from __future__ import annotations

import math
from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest

from app.commands import progress
from app.commands.progress import Progress
from engine.protocol import EpochRow, StepColumns, TrainingSnapshot

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
