"""One process reads what all tests of a file export; it knows no more than a fresh one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from engine.exporting.verifying import Verifier
from engine.handlers.exporting import export
from engine.lab import Lab
from engine.protocol import Command, Snapshot
from engine.session import handler_of

Ask = Callable[[Command], list[Snapshot]]


class Lent:
    """The one process as each export gets it: it does not end with the export."""

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier

    def __enter__(self) -> Verifier:
        return self._verifier

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier() as verifier, pytest.MonkeyPatch.context() as patch:
        patch.setattr(export, "Verifier", lambda: Lent(verifier))
        yield verifier


@pytest.fixture(scope="module")
def lab() -> Lab:
    return Lab(emit=lambda snapshot: None)


@pytest.fixture(scope="module")
def ask(lab: Lab) -> Ask:
    """Answers a command; an error is raised, not turned into a snapshot."""
    return lambda command: [s for s in handler_of(type(command))(lab, command) if s is not None]
