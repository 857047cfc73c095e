"""Questions to the engine: send a command, get its answers, drop those that were superseded.

Answers go by their command's id to whoever asked, also where the store drops them as out of date.
All else that views show comes from the store, whose module tells the whole way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject

from app.workbench import Workbench
from engine.protocol import Command, ErrorReport, ErrorSnapshot, Snapshot

NO_ENGINE = "There is no engine: restart it from the status bar."

Answered = Callable[[Any], object]
Failed = Callable[[ErrorReport], object]


class Questions(QObject):
    """Of each kind of command only the newest is answered."""

    def __init__(self, bench: Workbench, parent: QObject) -> None:
        super().__init__(parent)
        self._bench = bench
        self._newest: dict[type[Command], tuple[int, Answered, Failed]] = {}
        bench.link.snapshot.connect(self._on_snapshot)

    def ask(self, command: Command, answered: Answered, failed: Failed) -> bool:
        """Call `answered(snapshot)` for each answer, or `failed(error)`, until the same kind of
        command is asked again. False, and no call, when there is no engine."""
        command_id = self._bench.send(command)
        self._newest[type(command)] = command_id, answered, failed
        return bool(command_id)

    def drop(self) -> None:
        """No answer is of interest any more."""
        self._newest.clear()

    def _on_snapshot(self, snapshot: Snapshot) -> None:
        for command_id, answered, failed in tuple(self._newest.values()):
            if command_id and snapshot.reply_to == command_id:
                if isinstance(snapshot, ErrorSnapshot):
                    failed(snapshot.error)
                else:
                    answered(snapshot)


def in_words(error: ErrorReport) -> str:
    """What went wrong and what to try, on one line."""
    return f"{error.message} {error.hint}".strip()
