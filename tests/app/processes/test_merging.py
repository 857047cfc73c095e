"""Snapshots that wait for a busy window become one, and nothing that is new in them is lost."""

from __future__ import annotations

from math import isnan
from typing import cast

import pytest
from msgspec.structs import replace

from app.processes import merging
from app.processes.inbox import Inbox
from app.processes.merging import merged
from engine.protocol import (
    EpochRow,
    ErrorReport,
    LoggedPoints,
    LoopSnapshot,
    OutputSnapshot,
    StepColumns,
    TrainingSnapshot,
)


def steps(*numbers: int, **fields) -> StepColumns:
    values = tuple(map(float, numbers))
    return StepColumns(
        step=numbers, loss=values, accuracy=values, gradient_norm=values, learning_rate=values,
        step_ms=values, rss_bytes=numbers, **fields,
    )  # fmt: skip


def run(*numbers: int, **fields) -> TrainingSnapshot:
    known = {"state": "running", "steps_per_second": 1.0, "device": "cpu", "reply_to": 4}
    given = {**known, "steps": steps(*numbers), "step": numbers[-1], **fields}
    return TrainingSnapshot(run="r", **given)


ROW = EpochRow(1, 2, 0.5, 0.5, 0.5, 0.5)


def test_two_of_a_run_are_the_newer_with_the_steps_of_both() -> None:
    one = merged(run(1, 2, epoch_rows=(ROW,)), run(3, 4, state="paused"))
    assert isinstance(one, TrainingSnapshot)
    assert (one.step, one.state, one.steps.step, one.epoch_rows) == (
        4,
        "paused",
        (1, 2, 3, 4),
        (ROW,),
    )
    assert one.steps.loss == (1.0, 2.0, 3.0, 4.0) and one.steps.rss_bytes == (1, 2, 3, 4)


def test_a_column_that_one_has_not_is_nan_there() -> None:
    with_speed = steps(3, 4, samples_per_second=(7.0, 8.0), figures={"f1": (0.1, 0.2)})
    one = merged(run(1, 2), run(3, 4, steps=with_speed))
    assert isinstance(one, TrainingSnapshot)
    for column in (one.steps.samples_per_second, one.steps.figures["f1"]):
        assert [isnan(value) for value in column] == [True, True, False, False]
    assert one.steps.gpu_percent == one.steps.cuda_allocated_bytes == ()
    other = merged(run(1, 2, steps=with_speed), run(3, 4, steps=StepColumns()))
    assert isinstance(other, TrainingSnapshot) and other.steps == with_speed


@pytest.mark.parametrize(
    "before",
    [
        run(1, state="paused"),
        run(1, error=ErrorReport(type="Warning", message="The disk is full.")),
        run(1, reply_to=3),
        replace(run(1), run="other"),
    ],
    ids=["held", "warning", "another command", "another run"],
)
def test_what_is_news_is_told_alone(before: TrainingSnapshot) -> None:
    assert merged(before, run(2)) is None


def test_what_a_loop_logs_is_kept() -> None:
    def loop(step: int, **logged: float) -> LoopSnapshot:
        points = {name: LoggedPoints((step,), (value,)) for name, value in logged.items()}
        return LoopSnapshot(
            run="r", title="Cell 1", state="running", step=step, steps_per_second=1.0,
            device="cpu", steps=steps(step), logged=points,
        )  # fmt: skip

    one = merged(loop(1, a=0.5, b=1.0), loop(2, a=0.25))
    assert isinstance(one, LoopSnapshot)
    assert one.logged == {"a": LoggedPoints((1, 2), (0.5, 0.25)), "b": LoggedPoints((1,), (1.0,))}


def test_a_window_that_hangs_has_one_snapshot_of_bounded_size_to_read(qapp, monkeypatch) -> None:
    monkeypatch.setattr(merging, "MAX_ROWS", 100)
    taken: list[TrainingSnapshot] = []
    inbox = Inbox(lambda _, item: taken.append(cast(TrainingSnapshot, item)), qapp)
    for number in range(1, 1001):
        inbox.put("engine", run(number, epoch_rows=(ROW,)))
    assert len(inbox._waiting) == 1
    inbox._hand_over()
    (one,) = taken
    told = one.steps.step
    assert told[-1] == 1000 and list(told) == sorted(told) and 50 <= len(told) <= 100
    assert one.steps.loss == tuple(map(float, told)) and len(one.epoch_rows) == 100


@pytest.mark.parametrize(
    ("before", "is_taken"),
    [
        ("y\n" * (merging.MAX_LINES - 1), True),
        ("y\n" * merging.MAX_LINES, False),
        ("y" * (merging.MAX_CHARACTERS - 1), True),
        ("y" * merging.MAX_CHARACTERS, False),
    ],
)
def test_printed_text_is_gathered_up_to_what_is_laid_out_at_once(before, is_taken) -> None:
    first, second = (OutputSnapshot(stream="stdout", text=text) for text in (before, "z"))
    one = merged(first, second)
    assert one == (OutputSnapshot(stream="stdout", text=before + "z") if is_taken else None)
    assert merged(second, OutputSnapshot(stream="stderr", text="z")) is None
    assert merged(second, OutputSnapshot(stream="stdout", text="\rz")) is None


@pytest.mark.parametrize(("count", "left"), [(2000, 4000), (2001, 2001)])
def test_every_other_step_is_left_out_of_more_than_4000(count: int, left: int) -> None:
    first = replace(run(1), steps=steps(*range(2000)))
    second = replace(run(1), steps=steps(*range(2000, 2000 + count)))
    one = merged(first, second)
    assert isinstance(one, TrainingSnapshot) and len(one.steps.step) == left
    assert one.steps.step[-1] == 1999 + count
