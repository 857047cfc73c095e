"""Fixtures for tests of a real engine process."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from engine.process import SpawnedEngine
from tests import forking
from tests.engine.processes import WAIT_S


@pytest.fixture
def own_engine(process_server: None) -> Iterator[SpawnedEngine]:
    """A new engine process, forked: for tests that end it."""
    engine = SpawnedEngine()
    with forking.forked():
        engine.start()
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def shared_engine(process_server: None) -> Iterator[SpawnedEngine]:
    """One engine process, forked, for all tests of a module that leave it running and idle."""
    engine = SpawnedEngine()
    with forking.forked():
        engine.start()
    yield engine
    engine.close()


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A server on this machine. Code in the engine connects to it to say how far it has come."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(WAIT_S)
        yield server
