"""A window that sends anything at all: the script goes on, and serves the next window."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.protocol import ContinueTrainingCommand, ReadVariablesCommand, VariablesSnapshot
from tests.engine.attaching import Script, training_until_end
from tests.fuzz.messages import Messages

MESSAGES = 10_000


@pytest.fixture
def script(
    tmp_path: Path, sockets: Path, process_server: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Script]:
    monkeypatch.chdir(tmp_path)  # a message may name a file: the window may write files there
    with training_until_end(tmp_path) as running:
        yield running


def test_no_message_stops_the_script(script: Script, tmp_path: Path) -> None:
    messages, left = Messages(random.Random(1)), MESSAGES
    while left:
        window = script.attach()
        try:
            while left:
                window.connection.send_bytes(messages.make())
                left -= 1
        except OSError:
            pass  # one was a QuitSignal, or too much waits for a window that reads nothing
        window.close()
    window = script.attach_again()
    window.send(ContinueTrainingCommand())  # it may be held since a window before
    asked = window.send(ReadVariablesCommand())
    told = window.until(VariablesSnapshot, lambda variables: variables.reply_to == asked)
    assert {"net", "optimizer"} <= {variable.name for variable in told.variables}
    (tmp_path / "end").touch()
    window.to_end()
    assert script.end() == "ended\n"
