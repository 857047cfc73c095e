"""The digests of Python files, on whichever machine the engine runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from PySide6.QtCore import QObject

from app.workbench import Workbench
from engine.project import limits
from engine.project.atomic import digest_of
from engine.protocol import ReadDigestsCommand

Read = Callable[[Mapping[str, str]], object]
"""Gets the SHA-256 of each file that can be read, by its path."""


class Digests(QObject):
    def __init__(self, bench: Workbench, parent: QObject) -> None:
        super().__init__(parent)
        self._bench = bench
        self._asked: list[int] = []
        bench.link.ended.connect(self._drop)

    @property
    def machine(self) -> str:
        """The engine's machine, also before it has answered there; "" if it is this one."""
        link = self._bench.link
        place = link.place if link.script is None else None
        return place.machine if place is not None and place.is_other_machine else ""

    def absolute(self, path: str) -> str:
        """A path of the engine's machine, as it is called here."""
        return path if self.machine else str(Path(path).absolute())

    def read(self, paths: Iterable[str], read: Read) -> None:
        """Read files: at once on this machine; on another one the engine answers, unless it
        ends."""
        wanted = tuple(paths)
        if not self.machine:
            found = {path: digest_of(path, limits.MAX_FILE_BYTES) for path in wanted}
            read({path: digest for path, digest in found.items() if digest})
            return
        self._asked.append(
            self._bench.ask(
                ReadDigestsCommand(paths=wanted), lambda told: read(told.digests), lambda _: None
            )
        )

    def _drop(self) -> None:
        for command_id in self._asked:
            self._bench.link.drop_answers(command_id)
        self._asked.clear()
