"""Snapshots on their way from the thread that reads them to the window."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

import msgspec
import shiboken6
from PySide6.QtCore import QObject, Qt, QTimer, Signal

from engine.protocol import OutputSnapshot, OutputTailSnapshot, Snapshot

FRAME_MS = 16
BUDGET_S = 0.008
"""The most time of each frame that handing over takes; the rest of the frame is for painting."""
MAX_MERGED = 16 * 1024
"""The most characters of merged output: they are written in a few milliseconds."""


class Inbox(QObject):
    """Hands over what another thread `put`s, in order, on the window's thread, once a frame.

    Printed text waits as one snapshot, and of a tail only the newest: a window that was busy for
    long has no more to do than another.
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
            merged = None
            if self._waiting and self._waiting[-1][0] is source:
                merged = _merged(self._waiting[-1][1], item)
            if merged is not None:
                self._waiting[-1] = source, merged
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


def _merged(before: object, item: object) -> Snapshot | None:
    """One snapshot in place of two; None if both are needed."""
    if (
        isinstance(before, OutputTailSnapshot)
        and isinstance(item, OutputTailSnapshot)
        and before.reply_to == item.reply_to
    ):
        return item
    if (
        isinstance(before, OutputSnapshot)
        and isinstance(item, OutputSnapshot)
        and (before.reply_to, before.stream) == (item.reply_to, item.stream)
        and not item.text.startswith("\r")
        and len(before.text) < MAX_MERGED
    ):
        return msgspec.structs.replace(before, text=before.text + item.text)
    return None
