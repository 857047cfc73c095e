"""What the user's code prints and logs of an error has no frame of this program."""

from __future__ import annotations

import threading
import traceback

import pytest

from engine.console.printed_tracebacks import tracebacks_of_users_frames
from engine.protocol import OutputSnapshot, RunCellCommand, Snapshot
from engine.server.session import Session
from engine.system.errors import error_report

BEGIN = """
import logging, threading, traceback
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
def fail():
    net[2](torch.ones(2, 4))
"""
CODE = {
    "printed": "try:\n    fail()\nexcept RuntimeError:\n    traceback.print_exc()",
    "read": "try:\n    fail()\nexcept RuntimeError:\n    print(traceback.format_exc())",
    "logged": (
        "own = logging.Logger('own')\nown.addHandler(logging.StreamHandler())\n"
        "try:\n    fail()\nexcept RuntimeError:\n    own.exception('it failed')"
    ),
    "of a thread": "t = threading.Thread(target=fail)\nt.start()\nt.join()",
    "of a list of frames": (
        "try:\n    fail()\nexcept RuntimeError as error:\n"
        "    print(traceback.format_list(traceback.extract_tb(error.__traceback__)))"
    ),
}


def printed(source: str) -> str:
    said: list[Snapshot] = []
    Session(said.append).handle(RunCellCommand(id=1, source=source))
    return "".join(each.text for each in said if isinstance(each, OutputSnapshot))


@pytest.mark.parametrize("name", CODE)
def test_an_error_that_the_code_prints(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "excepthook", threading.__excepthook__)
    text = printed(f"{BEGIN}{CODE[name]}\n")
    assert "net[2](torch.ones(2, 4))" in text and "linear.py" in text
    assert "engine" not in text, text


def test_the_place_that_the_code_prints_begins_with_the_users_code() -> None:
    hook = "net.register_forward_hook(lambda *_: traceback.print_stack())"
    lines = printed(f"{BEGIN}{hook}\nnet(torch.ones(2, 4))\n").splitlines()
    assert lines[0] == '  File "<cell 1>", line 7, in <module>'
    assert not any("engine" in line for line in lines)


def test_an_error_of_ours_is_read_whole_and_afterwards_all_is_as_before() -> None:
    before = threading.excepthook
    with tracebacks_of_users_frames(), tracebacks_of_users_frames():
        try:
            error_report(None)  # pyright: ignore[reportArgumentType]
        except AttributeError as error:
            assert error.__traceback__ is not None
            frames = traceback.extract_tb(error.__traceback__.tb_next)
        assert frames[0].name == "error_report"
    assert threading.excepthook is before
    assert not hasattr(traceback.StackSummary._extract_from_extended_frame_gen, "leaves_out")
