"""While code of the user's runs, the variables that are seen are read again now and then."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer

from app.presenters.questions import Questions
from app.workbench import Workbench
from engine.protocol import ReadVariablesCommand
from widgets.console.variables_view import VariablesView

EVERY_MS = 1_000


class RunningPresenter(QObject):
    """Asks for the next reading once the one before is answered, and only while `view` is seen.
    The store's snapshot shows the answer."""

    def __init__(self, bench: Workbench, view: VariablesView, parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self._view = bench, view
        self._questions = Questions(bench)
        self._waits = False
        self.timer = QTimer(self, interval=EVERY_MS)
        self.timer.timeout.connect(self._read)
        bench.link.busy_changed.connect(self._on_busy)

    def _on_busy(self, busy: bool) -> None:
        self._waits = False
        if busy:
            self.timer.start()
        else:
            self.timer.stop()

    def _read(self) -> None:
        link, held = self._bench.link, self._bench.store.held
        is_wanted = link.runs_code and held is None and self._view.isVisible()
        if is_wanted and not self._waits:
            self._waits = True
            self._questions.ask(ReadVariablesCommand(), self._done, self._done)

    def _done(self, _: object) -> None:
        self._waits = False
