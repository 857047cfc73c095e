"""Where runs are: beside their project, or in the user's data folder until it is saved.

NAME.runs/ or <data folder>/runs/
    20261123-101500-a1b2/
        run.json            what it is
        metrics.sqlite      figures of steps and epochs
        checkpoints/        step-00001200.pt, ... (step-00001200.dcp/ by several processes)
        states/             step-00000000.pt, ... to go back to
        annotations.json    the user's words at steps of its plots
        alive               while it is trained: by which process, and its last sign of life
        train.py            the training as a plain script; run.json says why, if it is not there
"""

from __future__ import annotations

import errno
import secrets
import shutil
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from ..project.atomic import private_folder
from ..system.folders import data_folder, former_folder
from .record import FILE, RunProblem, load

DELETED = ".deleted"
KEPT_RUNS = 20
"""The most runs that are kept in the data folder; those beside a project stay until they are
deleted."""
CHECKPOINTS = "checkpoints"
METRICS = "metrics.sqlite"


def data_runs() -> Path:
    """The folder for runs of projects without a file; it need not exist. Runs that an earlier
    version has left in the user's cache folder are moved here first."""
    runs, former = data_folder() / "runs", former_folder()
    if former is not None and (former / "runs").is_dir():
        _take_over(former / "runs", runs)
    return runs


def _take_over(former: Path, runs: Path) -> None:
    """Move what is in a folder of runs to another one. A run that is being trained stays until it
    has ended, and so does what cannot be moved."""
    with suppress(OSError):
        private_folder(runs)
        for found in [*former.iterdir()]:
            if not _is_written(found) and not (runs / found.name).exists():
                with suppress(OSError):  # another engine may be moving it too
                    _move(found, runs / found.name)
        former.rmdir()


def _is_written(folder: Path) -> bool:
    """Whether a process writes the run, as far as this machine can know."""
    try:
        record = load(folder)
    except RunProblem:
        return False
    return record.state == "running" and record.writer.is_alive() is not False


def _move(folder: Path, target: Path) -> None:
    """Raises OSError; then the folder is still there."""
    try:
        folder.rename(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        copy(folder, target)
        shutil.rmtree(folder)


def new_id() -> str:
    return f"{datetime.now():%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


TRIAL = "-trial-"
"""Stands between the id of a sweep and the number of a trial in the name of the trial's folder."""


def make(folder: Path) -> None:
    """Make the folder of a run, which only this user can look into. In the data folder, the oldest
    runs go. Raises OSError."""
    if (folder / CHECKPOINTS).is_dir():
        return
    is_kept_here = folder.parent == data_runs()
    if is_kept_here:
        private_folder(folder.parent)
    private_folder(folder)
    private_folder(folder / CHECKPOINTS)
    if is_kept_here:
        for old in _surplus(folder.parent):
            shutil.rmtree(old, ignore_errors=True)  # another engine may be removing it too


def _surplus(runs: Path) -> list[Path]:
    """The oldest runs of a folder, beyond KEPT_RUNS; the trials of a sweep count as one."""
    names: dict[str, None] = {}
    found = []
    for folder in runs_in(runs):
        name = folder.name.partition(TRIAL)[0]
        if name not in names and len(names) >= KEPT_RUNS:
            found.append(folder)
        else:
            names[name] = None
    return found


def is_run(folder: Path) -> bool:
    return (folder / FILE).exists() or (folder / CHECKPOINTS).is_dir()


def run_of(checkpoint: Path) -> Path | None:
    """The folder of the run that a checkpoint belongs to; None if it lies elsewhere."""
    return checkpoint.parent.parent if checkpoint.parent.name == CHECKPOINTS else None


def runs_in(runs: Path) -> list[Path]:
    """The folders of the runs in a folder, the one written last first."""
    found: list[tuple[int, Path]] = []
    for folder in runs.iterdir() if runs.is_dir() else ():
        with suppress(OSError):  # another engine removes it
            if not folder.name.startswith(".") and is_run(folder):
                inner = folder / CHECKPOINTS
                written = inner if inner.is_dir() else folder
                found.append((written.stat().st_mtime_ns, folder))
    return [folder for _, folder in sorted(found, reverse=True)]


def checkpoints_of(folder: Path) -> list[Path]:
    """The checkpoints of a run, the one written last first: a run resumed from an early one writes
    smaller steps later."""
    found: list[tuple[int, Path]] = []
    inner = folder / CHECKPOINTS
    for file in (*inner.glob("step-*.pt"), *inner.glob("step-*.dcp")):
        with suppress(FileNotFoundError):
            found.append((file.stat().st_mtime_ns, file))
    return [file for _, file in sorted(found, reverse=True)]


def step_of(checkpoint: Path) -> int:
    """The step at which a checkpoint was written, by its name; 0 if that is another one."""
    number = checkpoint.stem.removeprefix("step-")
    return int(number) if number.isdecimal() else 0


def copy(folder: Path, target: Path) -> None:
    """Copy a run that nobody writes; one that is there already stays. A copy that was begun and not
    ended is no run. Raises OSError."""
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    begun = target.with_name(f".copy-{target.name}")
    shutil.rmtree(begun, ignore_errors=True)
    shutil.copytree(folder, begun)
    begun.rename(target)


def delete(folders: list[Path]) -> None:
    """Put runs of one folder aside, until the next ones are. Raises OSError."""
    aside = folders[0].parent / DELETED
    if aside.exists():
        shutil.rmtree(aside)
    private_folder(aside)
    for folder in folders:
        folder.rename(aside / folder.name)


def deleted_in(runs: Path) -> list[Path]:
    """The runs that were put aside."""
    aside = runs / DELETED
    return [folder for folder in aside.iterdir() if is_run(folder)] if aside.is_dir() else []


def restore(runs: Path) -> None:
    """Bring back the runs that were put aside. Raises OSError."""
    for folder in deleted_in(runs):
        folder.rename(runs / folder.name)
