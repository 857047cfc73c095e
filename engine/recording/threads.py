"""Which sequence numbers are not those of one thread alone.

torch counts the nodes of each thread from 0, and a node does not tell its thread. So a number
below another thread's count may belong to either thread.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.overrides import TorchFunctionMode

from ..system.private_torch import next_sequence
from .compiled import only_calls_compiled

_lock = threading.Lock()
_taken = 0


def shared_below() -> int:
    """The first number that no thread started under `threads_counted` has taken yet."""
    return _taken


@contextmanager
def threads_counted() -> Iterator[None]:
    """Count the autograd nodes of all threads that Python starts within this context, while these
    threads live. It does not see threads of torch, such as those that run backward on a GPU."""
    start = threading.Thread.start

    def counted_start(thread: threading.Thread) -> None:
        run = thread.run

        def counted_run() -> None:
            del thread.run  # pyright: ignore[reportAttributeAccessIssue]
            try:
                with _Counting():
                    run()
            finally:
                _count()

        thread.run = counted_run
        start(thread)

    threading.Thread.start = counted_start  # pyright: ignore[reportAttributeAccessIssue]
    try:
        yield
    finally:
        threading.Thread.start = start


class _Counting(TorchFunctionMode):
    """Counts after each torch function, so that a result is counted before another thread can get
    it."""

    @only_calls_compiled
    def __torch_function__(self, func, types, args=(), kwargs=None):
        if torch.compiler.is_compiling():
            return func(*args, **(kwargs or {}))
        try:
            return func(*args, **(kwargs or {}))
        finally:
            _count()


def _count() -> None:
    global _taken
    reached = next_sequence()
    if reached > _taken:
        with _lock:
            _taken = max(_taken, reached)
