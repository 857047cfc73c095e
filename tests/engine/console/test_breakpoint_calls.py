"""The hooks of `breakpoint()`: whose is called, and what is there when they have gone."""

from __future__ import annotations

import pdb
import sys
from contextlib import ExitStack
from types import CodeType

import pytest

from engine.console.breakpoint_calls import breakpoints_held, breakpoints_told

USERS: CodeType = compile("import pdb\nbreakpoint()\npdb.set_trace()", "<cell 1>", "exec")


@pytest.fixture(autouse=True)
def plain_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "breakpointhook", sys.__breakpointhook__)


def test_one_that_comes_before_the_last_one_has_gone_is_called_from_then_on() -> None:
    calls: list[str] = []
    set_trace = pdb.set_trace
    before, after = ExitStack(), ExitStack()
    before.enter_context(breakpoints_held(lambda frame: calls.append("before")))
    after.enter_context(breakpoints_held(lambda frame: calls.append(f"after {frame.f_lineno}")))
    exec(USERS, {})
    before.close()
    exec(USERS, {})
    after.close()
    assert calls == ["before", "before", "after 2", "after 3"]
    assert sys.breakpointhook is sys.__breakpointhook__ and pdb.set_trace is set_trace


def test_the_one_around_is_called_and_a_hook_of_the_users_stays(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    with breakpoints_held(lambda frame: calls.append("held")), breakpoints_told():
        exec(USERS, {})
    assert calls == ["held", "held"] and not capsys.readouterr().err

    def users() -> None:
        calls.append("users")

    monkeypatch.setattr(sys, "breakpointhook", users)
    with breakpoints_held(lambda frame: calls.append("held")):
        exec(USERS, {})
    assert calls[2:] == ["users", "held"] and sys.breakpointhook is users
    with breakpoints_told():
        sys.breakpointhook = sys.__breakpointhook__
        with breakpoints_held(lambda frame: calls.append("held")):
            sys.breakpointhook = users
    assert sys.breakpointhook is users


def test_code_that_is_not_held_is_told_its_line_once(capsys: pytest.CaptureFixture[str]) -> None:
    with breakpoints_told():
        exec(compile("\n\nbreakpoint()\nbreakpoint()", "<cell 1>", "exec"), {})
        kept = sys.breakpointhook
    assert capsys.readouterr().err.startswith("breakpoint() in line 3 did not stop. ")
    assert kept is not sys.breakpointhook
