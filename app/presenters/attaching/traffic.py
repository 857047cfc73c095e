"""The bytes that a window and the process that it is attached to send each other, in the status
bar."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer

from app.workbench import Workbench
from widgets.text import format_bytes

EVERY_MS = 1000


class TrafficPresenter(QObject):
    """Shows the bytes of a second, both ways, while the window is attached. `clock()` is the time
    in seconds."""

    def __init__(
        self, bench: Workbench, parent: QObject, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(parent)
        self._bench, self._clock = bench, clock
        self._before = (0.0, 0, 0)
        self._timer = QTimer(self, interval=EVERY_MS)
        self._timer.timeout.connect(self.show)
        bench.link.state_changed.connect(self._on_state)

    def show(self) -> None:
        """Show the rates since the last time."""
        then_s, sent_before, received_before = self._before
        sent, received = self._bench.link.traffic()
        now_s = self._clock()
        self._before = now_s, sent, received
        passed_s = now_s - then_s
        if passed_s > 0:
            came, went = (received - received_before) / passed_s, (sent - sent_before) / passed_s
            self._bench.window.show_traffic(
                f"{format_bytes(round(came))}/s in · {format_bytes(round(went))}/s out"
            )

    def _on_state(self) -> None:
        if self._bench.link.attached is None:
            self._timer.stop()
            self._bench.window.show_traffic("")
        elif not self._timer.isActive():
            self._before = (self._clock(), *self._bench.link.traffic())
            self._timer.start()
