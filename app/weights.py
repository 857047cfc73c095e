"""The learnt weights of the project: whether they are saved, and the file beside the project's.

The engine holds the weights. `NAME.safetensors` beside `NAME.tlab` has those that were learnt; a
model with new weights needs no file. `Weights` knows which weights the engine has, and which the
file has.
"""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path

from msgspec import Struct
from PySide6.QtCore import QObject, Signal

from app.processes.link import Link
from app.store import Store
from engine.project.files import weights_file
from engine.protocol import (
    ErrorSnapshot,
    FitSnapshot,
    OpenWeightsCommand,
    SavedWeightsSnapshot,
    SaveWeightsCommand,
    Snapshot,
    StopSignal,
    TrainingSnapshot,
    WeightsSnapshot,
)

NEW = 0
"""The version of weights that the seed gives; what was learnt or loaded has a higher one."""


class _File(Struct, frozen=True):
    """A weight file that this window has read or written, as it was then."""

    path: Path
    size: int
    changed_ns: int

    @staticmethod
    def of(path: Path) -> _File | None:
        try:
            status = path.stat()
        except (OSError, ValueError):
            return None
        return _File(path, status.st_size, status.st_mtime_ns)


class Weights(QObject):
    """`changed()`: `modified` has changed. `settled()`: no weights are being written any more.
    `failed(message)`: weights were not saved or not loaded, in words."""

    changed = Signal()
    settled = Signal()
    failed = Signal(str)

    def __init__(self, store: Store, link: Link, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store, self._link = store, link
        self._versions = count(1)
        self._current = self._saved = NEW
        self._file: _File | None = None
        self._seen: tuple[str, int] = ("", 0)  # the newest run and its step
        self._old_run = ""  # trains the model of the project before
        self._opening: list[int] = []  # commands that open weights; only the last one counts
        self._writing: dict[int, tuple[int, Path]] = {}
        """Version and file by the command that the engine has not answered."""
        self._must_open = False
        link.snapshot.connect(self._on_snapshot)
        link.became_ready.connect(self._on_ready)
        link.ended.connect(self._on_ended)

    @property
    def modified(self) -> bool:
        """Whether the model has learnt since its weights were saved or loaded, or has forgotten
        what the file has."""
        return self._current != self._saved

    @property
    def learnt(self) -> bool:
        """Whether the model has weights that its seed would not give again."""
        return self._current != NEW

    @property
    def stay(self) -> bool:
        """Whether the weights, and a run, outlive this window: its engine serves windows."""
        return self._link.is_served

    @property
    def writing(self) -> bool:
        return bool(self._writing)

    def open(self, project_path: str) -> None:
        """Another project is shown: load the weights beside its file, if there are any."""
        run = self._store.newest(TrainingSnapshot)
        if run is not None and run.run != self._old_run:
            self._old_run = run.run
            if run.state in ("running", "paused"):
                self.stop_run()
        had_weights = self.learnt
        self._file = _File.of(weights_file(project_path)) if project_path else None
        self._set(*[next(self._versions)] * 2 if self._file else (NEW, NEW))
        if had_weights or self._file:
            self._send_open()

    def stop_run(self) -> None:
        """End the run after its step in hand."""
        self._link.signal(StopSignal())

    def foreign_file(self, project_path: str) -> str:
        """The name of the weight file that saving would replace and that this window neither read
        nor wrote; "" if there is none."""
        path = weights_file(project_path)
        there = _File.of(path)
        return path.name if self.learnt and there and there != self._file else ""

    def save(self, project_path: str) -> None:
        """Let the engine write what was learnt; for new weights, remove the file that this window
        wrote or read. `settled` follows."""
        path = weights_file(project_path)
        if not self.learnt:
            self._remove(path)
            return
        project = self._store.project
        command = SaveWeightsCommand(
            model=project.model,
            training=project.training,
            path=os.fsencode(path),
            revision=self._store.revision,
        )
        command_id = self._link.send(command)
        if command_id:
            self._writing[command_id] = self._current, path
        else:
            self._fail_to_save(path, self._link.unsent)

    # -- the engine ------------------------------------------------------------------------------

    def _on_snapshot(self, snapshot: Snapshot) -> None:
        if isinstance(snapshot, TrainingSnapshot):
            self._follow(snapshot)
        elif snapshot.reply_to in self._writing:
            if isinstance(snapshot, SavedWeightsSnapshot | ErrorSnapshot):
                self._end_writing(snapshot)
        elif snapshot.reply_to in self._opening:
            if isinstance(snapshot, ErrorSnapshot) and snapshot.reply_to == self._opening[-1]:
                self._file = None
                self._set(NEW, NEW)
                self.failed.emit(
                    f"The weights beside the project were not loaded. {snapshot.error.message}"
                )
        elif isinstance(snapshot, FitSnapshot):
            if snapshot.loaded and snapshot.saved_beside:
                self._set(next(self._versions), self._saved)
        elif isinstance(snapshot, WeightsSnapshot):
            # Else the model was initialised again.
            self._set(next(self._versions) if snapshot.learnt else NEW, self._saved)

    def _follow(self, run: TrainingSnapshot) -> None:
        if run.trial is not None:
            return  # after a sweep the model has the weights again that it had before
        seen = run.run, run.step
        if run.run != self._old_run and seen != self._seen and run.step > 0:
            self._set(next(self._versions), self._saved)
        self._seen = seen

    def _end_writing(self, answer: SavedWeightsSnapshot | ErrorSnapshot) -> None:
        version, path = self._writing.pop(answer.reply_to)
        if isinstance(answer, ErrorSnapshot):
            self._fail_to_save(path, answer.error.message)
            return
        self._file = _File.of(path)
        if self.learnt and self._seen[0] == answer.run and self._seen[1] <= answer.step:
            # The file is as new as any snapshot of the run, also of one that comes later.
            self._seen = answer.run, answer.step
            version = self._current
        self._set(self._current, version)
        self._settle()

    def _on_ready(self) -> None:
        if self._must_open:
            self._send_open()

    def _on_ended(self) -> None:
        """The weights have gone with the engine; the next one gets those of the file."""
        writing, self._writing = self._writing, {}
        for _version, path in writing.values():
            self._fail_to_save(path, "the engine has ended")
        self._opening.clear()
        self._must_open = self._file is not None
        self._set(self._saved, self._saved)

    def _send_open(self) -> None:
        project = self._store.project
        command_id = self._link.send(
            OpenWeightsCommand(
                model=project.model,
                training=project.training,
                path=os.fsencode(self._file.path) if self._file else b"",
                revision=self._store.revision,
            )
        )
        self._must_open = not command_id and self._file is not None
        if command_id:
            self._opening.append(command_id)

    # -- what is known ---------------------------------------------------------------------------

    def _set(self, current: int, saved: int) -> None:
        was_modified = self.modified
        self._current, self._saved = current, saved
        if self.modified != was_modified:
            self.changed.emit()

    def _remove(self, path: Path) -> None:
        there = _File.of(path)
        if there is not None and there == self._file:
            try:
                path.unlink()
            except OSError as error:
                self._fail_to_save(path, f"the old file stays: {error.strerror or error}")
                return
        self._file = None
        self._set(NEW, NEW)
        self._settle()

    def _fail_to_save(self, path: Path, reason: str) -> None:
        self.failed.emit(f"The weights were not saved in {shown_name(path)}: {reason}")
        self._settle()

    def _settle(self) -> None:
        if not self.writing:
            self.settled.emit()


def shown_name(path: Path) -> str:
    """The name of a file for people; bytes that are not UTF-8 become �."""
    return os.fsencode(path.name).decode(errors="replace")
