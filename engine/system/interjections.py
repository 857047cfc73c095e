"""Work of the lab's in the middle of the user's code that runs in the main thread.

Python runs the handler of a signal between two instructions of that thread. The signal is one that
Python makes itself, so that the system interrupts nothing; until it is made it costs nothing.
"""

from __future__ import annotations

import _thread
import os
import signal
import threading
import time
from collections.abc import Callable

SIGNAL = signal.SIGURG if hasattr(signal, "SIGURG") else signal.SIGBREAK  # pyright: ignore
"""A signal that programs hardly use, and that does nothing where nobody handles it."""
PAUSE_S = 0.05
"""How often the signal is made again while `act` is wanted."""


class Interjections:
    """After `wanted()`, `act` is called in the main thread, and again as long as `is_wanted()`. A
    cell that takes the signal for itself is not disturbed. To be made in the main thread."""

    def __init__(self, is_wanted: Callable[[], bool], act: Callable[[], object]) -> None:
        self._is_wanted, self._act = is_wanted, act
        self._wanted = threading.Event()
        self._process = os.getpid()
        self._handler = self._on_signal
        signal.signal(SIGNAL, self._handler)
        threading.Thread(target=self._keep_asking, name="interjections", daemon=True).start()

    def wanted(self) -> None:
        """May be called from any thread but the main one."""
        self._wanted.set()

    def _keep_asking(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            while self._is_wanted() and signal.getsignal(SIGNAL) is self._handler:
                _thread.interrupt_main(SIGNAL)
                time.sleep(PAUSE_S)

    def _on_signal(self, signum: int, frame: object) -> None:
        if os.getpid() == self._process:  # not a forked worker
            self._act()
