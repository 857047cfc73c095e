"""A lab for all tests of a file, and the process that reads what they export."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from engine.exporting.verifying import Verifier
from engine.lab import Lab
from engine.protocol import Command, Snapshot
from engine.server.session import handler_of
from tests.verifying import one_verifier

Ask = Callable[[Command], list[Snapshot]]


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with one_verifier() as verifier:
        yield verifier


@pytest.fixture(scope="module")
def lab() -> Lab:
    return Lab(emit=lambda snapshot: None)


@pytest.fixture(scope="module")
def ask(lab: Lab) -> Ask:
    """Answers a command; an error is raised, not turned into a snapshot."""
    return lambda command: [s for s in handler_of(type(command))(lab, command) if s is not None]
