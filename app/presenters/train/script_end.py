"""Words on the loop of a script that has ended, or that the window has left."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.processes.exit_reasons import ExitReason
from app.workbench import Workbench
from engine.connecting.greeting import About
from engine.protocol import LoopSnapshot
from widgets.training.run_words import left_text
from widgets.training.train_view import TrainView


class ScriptEnd(QObject):
    """`script` is the process whose loop is shown; None for a loop of the console, or a run."""

    def __init__(self, bench: Workbench, view: TrainView, parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self._bar = bench, view.bar
        self.script: About | None = None
        bench.store.on(LoopSnapshot, self._keep_script)
        bench.link.lost.connect(self._on_lost)

    def _keep_script(self, loop: LoopSnapshot) -> None:
        if loop.state in ("running", "paused"):
            attached = self._bench.link.script
            self.script = attached.about if attached is not None else None

    def tell_left(self, step: int) -> None:
        """The connection has ended after a step; `lost` says more if the window did not end it."""
        assert self.script is not None
        words = f"The window has left {self.script.title}, which goes on without it."
        self._bar.show_left(left_text(words, step))

    def _on_lost(self, reason: ExitReason) -> None:
        loop = self._bench.newest(LoopSnapshot)
        if reason.was_attached and self.script is not None and loop is not None:
            self._bar.show_left(left_text(f"{reason.title}.", loop.step), reason.can_reconnect)
