"""Autosave: unsaved work is written to a recovery file every few seconds, and survives a crash.

Every window has its own recovery file, and holds a lock beside it from the first writing, so that
two windows never use the same file. If a file's lock can be taken, its window has crashed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from urllib.parse import quote_from_bytes, unquote_to_bytes

import platformdirs
from msgspec import Struct
from PySide6.QtCore import QLockFile, QObject, QTimer, Signal

from app.store import Store
from engine.project import files
from engine.project.atomic import private_folder, write_atomically
from engine.project.document import Project

INTERVAL_MS = 3000
_SUFFIX = ".recovery"


def recovery_folder() -> Path:
    return Path(platformdirs.user_data_dir("tensorlab", appauthor=False)) / "recovery"


class Recovery(Struct):
    """Work that a crashed window left: the project, the path of its file (or ""), and when it was
    written.

    The recovery file is locked against other windows until `discard`, or the end of this one.
    """

    file: Path
    project: Project
    original: str
    saved_at: datetime
    lock: QLockFile

    def discard(self) -> None:
        """Delete the recovery file: its work was restored, or is not wanted."""
        self.file.unlink(missing_ok=True)
        self.lock.unlock()


def find_recoveries(folder: Path) -> list[Recovery]:
    """The work that crashed windows left in `folder`, newest first. Unreadable files are
    skipped."""
    found = []
    for file in folder.glob(f"*{_SUFFIX}"):
        lock = _lock(file)
        if not lock.tryLock(0):
            continue
        try:
            record = json.loads(file.read_text(encoding="utf-8"))
            project = files.from_document(record["project"])
            original = os.fsdecode(unquote_to_bytes(str(record["original"])))
            saved_at = datetime.fromtimestamp(file.stat().st_mtime)
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            lock.unlock()  # FileProblem is a ValueError
            continue
        found.append(Recovery(file, project, original, saved_at, lock))
    _remove_left_locks(folder)
    return sorted(found, key=lambda recovery: recovery.saved_at, reverse=True)


def _remove_left_locks(folder: Path) -> None:
    """Remove the locks of killed windows that had no unsaved work."""
    for file in folder.glob("*.lock"):
        recovery = file.with_suffix(_SUFFIX)
        lock = _lock(recovery)
        if not recovery.exists() and lock.tryLock(0):
            lock.unlock()  # this also removes the lock's file


class Autosave(QObject):
    """Writes the store's project to the recovery file while it has unsaved changes.

    `failed(message)`: the file could not be written (disk full, no permission). It is told once;
    every few seconds the file is tried again.
    """

    failed = Signal(str)

    def __init__(
        self,
        store: Store,
        is_modified: Callable[[], bool],
        original: Callable[[], str],
        folder: Path,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._store, self._is_modified, self._original = store, is_modified, original
        self._has_failed = False
        self.file = folder / f"{os.urandom(16).hex()}{_SUFFIX}"
        self._lock = _lock(self.file)
        self._timer = QTimer(self, interval=INTERVAL_MS, singleShot=True)
        self._timer.timeout.connect(self.write)
        store.project_changed.connect(self._on_project_changed)

    def write(self) -> None:
        """Write the unsaved changes now; if there are none, remove the file."""
        self._timer.stop()
        if not self._is_modified():
            self._remove()
            return
        record = {
            "original": quote_from_bytes(os.fsencode(self._original())),
            "project": json.loads(files.dumps(self._store.project)),
        }
        try:
            self._prepare()
            write_atomically(self.file, json.dumps(record).encode(), private=True)
        except OSError as error:
            self._timer.start()
            if not self._has_failed:
                self.failed.emit(
                    f"Unsaved work cannot be saved for recovery in {self.file.parent}:"
                    f" {error.strerror or error}."
                )
            self._has_failed = True
        else:
            self._has_failed = False

    def close(self) -> None:
        """Remove the file: the window ends without unsaved work to recover."""
        self._timer.stop()
        self._remove()
        self._lock.unlock()

    def _prepare(self) -> None:
        """Make the folder and hold the lock. Raises OSError."""
        private_folder(self.file.parent)
        if not self._lock.isLocked():
            self._lock.tryLock(0)

    def _remove(self) -> None:
        with suppress(OSError):  # a file that stays is offered once more: nothing is lost
            self.file.unlink(missing_ok=True)

    def _on_project_changed(self) -> None:
        if not self._timer.isActive():
            self._timer.start()


def _lock(file: Path) -> QLockFile:
    lock = QLockFile(str(file.with_suffix(".lock")))
    lock.setStaleLockTime(0)  # a lock is stale only if its process has ended
    return lock
