"""Answers about the folders of runs."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from ...events.reading import figures_of, has_events, read_events
from ...events.rows import event_rows
from ...lab import Lab
from ...project.document import Project
from ...protocol import (
    AnnotateRunCommand,
    AnnotationsSnapshot,
    CompareRunsCommand,
    CopiedRunsSnapshot,
    CopyRunsCommand,
    DeleteRunsCommand,
    KeptRunSnapshot,
    ListRunsCommand,
    MovedRunsSnapshot,
    MoveRunsCommand,
    NoteRunCommand,
    ReadAnnotationsCommand,
    ReadRunCommand,
    RestoreRunsCommand,
    RunDifferenceSnapshot,
    RunRow,
    RunsSnapshot,
)
from ...runs import annotations, folders, metrics, reading
from ...runs.difference import differences
from ...runs.record import MAX_NOTE_CHARS, RunProblem, load, save
from ...runs.summary import is_out_of_reach, row_of, rows_in
from ...system.errors import LabError, sendable
from ...training.run import TrainingRun
from .ranks import RanksRun

MAX_LIST_BYTES = 200_000
MAX_NUMBERS = 15_000
"""The most numbers that the steps of one run have in a snapshot."""
MAX_STEPS = 2000
MAX_DIFFERENCES = 200
MAX_VALUE_CHARS = 500


def list_runs(lab: Lab, command: ListRunsCommand) -> Iterator[RunsSnapshot]:
    yield _listed(lab, command.runs, command.events)


def read_run(lab: Lab, command: ReadRunCommand) -> Iterator[KeptRunSnapshot]:
    """Raises LabError if the run cannot be read."""
    folder = Path(command.folder)
    if not folders.is_run(folder) and has_events(folder):
        yield _read_events(folder)
        return
    with as_lab_errors():
        record = load(folder)
        as_copy = is_out_of_reach(record)
        path = folder / folders.METRICS
        figures = reading.figure_count(path, as_copy)
        limit = max(100, min(MAX_STEPS, MAX_NUMBERS // (len(metrics.STEP_COLUMNS) + figures)))
        steps, epochs = reading.read(path, limit, as_copy)
        written = annotations.load(folder)
    yield KeptRunSnapshot(
        folder=command.folder,
        steps=steps,
        epoch_rows=epochs,
        project=record.project,
        annotations=written,
    )


def _read_events(folder: Path) -> KeptRunSnapshot:
    with as_lab_errors():
        run = read_events(folder)
        limit = max(100, min(MAX_STEPS, MAX_NUMBERS // (len(run.scalars) + 8)))
        steps, epochs = figures_of(run, limit)
    return KeptRunSnapshot(folder=str(folder), steps=steps, epoch_rows=epochs, project=Project())


def compare_runs(lab: Lab, command: CompareRunsCommand) -> Iterator[RunDifferenceSnapshot]:
    """Raises LabError if one of the runs cannot be read."""
    with as_lab_errors():
        first, second = (load(Path(f)).project for f in (command.first, command.second))
    rows = differences(first, second)
    yield RunDifferenceSnapshot(
        first=command.first,
        second=command.second,
        rows=tuple(
            msgspec.structs.replace(
                row, first=row.first[:MAX_VALUE_CHARS], second=row.second[:MAX_VALUE_CHARS]
            )
            for row in rows[:MAX_DIFFERENCES]
        ),
        left_out=max(0, len(rows) - MAX_DIFFERENCES),
    )


def note_run(lab: Lab, command: NoteRunCommand) -> Iterator[RunsSnapshot]:
    """Raises LabError if the note is too long or cannot be written."""
    if len(command.note) > MAX_NOTE_CHARS:
        raise LabError(f"A note has at most {MAX_NOTE_CHARS:,} characters.")
    folder = Path(command.folder)
    with as_lab_errors():
        save(folder, msgspec.structs.replace(load(folder), note=command.note))
    yield _listed(lab, str(folder.parent))


def read_annotations(lab: Lab, command: ReadAnnotationsCommand) -> Iterator[AnnotationsSnapshot]:
    """Raises LabError if they cannot be read."""
    with as_lab_errors():
        found = annotations.load(Path(command.folder))
    yield AnnotationsSnapshot(folder=command.folder, annotations=found)


def annotate_run(lab: Lab, command: AnnotateRunCommand) -> Iterator[AnnotationsSnapshot]:
    """Raises LabError if they are too many or too long, or cannot be written."""
    if problem := annotations.problem_of(command.annotations):
        raise LabError(problem, hint="Shorten it, or delete others.")
    with as_lab_errors():
        annotations.save(Path(command.folder), command.annotations)
    yield AnnotationsSnapshot(folder=command.folder, annotations=command.annotations)


def delete_runs(lab: Lab, command: DeleteRunsCommand) -> Iterator[RunsSnapshot]:
    """Raises LabError for a run that is being trained."""
    runs = [Path(folder) for folder in command.folders]
    for folder in runs:
        if row_of(folder).state == "running":
            raise LabError(f"The run {folder.name} is being trained.", hint="Stop it first.")
    with as_lab_errors():
        folders.delete(runs)
    yield _listed(lab, str(runs[0].parent))


def restore_runs(lab: Lab, command: RestoreRunsCommand) -> Iterator[RunsSnapshot]:
    """Raises LabError if one of them cannot be brought back."""
    with as_lab_errors():
        folders.restore(Path(command.runs) if command.runs else folders.data_runs())
    yield _listed(lab, command.runs)


def move_runs(lab: Lab, command: MoveRunsCommand) -> Iterator[MovedRunsSnapshot]:
    """Raises LabError if one of them cannot be moved; those before it then have been."""
    moved = []
    runs = Path(command.runs)
    with as_lab_errors():
        for folder in map(Path, command.folders):
            target = runs / folder.name
            if not folder.is_dir() or target.exists():
                continue  # it was removed to make room for newer ones, or is there already
            runs.mkdir(parents=True, exist_ok=True)
            if isinstance(lab.run, TrainingRun) and lab.run.files.writer.folder == folder:
                lab.run.files.move(target)
            else:
                shutil.move(folder, target)
            moved.append((str(folder), str(target)))
    yield MovedRunsSnapshot(moved=tuple(moved))


def copy_runs(lab: Lab, command: CopyRunsCommand) -> Iterator[CopiedRunsSnapshot | None]:
    """Raises LabError if one of them cannot be copied; those before it then have been."""
    for copied, folder in enumerate(map(Path, command.folders)):
        yield CopiedRunsSnapshot(runs=len(command.folders), copied=copied)
        yield None
        with as_lab_errors():
            folders.copy(folder, Path(command.runs) / folder.name)
    yield CopiedRunsSnapshot(runs=len(command.folders), copied=len(command.folders))


def _listed(lab: Lab, runs: str, events: bool = False) -> RunsSnapshot:
    folder = Path(runs) if runs else folders.data_runs()
    with as_lab_errors():
        read_s = time.time()
        rows, problem = rows_in(folder), ""
        if events:
            try:
                rows += event_rows(folder)
            except LabError as error:
                problem = f"{error} {error.hint}"
        told: list[RunRow] = []
        size = 0
        for row in map(_sendable, rows):
            if _is_of_own_ranks(lab, row):
                row = msgspec.structs.replace(row, elsewhere="")
            size += len(msgspec.msgpack.encode(row))
            if size > MAX_LIST_BYTES:
                break
            told.append(row)
        return RunsSnapshot(
            folder=str(folder),
            read_s=read_s,
            runs=tuple(told),
            left_out=len(rows) - len(told),
            deleted=len(folders.deleted_in(folder)),
            problem=problem,
        )


def _is_of_own_ranks(lab: Lab, row: RunRow) -> bool:
    """Whether it is written by the processes of this engine's run."""
    return isinstance(lab.run, RanksRun) and Path(lab.run.last.folder) == Path(row.folder)


def _sendable(row: RunRow) -> RunRow:
    """The row; of a folder whose name is not valid UTF-8, one that says so."""
    folder = sendable(row.folder)
    if folder == row.folder:
        return row
    problem = "The name of its folder is not valid UTF-8: rename the folder to open the run."
    return RunRow(folder=folder, state="damaged", problem=problem)


@contextmanager
def as_lab_errors() -> Iterator[None]:
    try:
        yield
    except RunProblem as problem:
        raise LabError(str(problem), hint="Choose another run.") from problem
    except OSError as error:
        reason = f"{error.filename or 'The folder of the run'}: {error.strerror or error}."
        raise LabError(
            reason, hint="Look at the folder of the runs, and at who may write."
        ) from error
