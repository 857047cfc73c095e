"""Writes the folder of one run. Figures go to SQLite on a thread, a few times a second: a step of
the run never waits for the disk."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from queue import Empty, Full, Queue
from threading import Event, Thread

from msgspec.structs import replace

from ..project.document import Project, TrainingSetup
from ..protocol import EpochRow, StepColumns
from ..system.errors import LabError
from . import annotations, folders, metrics, states
from .heartbeat import SILENT_S, Heartbeat, silent_s
from .parameter_figures import Look, LookTables
from .record import (
    CodeFile,
    Origin,
    RunProblem,
    RunRecord,
    RunState,
    Trial,
    Writer,
    load,
    save,
    versions,
)

INTERVAL_S = 0.3
MAX_WAITING = 1000
"""The most snapshots that wait for a slow disk."""
Rows = tuple[StepColumns, Sequence[EpochRow], Sequence[Look], float]
"""The rows of one snapshot, and the time at which it was taken."""


class RunWriter:
    """A run that this process trains. `begin` makes its folder; a run that ends before its first
    step leaves none. `close` it; it can `begin` again after that.

    `problem` says in words what could not be written last; the run goes on without it. `taken` says
    that another process has taken the run over: nothing is written any more.
    """

    def __init__(self, folder: Path, record: RunRecord) -> None:
        self.folder, self.record = folder, record
        self.problem = ""
        self.begun = self._going = False
        self._before = record
        self._began_at, self._has_trained = 0, False
        self._kept_until: int | None = None
        self._looked_before: tuple[Path, int] | None = None
        self.trained_before: Project | None = None
        """For a run that goes on: its project as it was trained so far; None if its folder does not
        tell."""
        self.also: list[Callable[[Path], object]] = []
        """Each writes more into a new run's folder, on the thread. It may raise LabError."""
        self._waiting: Queue[Rows] = Queue(MAX_WAITING)
        self._ended = Event()
        self._thread: Thread | None = None
        self._heart = Heartbeat(folder)

    @classmethod
    def new(
        cls, runs: Path, project: Project, folder: Path | None = None, origin: Origin | None = None
    ) -> RunWriter:
        """A new run in the folder `runs`, or in a folder of its own."""
        record = RunRecord(
            id=folders.new_id(),
            project=project,
            writer=Writer.own(),
            began_s=time.time(),
            origin=origin,
            versions=versions(),
        )
        return cls(folder or runs / record.id, record)

    def note_code(self, files: Iterable[CodeFile]) -> None:
        """The new run uses these files."""
        self.record = replace(self.record, code=tuple(files))

    @classmethod
    def resumed(cls, folder: Path, run: str, project: Project) -> RunWriter:
        """The run of a folder, which goes on with the settings of a project. Raises LabError if
        another process trains it."""
        before = None
        try:
            record = load(folder)
            before, record = record.project, replace(record, project=project)
        except RunProblem:  # its checkpoint is whole all the same
            record = replace(cls.new(folder.parent, project).record, id=run)
        if record.state == "running" and not record.writer.is_own:
            _require_nobody(folder, record.writer)
        record = replace(record, writer=Writer.own(), versions=versions())
        writer = cls(folder, record)
        writer.trained_before = before
        return writer

    def forked(self, step: int, folder: Path | None = None) -> RunWriter:
        """A new run beside this one, or in a folder of its own, which goes on from a step of it."""
        origin = Origin(self.record.id, step)
        writer = RunWriter.new(self.folder.parent, self.record.project, folder, origin)
        writer.record = replace(writer.record, code=self.record.code)
        before = self._looked_before
        if self.begun or before is None:
            writer._looked_before = self.folder / folders.METRICS, step
        else:  # this one has no folder yet
            writer._looked_before = before[0], min(step, before[1])
        writer.leave_out_script("It goes on from another run; a script begins at the first step.")
        return writer

    def leave_out_script(self, why: str) -> None:
        """The new run has no train.py; `why` says it in words."""
        self.record = replace(self.record, no_script=why)

    @property
    def checkpoints(self) -> Path:
        return self.folder / folders.CHECKPOINTS

    # -- the folder ------------------------------------------------------------------------------

    def begin(self, step: int = 0) -> None:
        """Make the folder, or open it again at a step. Raises LabError if it cannot be written."""
        if self._going:
            return
        self._before = self.record
        with self._refusal_told():
            folders.make(self.folder)
            self._record(state="running", ended_s=0.0, error="")
            self._copy_from_before()
            self._heart.begin()
        self.begun = self._going = True
        self._kept_until = self._began_at = step
        self._has_trained = False

    def _copy_from_before(self) -> None:
        """Copy the states and annotations of the run before, up to the step at which this one goes
        on."""
        if self._looked_before is not None:
            path, step = self._looked_before
            states.link(path.parent, self.folder, step)
            try:
                annotations.copy(path.parent, self.folder, step)
            except RunProblem as problem:
                self.problem = str(problem)

    def move(self, folder: Path) -> None:
        """Move the folder, also while the run goes on. Raises LabError."""
        self.rest()
        self._heart.end()
        with self._refusal_told():
            shutil.move(self.folder, folder)
            self.folder = self._heart.folder = folder
            if self._going:
                self._heart.begin()

    def settle(self, setup: TrainingSetup) -> None:
        """The last checkpoint is of this set-up. Raises LabError."""
        project = self.record.project
        if self.begun and project.training != setup:
            with self._refusal_told():
                self._record(project=replace(project, training=setup))

    def tag(self, trial: Trial) -> None:
        """The run is a trial of a sweep; also after its end. Raises LabError."""
        self.record = replace(self.record, trial=trial)
        if self.begun:
            with self._refusal_told():
                self._record()

    def end(self, state: RunState, error: str = "") -> None:
        """Write what waits, and how the run has ended. Raises LabError."""
        if self._going:
            self.rest()
            self._write()
            self._heart.end()
            self._going = False
            same = not self._has_trained and self._before.state == state
            ended_s = self._before.ended_s if same else time.time()  # it was only opened
            with self._refusal_told():
                self._record(state=state, error=error, ended_s=ended_s)

    def close(self) -> None:
        """A run whose end was not told was stopped."""
        try:
            self.end("stopped")
        except LabError as error:
            self.problem = str(error)

    @contextmanager
    def _refusal_told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise LabError(
                f"The run's folder {self.folder} could not be written: {error.strerror or error}.",
                hint="Free some disk space, or save the project where you can write.",
            ) from error

    @property
    def taken(self) -> str:
        return self._heart.problem

    def _record(self, **fields: object) -> None:
        if self.taken:
            return
        with suppress(RunProblem):  # there is none yet, or it is damaged
            fields["note"] = load(self.folder).note  # the user may have written one meanwhile
        self.record = replace(self.record, **fields)
        save(self.folder, self.record)

    # -- figures ---------------------------------------------------------------------------------

    def add(
        self, steps: StepColumns, epochs: Sequence[EpochRow], looks: Sequence[Look] = ()
    ) -> None:
        """Take the figures of a snapshot; they are written soon."""
        if steps.step or epochs:
            self._has_trained |= bool(steps.step) and steps.step[-1] > self._began_at
            try:
                self._waiting.put_nowait((steps, epochs, looks, time.time()))
            except Full:
                self.problem = f"{self.folder}: figures are left out, since the disk is too slow."

    def work(self) -> None:
        """Write what comes on a thread, until `rest`."""
        if self._going and self._thread is None:
            self._ended.clear()
            self._thread = Thread(target=self._write, name="run-writer", daemon=True)
            self._thread.start()

    def rest(self) -> None:
        """End the thread, once it has written what waits."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _write(self) -> None:
        """Write what waits until `_ended` is set, and then once more."""
        if self.taken:
            return
        also, self.also = self.also, []
        for write in also:
            try:
                write(self.folder)
            except LabError as error:
                self.problem = str(error)
        try:
            with self._opened() as connection:
                looked = LookTables(connection)
                if self._kept_until is not None:  # later figures are of a past that is left
                    metrics.keep_until(connection, self._kept_until)
                    looked.keep_until(self._kept_until)
                    self._kept_until = None
                if self._looked_before is not None:  # no checkpoint has the looks at the run before
                    looked.copy(*self._looked_before)
                    self._looked_before = None
                rows = metrics.count(connection)
                going = True
                while going:
                    going = not self._ended.wait(INTERVAL_S)
                    rows += self._write_waiting(connection, looked)
                    looked.thin_out()
                    if rows > metrics.MAX_ROWS:
                        metrics.thin_out(connection, metrics.MAX_ROWS // 2)
                        rows = metrics.count(connection)
        except (RunProblem, sqlite3.Error) as problem:
            self.problem = f"The figures of the run {self.folder.name} are not kept. {problem}"

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """The file of the figures. A damaged one is put aside: the first snapshot of a run that is
        resumed has its figures again."""
        path = self.folder / folders.METRICS
        try:
            connection = metrics.open_to_write(path)
        except RunProblem as problem:
            if not path.exists() or isinstance(problem.__cause__, sqlite3.OperationalError):
                raise
            aside = path.with_suffix(".damaged.sqlite")
            try:
                os.replace(path, aside)
            except OSError:
                raise problem from None
            connection = metrics.open_to_write(path)
            self.problem = f"{problem} It is now {aside.name}, and a new file is written."
        with closing(connection):
            yield connection

    def _write_waiting(self, connection: sqlite3.Connection, looked: LookTables) -> int:
        """Write what waits, in one transaction; returns how many steps that were."""
        count = 0
        with connection:
            while True:
                try:
                    steps, epochs, looks, told_s = self._waiting.get_nowait()
                except Empty:
                    return count
                if not self.taken:
                    metrics.append(connection, steps, epochs, told_s)
                    looked.append(looks)
                count += len(steps.step)


def _require_nobody(folder: Path, writer: Writer) -> None:
    """Raises LabError if a process trains the run, as far as this machine can know."""
    is_alive = writer.is_alive()
    if is_alive:
        raise LabError(
            f"The run {folder.name} is being trained by another process, {writer.pid}.",
            hint="Stop it there, or wait for its end.",
        )
    silence_s = silent_s(folder)
    if is_alive is None and silence_s < SILENT_S:
        raise LabError(
            f"The run {folder.name} is being trained on {writer.host}, by process {writer.pid}:"
            f" its last sign came {silence_s:.0f} s ago.",
            hint=f"Stop it there, or wait until no sign has come for {SILENT_S:.0f} s.",
        )
