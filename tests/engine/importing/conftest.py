"""A session, and files of two folders that have the same names."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.protocol import Command, Snapshot
from engine.server.session import Session
from engine.system.current_modules import no_modules

Write = Callable[[str, str], Path]


class Engine:
    """A session that answers in this process; each command gets an id of its own."""

    def __init__(self) -> None:
        self.sent: list[Snapshot] = []
        self.session = Session(self.sent.append)
        self.lab = self.session.lab

    def ask(self, command: Command) -> list[Snapshot]:
        self.sent.clear()
        self.session.handle(command)
        while self.session.advance():
            pass
        return list(self.sent)


@pytest.fixture
def engine() -> Iterator[Engine]:
    modules, path = set(sys.modules), list(sys.path)
    yield Engine()
    with no_modules():  # nothing of a test's folders is left where none is current
        users = [n for n in set(sys.modules) - modules if "pytest-of" in str(sys.modules[n])]
        assert (users, sys.path) == ([], path)


@pytest.fixture
def write(tmp_path: Path) -> Write:

    def write_file(name: str, source: str) -> Path:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(source), encoding="utf-8")
        return file

    return write_file
