"""Python's cyclic garbage, collected in the window's thread only.

Python collects in whichever thread makes the object too many. In a thread other than the window's
it would destroy the widgets among the garbage there, which Qt does not survive.
"""

from __future__ import annotations

import gc

from PySide6.QtCore import QObject, QTimer

INTERVAL_MS = 250


def collect_in_this_thread(parent: QObject) -> None:
    """From now on garbage is collected here, by a timer; the process has turned `gc` off. Objects
    that exist already are left out: modules, mostly, which would make each collection slow."""
    gc.freeze()
    timer = QTimer(parent, interval=INTERVAL_MS)
    timer.timeout.connect(collect_due)
    timer.start()


def collect_due() -> None:
    """Collect the generations whose counts are above Python's thresholds."""
    due = zip(gc.get_count(), gc.get_threshold(), strict=True)
    oldest = max((n for n, (count, most) in enumerate(due) if count > most), default=None)
    if oldest is not None:
        gc.collect(oldest)
