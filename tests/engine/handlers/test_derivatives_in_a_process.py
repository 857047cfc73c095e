"""Derivatives in a real engine process: a function that does not end is interrupted."""

from __future__ import annotations

import socket

import pytest

from engine.protocol import (
    DerivativeCommand,
    DerivativeSnapshot,
    ErrorSnapshot,
    GradcheckCommand,
    InterruptSignal,
)
from tests.engine.processes import WAIT_S, answers, run_cell

pytestmark = pytest.mark.usefixtures("forked_processes")

HANGING = """
import socket
x = torch.ones(3)
line = socket.create_connection(("127.0.0.1", {port}))
def hang(x):
    line.sendall(b"here")
    while True:
        x = x * 1
"""


@pytest.mark.parametrize(
    "command",
    [
        DerivativeCommand(kind="jacobian", function="hang", inputs=("x",)),
        GradcheckCommand(function="hang", inputs=("x",)),
    ],
)
def test_a_function_that_does_not_end_is_interrupted(shared_engine, command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(WAIT_S)
        run_cell(shared_engine, HANGING.format(port=server.getsockname()[1]))
        connection, _ = server.accept()
    with connection:
        connection.settimeout(WAIT_S)
        hanging = shared_engine.send(command)
        assert connection.recv(4) == b"here"
        shared_engine.signal(InterruptSignal())
        *_, error = answers(shared_engine, hanging)
    assert isinstance(error, ErrorSnapshot) and error.error.type == "KeyboardInterrupt"
    sine = DerivativeCommand(kind="jacobian", function="torch.sin", inputs=("x",))
    assert isinstance(answers(shared_engine, shared_engine.send(sine))[-1], DerivativeSnapshot)
