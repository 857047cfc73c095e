"""Every revision of the model is checked by the engine: shapes, counts, problems, code."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.link import LinkState
from app.workbench import Workbench
from engine.protocol import CheckModelCommand, ErrorSnapshot, ModelSnapshot, Snapshot


class ModelChecker(QObject):
    """Has the engine check every revision of the model, one at a time: while a check is under
    way, only the newest revision waits."""

    def __init__(self, bench: Workbench, parent: QObject) -> None:
        super().__init__(parent)
        self._bench = bench
        self._in_flight = 0
        self._waiting = False
        bench.store.revision_changed.connect(self.check)
        bench.link.snapshot.connect(self._on_snapshot)
        bench.link.state_changed.connect(self._on_state)

    def check(self) -> None:
        if self._in_flight:
            self._waiting = True
            return
        project = self._bench.store.project
        command = CheckModelCommand(model=project.model, training=project.training)
        self._in_flight = self._bench.send(command)

    def _on_snapshot(self, snapshot: Snapshot) -> None:
        if not self._in_flight or snapshot.reply_to != self._in_flight:
            return
        if isinstance(snapshot, ModelSnapshot | ErrorSnapshot):
            self._in_flight = 0
            if self._waiting:
                self._waiting = False
                self.check()

    def _on_state(self, state: LinkState) -> None:
        if state == "lost":
            self._in_flight = 0
            self._waiting = False
        elif state == "ready" and not self._in_flight:
            self.check()  # a new engine knows no model
