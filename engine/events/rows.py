"""Event files in a list of runs."""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path

from ..protocol import RunRow
from ..runs.record import RunProblem
from .reading import (
    MAX_RUNS,
    EventRun,
    Files,
    event_folders,
    figures_of,
    files_in,
    read_events,
)


def event_rows(place: Path) -> list[RunRow]:
    """A row for each folder with event files, as far as it can be read. Raises LabError without
    TensorBoard."""
    return [_row(folder, place) for folder in event_folders(place)]


def _row(folder: Path, place: Path) -> RunRow:
    title = folder.relative_to(place).as_posix() if folder != place else folder.name
    try:
        return _row_of(folder, title, files_in(folder))
    except RunProblem as problem:
        return RunRow(folder=str(folder), title=title, state="damaged", problem=str(problem))


@lru_cache(maxsize=2 * MAX_RUNS)
def _row_of(folder: Path, title: str, files: Files) -> RunRow:
    """The row of a folder's files; the row from before if they have not changed since. Raises
    RunProblem."""
    run = read_events(folder)
    times = [wall_s for points in run.scalars.values() for wall_s, _ in points.values()]
    known = [wall_s for wall_s in times if 0 < wall_s < _LATEST_S]
    steps, epochs = figures_of(run, 1)
    loss = steps.loss[-1] if steps.loss else None
    return RunRow(
        folder=str(folder),
        id=title,
        title=title,
        state="event files",
        began_s=min(known, default=0.0),
        ended_s=max(known, default=0.0),
        step=_last_step(run),
        told_s=max(time_ns for _, _, time_ns in files) / 1e9,
        loss=None if loss is None or math.isnan(loss) else loss,
        epoch=epochs[-1] if epochs else None,
        problem=run.left_out,
    )


_LATEST_S = 1e11
"""A time that a date can have; what a damaged file says is left out."""


def _last_step(run: EventRun) -> int:
    return max((step for points in run.scalars.values() for step in points), default=0)
