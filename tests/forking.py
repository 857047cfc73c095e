"""Engines and layout workers that are forked from a server which has loaded torch, not spawned.

A spawned engine takes one to four seconds of a processor to load what a forked one has. That a
spawned one works is what `tests/engine/test_engine_process.py`, the tests of the layout worker
and the tests that run the program in a process of its own are for.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import context
from pathlib import Path
from unittest import mock

POSSIBLE = sys.platform == "linux"  # elsewhere a process may die if it forks after loading torch

_HANDLERS = [
    f"engine.handlers.{path.stem}"
    for path in Path(__file__).parents[1].glob("engine/handlers/[a-z]*.py")
]
_LOADED = ["torch", "torch._dynamo", "engine.serve", *_HANDLERS]

if POSSIBLE:
    from multiprocessing import forkserver

    class _Process(context.ForkServerProcess):
        """Has the environment of the process that made it, as a spawned one has."""

        def __init__(self, *arguments, **named) -> None:
            super().__init__(*arguments, **named)
            self._environment = dict(os.environ)

        def run(self) -> None:
            os.environ.clear()
            os.environ.update(self._environment)
            super().run()

    class _Context(context.ForkServerContext):
        Process = _Process


@contextmanager
def server() -> Iterator[None]:
    """Starts the server and waits until it has loaded all. A test that waits for a worker would
    else wait for torch too, and give up on a busy machine."""
    if POSSIBLE:
        forkserver.set_forkserver_preload([*_LOADED, "widgets.layout"])
        first = _Context().Process(target=int)
        first.start()
        first.join()
    yield
    if POSSIBLE:
        forkserver._forkserver._stop()


@contextmanager
def forked() -> Iterator[None]:
    """Where the program asks for processes to be spawned, they are forked."""
    real = multiprocessing.get_context

    def get_context(method: str | None = None):
        return _Context() if POSSIBLE and method == "spawn" else real(method)

    with mock.patch.object(multiprocessing, "get_context", get_context):
        yield
