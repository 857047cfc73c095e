"""Lays out graphs in worker processes, so that the window never waits for a layout."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal

from app.processes.worker_processes import WorkerProcesses

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

WORKERS = 2
"""The number of worker processes: one lays out the newest graph while the other may still work on a
dropped request."""


class LayoutWorker(QObject):
    """Worker processes, spawned when first needed; answers arrive on the window's thread.

    Of the requests of one `slot` only the newest is answered. A request that is superseded before
    a worker took it never runs. `failed(message)` tells of a request that failed and had no
    `otherwise`.
    """

    failed = Signal(str)
    _finished = Signal(object, object, object)  # (slot, future, (then, otherwise))

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._workers = WorkerProcesses()
        self._newest: dict[str, Future] = {}
        self._finished.connect(self._on_finished, Qt.ConnectionType.QueuedConnection)

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        from concurrent.futures import ThreadPoolExecutor  # the window shows before it is needed

        return ThreadPoolExecutor(WORKERS, thread_name_prefix="layout")

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
        self.cancel(slot)
        future = self._threads.submit(self._workers.call, function, arguments)
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
        self._workers.kill()
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _on_finished(self, slot: str, future: Future, answers: tuple[Callable, Callable | None]):
        if self._newest.get(slot) is not future:
            return
        del self._newest[slot]
        then, otherwise = answers
        error = future.exception()
        if error is None:
            then(future.result())
        elif otherwise is not None:
            otherwise(error)
        else:
            self.failed.emit(f"The layout failed: {type(error).__name__}: {error}")
