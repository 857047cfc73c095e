"""A lab, and files of Python written for one test."""

from __future__ import annotations

import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.lab import Lab
from engine.protocol import Command, Snapshot
from engine.server.session import handler_of

Ask = Callable[[Command], list[Snapshot]]
Write = Callable[[str, str], Path]


@pytest.fixture(autouse=True)
def loaders_workers_end() -> Iterator[None]:
    """A loader that is dropped midway has closed the queues of its workers; the threads that feed
    these queues end soon after."""
    yield
    for thread in threading.enumerate():
        if thread.name == "QueueFeederThread":
            thread.join(timeout=60)


@pytest.fixture
def lab() -> Lab:
    return Lab(emit=lambda snapshot: None)


@pytest.fixture
def ask(lab: Lab) -> Ask:
    """Answers a command; an error is raised, not turned into a snapshot."""
    return lambda command: [s for s in handler_of(type(command))(lab, command) if s is not None]


@pytest.fixture
def write(tmp_path: Path) -> Iterator[Write]:
    """Write a file below the test's folder; at the end no module of that folder is left."""
    modules, path = set(sys.modules), list(sys.path)

    def write_file(name: str, source: str) -> Path:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(source), encoding="utf-8")
        return file

    yield write_file
    for name in set(sys.modules) - modules:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]
    sys.path[:] = path
