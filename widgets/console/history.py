"""The history of typed code, in this session and earlier ones."""

from __future__ import annotations

import json
from pathlib import Path

MAX_ENTRIES = 1000


class History:
    """Sources in the order they were run, the newest last, walked from the end.

    With a `path` they are kept in that file, a line of JSON each; a file that cannot be read or
    written leaves the history of this session (`fault` says why).
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self.fault = ""
        self.entries: list[str] = []
        self._place = 0
        self._draft = ""
        if path is not None:
            self._load(path)
        self._place = len(self.entries)

    def add(self, source: str) -> None:
        """Remember a source that was run, and stand after it. One run twice in a row counts
        once."""
        if source.strip() and (not self.entries or self.entries[-1] != source):
            self.entries.append(source)
            self._save(source)
        self._place = len(self.entries)
        self._draft = ""

    def older(self, current: str) -> str | None:
        """The entry before the one shown; None at the first. `current` is what stands in the
        editor: kept when it was typed anew, and given back by `newer` after the last."""
        if self._place == len(self.entries):
            self._draft = current
        if self._place == 0:
            return None
        self._place -= 1
        return self.entries[self._place]

    def newer(self) -> str | None:
        """The entry after the one shown, at the end what was being typed; None beyond."""
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
            except ValueError:  # cut short by a crash, or not ours
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
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open(mode, encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            self.fault = f"The console's history could not be kept: {error}"
