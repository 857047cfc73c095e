"""Lays out graphs in worker processes, so that the window never waits for a layout."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor

from PySide6.QtCore import QObject, Qt, Signal

WORKERS = 2
"""One lays out the newest graph while the other may still work on a dropped request."""


class LayoutWorker(QObject):
    """Worker processes, spawned at the first request; answers arrive on the window's thread.

    Of the requests of one `slot` only the newest is answered. `failed(message)` tells of a request
    that failed and had no `otherwise`.
    """

    failed = Signal(str)
    _finished = Signal(object, object, object)  # (slot, future, (then, otherwise))

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pool: ProcessPoolExecutor | None = None
        self._newest: dict[str, Future] = {}
        self._finished.connect(self._on_finished, Qt.ConnectionType.QueuedConnection)

    def submit(
        self,
        slot: str,
        function: Callable,
        *arguments: object,
        then: Callable[[object], None],
        otherwise: Callable[[BaseException], None] | None = None,
    ) -> None:
        """Call `function(*arguments)` in a worker, then `then(result)` or `otherwise(error)` in the
        window.

        `function` must be importable by name, without Qt widgets, and the arguments must be
        picklable.
        """
        if self._pool is None:
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(
                max_workers=WORKERS, mp_context=context, initializer=_end_with_the_window
            )
        self.cancel(slot)
        future = self._pool.submit(function, *arguments)
        self._newest[slot] = future
        future.add_done_callback(lambda done: self._finished.emit(slot, done, (then, otherwise)))

    def cancel(self, slot: str) -> None:
        """Drop the request of a slot, if it is still unanswered."""
        earlier = self._newest.pop(slot, None)
        if earlier is not None:
            earlier.cancel()

    def close(self) -> None:
        """End the workers at once. Requests that are unanswered stay so."""
        self._newest.clear()
        if self._pool is not None:
            # Python 3.14 has a public method for this.
            for process in list((self._pool._processes or {}).values()):
                process.kill()
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def _on_finished(self, slot: str, future: Future, answers: tuple[Callable, Callable | None]):
        if self._newest.get(slot) is not future:
            return
        del self._newest[slot]
        then, otherwise = answers
        error = future.exception()
        if error is None:
            then(future.result())
            return
        if self._pool is not None and getattr(self._pool, "_broken", False):
            self._pool.shutdown(wait=False)
            self._pool = None  # the next request starts a new one
        if otherwise is not None:
            otherwise(error)
        else:
            self.failed.emit(f"The layout failed: {type(error).__name__}: {error}")


def _end_with_the_window() -> None:
    """In the worker: watch the window's process, and exit when it was killed."""

    def watch() -> None:
        parent = multiprocessing.parent_process()
        assert parent is not None
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, name="window-watch", daemon=True).start()
