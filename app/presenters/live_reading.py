"""Asks the engine again for what a pane shows while a run goes on, and only while it is seen."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any, Protocol

from PySide6.QtCore import QObject, QTimer

from app.presenters.questions import Questions, in_words
from app.processes.link import Link
from app.store import VALUE_SNAPSHOTS
from app.workbench import Workbench
from engine.protocol import Command, ErrorReport, Snapshot

EVERY_MS = 1_000
SHARE = 10
"""The pause between two readings is this many times as long as one reading."""


class Pane(Protocol):
    came_in_sight: Any

    def show_trouble(self, text: str) -> None: ...

    def isVisible(self) -> bool: ...


class LiveReading(QObject):
    """Asks after each of the snapshots `after`. `command()` says what to ask; None: nothing now.
    `take(snapshot)` shows an answer, and returns whether it was the last one. `link()` leads to
    whom to ask; None: the window's engine. `again()` asks at once or as soon as the pane is
    seen."""

    def __init__(
        self,
        bench: Workbench,
        pane: Pane,
        command: Callable[[], Command | None],
        take: Callable[[Any], bool],
        parent: QObject,
        link: Callable[[], Link | None] = lambda: None,
        after: tuple[type[Snapshot], ...] = VALUE_SNAPSHOTS,
    ) -> None:
        super().__init__(parent)
        self._bench, self._pane = bench, pane
        self._command, self._take, self._link = command, take, link
        self._questions = Questions(bench)
        self._is_stale, self._asked_s = True, 0.0
        self._pause = QTimer(self, interval=EVERY_MS, singleShot=True)
        self._pause.timeout.connect(self._read_if_stale)
        pane.came_in_sight.connect(self._read_if_stale)
        bench.store.on(after, self._on_news)
        bench.link.state_changed.connect(self._on_engine_state)

    def again(self) -> None:
        """Ask again: the answer to an earlier question is dropped."""
        self.forget()
        self._pause.stop()
        self._let_read()

    def forget(self) -> None:
        self._questions.drop()
        self._asked_s = 0.0

    def _on_news(self, _: Snapshot) -> None:
        self._let_read()

    def _on_engine_state(self, state: str) -> None:
        self.forget()
        if state == "ready":
            self._let_read()
        else:
            self._pane.show_trouble("The engine starts.")

    def _let_read(self) -> None:
        self._is_stale = True
        self._read_if_stale()

    def _read_if_stale(self) -> None:
        ready = self._bench.link.state == "ready" and self._pane.isVisible()
        if not (self._is_stale and ready) or self._asked_s or self._pause.isActive():
            return
        self._is_stale = False
        command, link = self._command(), self._link()
        if command is None:
            return
        self._asked_s = monotonic()
        if not self._questions.ask(command, self._on_answer, self._on_error, link):
            self._asked_s = 0.0
            self._pane.show_trouble(self._bench.link.unsent)

    def _on_answer(self, snapshot: Snapshot) -> None:
        if self._take(snapshot):
            self._end()

    def _on_error(self, error: ErrorReport) -> None:
        self._pane.show_trouble(in_words(error))
        self._end()

    def _end(self) -> None:
        """The answer is there: pause before the next."""
        took_ms = (monotonic() - self._asked_s) * 1_000
        self._asked_s = 0.0
        self._pause.start(max(EVERY_MS, round(SHARE * took_ms)))
