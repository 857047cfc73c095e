"""One snapshot in place of two that wait: a window that is slower than the engine keeps up, and no
more and more waits for it."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import TypeVar

import msgspec

from engine.protocol import (
    LoggedPoints,
    LoopSnapshot,
    OutputSnapshot,
    OutputTailSnapshot,
    RunSnapshot,
    Snapshot,
    StepColumns,
)

MAX_CHARACTERS = 16 * 1024
MAX_LINES = 250
"""Printed text of more characters or lines takes no more: it is written in a few milliseconds."""
MAX_ROWS = 4000
"""The most steps of a run in one snapshot; of more, every other one is left out."""
Run = TypeVar("Run", bound=RunSnapshot)


def merged(before: object, item: object) -> Snapshot | None:
    """One snapshot in place of two; None if both are needed."""
    if not isinstance(before, Snapshot) or type(before) is not type(item):
        return None
    assert isinstance(item, Snapshot)
    if before.reply_to != item.reply_to:
        return None
    if isinstance(item, OutputTailSnapshot):
        return item
    if isinstance(before, OutputSnapshot) and isinstance(item, OutputSnapshot):
        is_short = len(before.text) < MAX_CHARACTERS and before.text.count("\n") < MAX_LINES
        if before.stream != item.stream or not is_short or item.text.startswith("\r"):
            return None
        return msgspec.structs.replace(before, text=before.text + item.text)
    if isinstance(before, RunSnapshot) and isinstance(item, RunSnapshot):
        is_news = before.state != "running" or before.error is not None or before.run != item.run
        return None if is_news else _run_of_both(before, item)
    return None


def _run_of_both(before: RunSnapshot, item: Run) -> Run:
    """The newer one, with what is new in both."""
    rows = (*before.epoch_rows, *item.epoch_rows)[-MAX_ROWS:]
    found = msgspec.structs.replace(item, steps=_steps(before.steps, item.steps), epoch_rows=rows)
    if isinstance(before, LoopSnapshot) and isinstance(found, LoopSnapshot):
        logged = dict(before.logged)
        for name, points in found.logged.items():
            old = logged.get(name, LoggedPoints((), ()))
            logged[name] = LoggedPoints(
                (*old.steps, *points.steps)[-MAX_ROWS:], (*old.values, *points.values)[-MAX_ROWS:]
            )
        lines = {**before.line_of_step, **found.line_of_step}
        lines = {step: lines[step] for step in found.steps.step if step in lines}
        found = msgspec.structs.replace(found, logged=logged, line_of_step=lines)
    return found


def _steps(before: StepColumns, item: StepColumns) -> StepColumns:
    first, second = len(before.step), len(item.step)
    if not first or not second:
        return item if second else before
    every = 2 if first + second > MAX_ROWS else 1

    def column(old: Sequence[float], new: Sequence[float]) -> tuple:
        """A column that one of them has not is NaN there."""
        if not old and not new:
            return ()
        whole = (*(old or (nan,) * first), *(new or (nan,) * second))
        return whole[(len(whole) - 1) % every :: every]  # the newest stays

    names = [name for name in StepColumns.__struct_fields__ if name != "figures"]
    columns = {name: column(getattr(before, name), getattr(item, name)) for name in names}
    figures = {
        name: column(before.figures.get(name, ()), item.figures.get(name, ()))
        for name in {**before.figures, **item.figures}
    }
    return StepColumns(**columns, figures=figures)
