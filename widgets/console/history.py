"""The history of cells, of this session and earlier ones."""

from __future__ import annotations

import json
import os
from pathlib import Path

from engine.project.atomic import private_folder

MAX_ENTRIES = 1000


class History:
    """The sources that were run, newest last, and a position among them.

    With a `path`, they are saved in that file, each as a line of JSON. If the file cannot be read
    or written, `fault` says why, and the history is that of this session.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self.fault = ""
        self.entries: list[str] = []
        self._draft = ""
        if path is not None:
            self._load(path)
        self._place = len(self.entries)

    def add(self, source: str) -> None:
        """Add a source that was run, and set the position after it. A source equal to the last one
        is not added again."""
        if source.strip() and (not self.entries or self.entries[-1] != source):
            self.entries.append(source)
            self._save(source)
        self._place = len(self.entries)
        self._draft = ""

    def older(self, current: str) -> str | None:
        """Go to the entry before and return it; None if there is none. `current` is the text in the
        editor: if it is not from the history, `newer` returns it after the last entry."""
        if self._place == len(self.entries):
            self._draft = current
        if self._place == 0:
            return None
        self._place -= 1
        return self.entries[self._place]

    def newer(self) -> str | None:
        """Go to the entry after and return it: after the last one, the text that the user was
        typing. None if that is shown already."""
        if self._place >= len(self.entries):
            return None
        self._place += 1
        return self._draft if self._place == len(self.entries) else self.entries[self._place]

    def _load(self, path: Path) -> None:
        try:
            lines = path.read_text("utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            return
        except OSError as error:
            self.fault = f"The console's history could not be read: {error}"
            return
        for line in lines:
            try:
                entry = json.loads(line)
            except ValueError:  # the line was cut short by a crash, or is of another program
                continue
            if isinstance(entry, str):
                self.entries.append(entry)
        if len(self.entries) > MAX_ENTRIES:
            self.entries = self.entries[-MAX_ENTRIES:]
            self._write("".join(f"{json.dumps(entry)}\n" for entry in self.entries), "w")

    def _save(self, source: str) -> None:
        self._write(f"{json.dumps(source)}\n", "a")

    def _write(self, text: str, mode: str) -> None:
        if self._path is None:
            return
        try:
            private_folder(self._path.parent)
            with open(self._path, mode, encoding="utf-8", opener=_open_private) as file:
                file.write(text)
        except OSError as error:
            self.fault = f"The console's history could not be kept: {error}"


def _open_private(path: str, flags: int) -> int:
    """Open a file that only this user can read, also one that an older version made."""
    descriptor = os.open(path, flags, 0o600)
    if os.name == "posix":
        os.fchmod(descriptor, 0o600)
    return descriptor
