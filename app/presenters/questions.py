"""Questions to the engine: send a command, get its answers, drop those that were superseded.

The answers to a command go to the presenter that sent it, even if the store drops them as outdated.
All other snapshots come from the store; its module describes the whole way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject

from app.workbench import Workbench
from engine.protocol import Command, ErrorReport, ErrorSnapshot, Snapshot

Answered = Callable[[Any], object]
Failed = Callable[[ErrorReport], object]


class Questions(QObject):
    """Sends commands; of each kind of command only the newest gets its answers."""

    def __init__(self, bench: Workbench, parent: QObject) -> None:
        super().__init__(parent)
        self._bench = bench
        self._newest: dict[type[Command], tuple[int, Answered, Failed]] = {}
        bench.link.snapshot.connect(self._on_snapshot)

    def ask(self, command: Command, answered: Answered, failed: Failed) -> int:
        """Send a command. `answered(snapshot)` is called for each answer, or `failed(error)`, until
        a command of the same kind is sent. Returns the command's id; 0, and nothing is called, if
        nothing was sent: `Link.unsent` says why."""
        command_id = self._bench.send(command)
        self._newest[type(command)] = command_id, answered, failed
        return command_id

    def drop(self) -> None:
        """Pass on no more answers."""
        self._newest.clear()

    def _on_snapshot(self, snapshot: Snapshot) -> None:
        for command_id, answered, failed in tuple(self._newest.values()):
            if command_id and snapshot.reply_to == command_id:
                if isinstance(snapshot, ErrorSnapshot):
                    failed(snapshot.error)
                else:
                    answered(snapshot)


def in_words(error: ErrorReport) -> str:
    """The message and the hint of an error, on one line."""
    return f"{error.message} {error.hint}".strip()
