"""The scalars of TensorBoard's event files, as the figures of a run. Nothing of a file is executed:
an event is a record of fields."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ..protocol import EpochRow, StepColumns
from ..runs.metrics import LATER
from ..runs.record import RunProblem
from ..system.errors import LabError
from .tags import EPOCH_COLUMNS, STEP, STEP_COLUMNS, TRAIN, VALIDATION, column_of
from .writing import HINT

PATTERN = "*tfevents*"
MAX_FOLDERS, MAX_RUNS = 2000, 200
"""The most folders that are searched for event files, and the most folders with event files that
are listed."""
MAX_VALUES, MAX_TAGS = 1_000_000, 100
"""The most values and tags of one run; the rest is left out."""
MAX_BYTES = 1 << 30
MAX_READERS = 16
"""The most folders that are read on from where they ended; others are read again from their
beginning."""

Files = tuple[tuple[Path, int, int], ...]


class EventRun(NamedTuple):
    """The scalars of one folder's event files by tag: step -> (time in seconds, value). `left_out`
    says in words what was not read."""

    scalars: dict[str, dict[int, tuple[float, float]]]
    left_out: str = ""


def has_events(folder: Path) -> bool:
    return any(folder.glob(PATTERN))


def event_folders(place: Path) -> list[Path]:
    """The folders with event files in a folder, itself included, sorted by name."""
    found: list[Path] = []
    for looked, (folder, inner, files) in enumerate(os.walk(place)):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        if any("tfevents" in name for name in files):
            found.append(Path(folder))
        if looked >= MAX_FOLDERS or len(found) >= MAX_RUNS:
            break
    return sorted(found)


def files_in(folder: Path) -> Files:
    """The event files of a folder as they are now: path, size and time of each. Raises RunProblem,
    also without any."""
    try:
        paths = sorted(path for path in folder.glob(PATTERN) if path.is_file())
        found = tuple((path, path.stat().st_size, path.stat().st_mtime_ns) for path in paths)
    except OSError as error:
        raise RunProblem(f"{folder} cannot be read: {error.strerror or error}.") from error
    if not found:
        raise RunProblem(f"{folder} has no event files.")
    if sum(size for _, size, _ in found) > MAX_BYTES:
        raise RunProblem(f"{folder} has more than 1 GiB of event files.")
    return found


def read_events(folder: Path) -> EventRun:
    """The scalars of a folder's event files; of one step that is told twice, the newer. Files that
    have grown since the last call are read on from there. Raises LabError without TensorBoard,
    RunProblem for files that cannot be read."""
    found = files_in(folder)
    reader = _readers.pop(folder, None)
    if reader is None or not reader.goes_on_in(found):
        reader = _Reader()
    run = reader.read(found)
    _readers[folder] = reader  # the newest is the last
    if len(_readers) > MAX_READERS:
        del _readers[next(iter(_readers))]
    return run


class _Reader:
    """Reads the files of one folder, and later what was written to them since."""

    def __init__(self) -> None:
        self._read: dict[Path, tuple[int, int]] = {}
        self._loaders: dict[Path, Any] = {}
        self._scalars: dict[str, dict[int, tuple[float, float]]] = {}
        self._count, self._left = 0, ""

    def goes_on_in(self, files: Files) -> bool:
        """Whether the files that were read are there still, and have at most grown."""
        now = {path: (size, time_ns) for path, size, time_ns in files}
        return all(
            path in now and (now[path] == before or now[path][0] > before[0])
            for path, before in self._read.items()
        )

    def read(self, files: Files) -> EventRun:
        for path, *state in files:
            if self._read.get(path) != tuple(state):
                self._read[path] = state[0], state[1]
                self._read_on(path)
        return EventRun(self._scalars, self._left)

    def _read_on(self, path: Path) -> None:
        for step, wall_s, tag, value in self._values(path):
            if tag not in self._scalars and len(self._scalars) >= MAX_TAGS:
                self._left = f"Only the first {MAX_TAGS} tags are read."
                continue
            if self._count >= MAX_VALUES:
                self._left = f"Only the first {MAX_VALUES:,} values are read."
                return
            self._scalars.setdefault(tag, {})[step] = wall_s, value
            self._count += 1

    def _values(self, path: Path) -> Iterator[tuple[int, float, str, float]]:
        """(step, time, tag, value) of each scalar that a file has got since the last call. An event
        that is only partly written comes with a later call."""
        try:
            from google.protobuf.message import DecodeError
            from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
            from tensorboard.compat.proto import event_pb2
        except ImportError as error:
            raise LabError("TensorBoard is not installed.", hint=HINT) from error
        try:
            if path not in self._loaders:
                self._loaders[path] = RawEventFileLoader(str(path))
            for data in self._loaders[path].Load():
                event = event_pb2.Event.FromString(data)  # pyright: ignore[reportAttributeAccessIssue]
                for value in event.summary.value:
                    number = _scalar(value)
                    if number is not None:
                        yield event.step, event.wall_time, value.tag, number
        except DecodeError as error:
            raise RunProblem(f"{path} is damaged: {error}.") from error
        except Exception as error:  # TensorBoard's reader raises classes of its own
            raise RunProblem(f"{path} cannot be read as an event file: {error}.") from error


_readers: dict[Path, _Reader] = {}


def _scalar(value: Any) -> float | None:
    """The number of a value that is a scalar, in the old or the new form; else None."""
    kind = value.WhichOneof("value")
    if kind == "simple_value":
        return value.simple_value
    plugin = value.metadata.plugin_data.plugin_name
    if kind != "tensor" or plugin not in ("", "scalars"):
        return None
    from tensorboard.util import tensor_util

    array = tensor_util.make_ndarray(value.tensor)
    return float(array.reshape(-1)[0]) if array.size == 1 and array.dtype.kind in "fiu" else None


# -- as the figures of a run ---------------------------------------------------------------------


def figures_of(run: EventRun, limit: int) -> tuple[StepColumns, tuple[EpochRow, ...]]:
    """The figures as those of a run, at most `limit` steps evenly spread, with the last. A tag of
    no known meaning is a named figure."""
    columns: dict[str, dict[int, float]] = {}
    epochs: dict[str, dict[int, float]] = {}
    figures: dict[str, dict[int, float]] = {}
    for tag, points in run.scalars.items():
        values = {step: value for step, (_, value) in points.items()}
        column = column_of(tag)
        if column in STEP_COLUMNS:
            columns[column] = values
        elif column in EPOCH_COLUMNS or tag.startswith((TRAIN, VALIDATION)):
            epochs[column or tag] = values
        elif not tag.startswith("last/"):
            figures[tag.removeprefix(STEP)] = values
    return _steps(columns, figures, limit), _epochs(epochs, limit)


def _steps(
    columns: dict[str, dict[int, float]], figures: dict[str, dict[int, float]], limit: int
) -> StepColumns:
    steps = _spread(sorted({s for values in (columns | figures).values() for s in values}), limit)
    if not steps:
        return StepColumns()
    found: dict[str, tuple] = {}
    for name in STEP_COLUMNS:
        values = columns.get(name, {})
        if name.endswith("_bytes"):
            is_whole = all(math.isfinite(values.get(step, math.nan)) for step in steps)
            found[name] = tuple(int(values[step]) for step in steps) if is_whole else ()
        else:
            found[name] = tuple(values.get(step, math.nan) for step in steps)
    for name in LATER:
        found[name] = () if all(map(math.isnan, found[name])) else found[name]
    found["rss_bytes"] = found["rss_bytes"] or (0,) * len(steps)
    named = {
        name: tuple(values.get(step, math.nan) for step in steps)
        for name, values in figures.items()
    }
    return StepColumns(step=tuple(steps), **found, figures=named)


def _epochs(epochs: dict[str, dict[int, float]], limit: int) -> tuple[EpochRow, ...]:
    """The rows of epochs, numbered from 1: event files tell their steps only."""
    every = sorted({step for values in epochs.values() for step in values})
    number = {step: at for at, step in enumerate(every, 1)}
    rows = []
    for step in _spread(every, limit):
        train, validation, *accuracies = (
            epochs.get(name, {}).get(step, math.nan)
            for name in ("train_loss", "validation_loss", "train_accuracy", "validation_accuracy")
        )
        row = EpochRow(number[step], step, train, accuracies[0], validation, accuracies[1])
        for tag, values in epochs.items():
            for before, named in ((TRAIN, row.train_figures), (VALIDATION, row.validation_figures)):
                if tag.startswith(before) and step in values:
                    named[tag.removeprefix(before)] = values[step]
        rows.append(row)
    return tuple(rows)


def _spread(steps: list[int], limit: int) -> list[int]:
    apart = -(-len(steps) // limit)
    return steps[::-apart][::-1] if apart > 1 else steps
