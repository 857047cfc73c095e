"""Derivatives in a real engine process: a function that does not end is interrupted."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from engine.process import EngineProcess
from engine.protocol import (
    DerivativeCommand,
    DerivativeSnapshot,
    ErrorSnapshot,
    GradcheckCommand,
    InterruptSignal,
)
from tests.engine.test_engine_process import WAIT_S, answers, run_cell

HANGING = """
import socket
x = torch.ones(3)
line = socket.create_connection(("127.0.0.1", {port}))
def hang(x):
    line.sendall(b"here")
    while True:
        x = x * 1
"""


@pytest.fixture(scope="module")
def engine() -> Iterator[EngineProcess]:
    engine = EngineProcess()
    engine.start()
    yield engine
    engine.close()


@pytest.mark.parametrize(
    "command",
    [
        DerivativeCommand(kind="jacobian", function="hang", inputs=("x",)),
        GradcheckCommand(function="hang", inputs=("x",)),
    ],
)
def test_a_function_that_does_not_end_is_interrupted(engine, command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(WAIT_S)
        run_cell(engine, HANGING.format(port=server.getsockname()[1]))
        connection, _ = server.accept()
    with connection:
        connection.settimeout(WAIT_S)
        hanging = engine.send(command)
        assert connection.recv(4) == b"here"
        engine.signal(InterruptSignal())
        *_, error = answers(engine, hanging)
    assert isinstance(error, ErrorSnapshot) and error.error.type == "KeyboardInterrupt"
    sine = DerivativeCommand(kind="jacobian", function="torch.sin", inputs=("x",))
    assert isinstance(answers(engine, engine.send(sine))[-1], DerivativeSnapshot)
