"""Runs as event files of TensorBoard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ...events.writing import write_run
from ...lab import Lab
from ...protocol import EventsSnapshot, WriteEventsCommand
from ...runs.record import RunProblem
from ...system.errors import LabError


def write_events(lab: Lab, command: WriteEventsCommand) -> Iterator[EventsSnapshot | None]:
    """Raises LabError without TensorBoard, for a run that cannot be read, and for a folder that
    cannot be written. What was written before stays."""
    out = Path(command.path)
    written: list[str] = []
    for run in map(Path, command.folders):
        folder = out / run.name
        try:
            for steps in write_run(run, folder):
                yield EventsSnapshot(path=command.path, runs=len(written), steps=steps)
                yield None
        except RunProblem as problem:
            raise LabError(str(problem), hint="Choose another run.") from problem
        except OSError as error:
            raise LabError(
                f"{folder} could not be written: {error.strerror or error}.",
                hint="Choose a folder that you may write.",
            ) from error
        written.append(str(folder))
    yield EventsSnapshot(path=command.path, runs=len(written), written=tuple(written))
