"""Questions to the engine, of which only the newest of each kind is worth an answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject

from app.workbench import Workbench
from engine.protocol import Command, ErrorReport, ErrorSnapshot, Snapshot

Answered = Callable[[Any], object]
Failed = Callable[[ErrorReport], object]


class Questions(QObject):
    """Hands each answer to whoever asked, unless the same was asked anew in the meantime."""

    def __init__(self, bench: Workbench, parent: QObject) -> None:
        super().__init__(parent)
        self._bench = bench
        self._newest: dict[type[Command], tuple[int, Answered, Failed]] = {}
        bench.link.snapshot.connect(self._on_snapshot)

    def ask(self, command: Command, answered: Answered, failed: Failed) -> None:
        """Call `answered(snapshot)` or `failed(error)` when the engine has looked; neither when
        there is no engine, or `command`'s kind is asked again before."""
        self._newest[type(command)] = self._bench.send(command), answered, failed

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
