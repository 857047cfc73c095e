"""Worker processes that the window's threads call. Without Qt, so that a worker starts quickly."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.system.spawning import safe_spawn

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess


class WorkerEnded(Exception):
    """A worker process ended before it answered."""


class WorkerProcesses:
    """Starts a worker when a call finds none idle; each serves one call at a time.

    Not a ProcessPoolExecutor: when its workers are killed, its own thread can raise on a cancelled
    call, or wait for ever to write a call that nobody reads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all: dict[Connection, SpawnProcess] = {}
        self._idle: list[Connection] = []
        self._killed = False

    def call(self, function: Callable, arguments: tuple) -> object:
        """The result of `function(*arguments)` in a worker.

        Raises what the function raises, and WorkerEnded when the worker ends instead.
        """
        worker = self._take()
        try:
            worker.send((function, arguments))
            ok, result = worker.recv()
        except (EOFError, OSError) as error:
            self._forget(worker)
            raise WorkerEnded("the worker process ended") from error
        except BaseException:  # what could not be pickled is not sent: the pipe is clean
            self._give_back(worker)
            raise
        self._give_back(worker)
        if not ok:
            raise result
        return result

    def kill(self) -> None:
        """End all workers now and for good: calls under way and later ones raise WorkerEnded."""
        with self._lock:
            self._killed = True
            for process in self._all.values():
                process.kill()
            for worker in self._idle:
                worker.close()
            for process in self._all.values():
                process.join()

    def _take(self) -> Connection:
        with self._lock:
            if self._killed:
                raise WorkerEnded("the window closed")
            if self._idle:
                return self._idle.pop()
            import multiprocessing  # the window shows before it is needed

            context = multiprocessing.get_context("spawn")
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs,), name="layout", daemon=True)
            with safe_spawn():
                process.start()
            theirs.close()  # so that reading `ours` ends when the worker does
            self._all[ours] = process
            return ours

    def _give_back(self, worker: Connection) -> None:
        with self._lock:
            if self._killed:
                worker.close()
            else:
                self._idle.append(worker)

    def _forget(self, worker: Connection) -> None:
        with self._lock:
            process = self._all.pop(worker)
            process.kill()
            process.join()
            worker.close()


def _serve(window: Connection) -> None:
    """In the worker: answer calls until the window closes the pipe or ends."""
    threading.Thread(target=_end_with_the_window, name="window-watch", daemon=True).start()
    with contextlib.suppress(EOFError, KeyboardInterrupt):
        while True:
            function, arguments = window.recv()
            try:
                window.send((True, function(*arguments)))
            except Exception as error:
                window.send((False, error))


def _end_with_the_window() -> None:
    import multiprocessing

    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
