"""Snapshots on their way from the thread that reads them to the window."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

import shiboken6
from PySide6.QtCore import QObject, Qt, QTimer, Signal

from app.processes.merging import merged

FRAME_MS = 16
BUDGET_S = 0.008
"""The most time of each frame that handing over takes; the rest of the frame is for painting."""


class Inbox(QObject):
    """Hands over what another thread `put`s, in order, on the window's thread, once a frame.

    Printed text waits as one snapshot, so do the steps of a run, and of a tail only the newest: a
    window that was busy for long has little more to do than another.
    """

    _filled = Signal()

    def __init__(self, take: Callable[[object, object], object], parent: QObject) -> None:
        """`take(source, item)` gets what `put` was given."""
        super().__init__(parent)
        self._take = take
        self._lock = threading.Lock()
        self._waiting: deque[tuple[object, object]] = deque()
        self._is_announced = False
        self._timer = QTimer(self, singleShot=True)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._hand_over)
        self._handed_over_at = 0.0
        self._filled.connect(self._schedule, Qt.ConnectionType.QueuedConnection)

    def put(self, source: object, item: object) -> None:
        """Let the window's thread take an item. May be called from any thread."""
        with self._lock:
            one = None
            if self._waiting and self._waiting[-1][0] is source:
                one = merged(self._waiting[-1][1], item)
            if one is not None:
                self._waiting[-1] = source, one
            else:
                self._waiting.append((source, item))
            announces, self._is_announced = not self._is_announced, True
        if announces and shiboken6.isValid(self):  # the window may have gone
            self._filled.emit()

    def _schedule(self) -> None:
        since_ms = (time.monotonic() - self._handed_over_at) * 1000
        if since_ms >= FRAME_MS:
            self._hand_over()
        else:
            self._timer.start(round(FRAME_MS - since_ms))

    def _hand_over(self) -> None:
        self._timer.start(FRAME_MS)  # for what is left, also if `take` raises or opens a dialog
        end = time.monotonic() + BUDGET_S
        while time.monotonic() < end:
            with self._lock:
                if not self._waiting:
                    self._is_announced = False
                    self._timer.stop()
                    break
                source, item = self._waiting.popleft()
            self._take(source, item)
        self._handed_over_at = time.monotonic()
