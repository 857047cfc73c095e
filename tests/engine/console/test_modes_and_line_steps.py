"""Modes that change hands, steps from line to line, and the statements that make a name."""

from __future__ import annotations

import ast
import sys
import threading
from collections.abc import Iterator
from types import FrameType

import pytest
import torch

from engine.console import breakpoint_calls
from engine.console.breakpoint_calls import LineSteps, breakpoints_held
from engine.console.elsewhere.statements import (
    Statement,
    names_in,
    statements_making,
    statements_of,
    whole,
)
from engine.console.left_by_cells import UsersModes

# -- modes -----------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def plain_modes() -> Iterator[None]:
    yield
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)


def modes() -> tuple[bool, torch.dtype, str]:
    return torch.is_grad_enabled(), torch.get_default_dtype(), torch.empty(0).device.type


ENGINES, USERS = (True, torch.float32, "cpu"), (False, torch.float64, "meta")


def left_behind() -> UsersModes:
    """After a cell that has set all three."""
    found = UsersModes()
    with found.users():
        torch.set_grad_enabled(False)
        torch.set_default_dtype(torch.float64)
        torch.set_default_device("meta")
    return found


def test_what_a_cell_sets_holds_for_the_next_cell_and_for_nobody_else() -> None:
    users = left_behind()
    assert modes() == ENGINES
    with users.users():
        assert modes() == USERS
        torch.set_grad_enabled(True)
    assert modes() == ENGINES
    with pytest.raises(ValueError, match="x"), users.users():
        torch.set_default_dtype(torch.float16)
        raise ValueError("x")
    assert modes() == ENGINES
    with users.users():
        assert modes() == (True, torch.float16, "meta")


def test_defaults_are_the_users_dtype_and_device_alone() -> None:
    users = left_behind()
    with users.defaults():
        assert modes() == (True, torch.float64, "meta")
    with torch.no_grad(), users.defaults():
        assert modes() == (False, torch.float64, "meta")
    assert modes() == ENGINES
    with users.users():
        assert modes() == USERS


def test_inside_a_cell_the_engine_has_its_grad_mode_and_dtype_on_the_users_device() -> None:
    users = left_behind()
    torch.set_default_dtype(torch.bfloat16)
    with users.users():
        with users.engines():
            assert modes() == (True, torch.bfloat16, "meta")
        assert modes() == USERS
    assert modes() == (True, torch.bfloat16, "cpu")


# -- steps from line to line -----------------------------------------------------------------------

CODE = """\
def inner(x):
    y = x + 1
    return y

def outer():
    stop()
    a = inner(1)
    return a

b = outer()
c = 3
"""


class Stops:
    """The lines at which code is held, and what is done at each."""

    def __init__(self, *at_each: str) -> None:
        self.lines: list[tuple[str, int]] = []
        self._at_each = [*at_each]
        self.steps = LineSteps(self.stop)

    def stop(self, frame: FrameType) -> None:
        self.lines.append((frame.f_code.co_name, frame.f_lineno))
        if self._at_each and self._at_each.pop(0) == "line":
            self.steps.begin(frame)

    def run(self, source: str = CODE) -> list[tuple[str, int]]:
        exec(compile(source, "<cell 1>", "exec"), {"stop": self.first})
        self.steps.end()
        return self.lines

    def first(self) -> None:
        self.stop(sys._getframe(1))


def test_a_step_goes_to_the_next_line_of_the_frame_and_then_to_that_around_it() -> None:
    assert Stops("on").run() == [("outer", 6)] and sys.gettrace() is None
    assert Stops("line", "on").run() == [("outer", 6), ("outer", 7)]
    assert sys.gettrace() is None
    assert Stops("line", "line", "line", "on").run() == [
        ("outer", 6), ("outer", 7), ("outer", 8), ("<module>", 11),
    ]  # fmt: skip
    assert sys.gettrace() is None


def test_the_last_expression_of_a_cell_is_its_next_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(breakpoint_calls, "is_user_file", lambda name: name.startswith("<cell"))
    stops = Stops("line", "on")
    space: dict[str, object] = {"stop": stops.first}
    exec(compile("stop()", "<cell 1>", "exec"), space)
    eval(compile("1 + 1", "<cell 2>", "eval"), space)
    assert stops.lines == [("<module>", 1)]
    eval(compile("\n\n1 + 1", "<cell 1>", "eval"), space)
    stops.steps.end()
    assert stops.lines == [("<module>", 1), ("<module>", 3)] and sys.gettrace() is None


def test_a_breakpoint_of_another_thread_tells_its_line_and_goes_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    held: list[int] = []
    code = compile("\nbreakpoint()", "<cell 4>", "exec")
    with breakpoints_held(lambda frame: held.append(frame.f_lineno)):
        thread = threading.Thread(target=exec, args=(code, {}))
        thread.start()
        thread.join()
        assert held == []
        exec(code, {})
    assert held == [2]
    assert capsys.readouterr().err == (
        "breakpoint() in line 2 of cell 4 did not stop: it holds the main thread only.\n"
    )
    with breakpoints_held(lambda frame: held.append(9), thread=threading.get_ident() + 1):
        exec(code, {})
    assert held == [2]


# -- statements ------------------------------------------------------------------------------------


def test_all_of_a_cell_as_one_statement() -> None:
    found = whole("a = b\ndef f(c): return c + d\na.x = 2\ng[0] = 1")
    assert found.text.startswith("a = b") and found.binds == {"a", "f"}
    assert found.makes == {"a", "f", "g"} and found.reads == {"b", "d", "a", "g"}
    assert whole("def (") == Statement("def (", frozenset(), frozenset(), frozenset())
    kept = statements_of(["f"], ["b = 1; d = 2", found])
    assert kept.source == "b = 1\nd = 2\n" + found.text and kept.missing == ()


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("x", ["x = 5", "x.a = 6", "x[0][1] = 7"]),
        ("y", ["y: int = 1"]),
        ("k", ["for k in z: pass"]),
        ("f", ["async def f(): pass"]),
        ("os", ["import os.path"]),
        ("m", ["import os as m"]),
        ("gone", []),
        ("z", []),
    ],
)
def test_the_statements_since_a_name_was_last_given_a_whole_value(
    name: str, texts: list[str]
) -> None:
    cells = [
        "x = 1\nx.b = 2\nz.c = 0",
        "x = 5; y: int = 1\nx.a = 6\nfor k in z: pass",
        "x[0][1] = 7\nasync def f(): pass\nimport os.path\nimport os as m",
    ]
    assert [each.text for each in statements_making(name, cells)] == texts


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("f(a, b=c)", {"f", "a", "c"}),
        ("lambda x: x + y", {"y"}),
        ("def f(x=d):\n    z = x\n    return z + w", {"d", "w"}),
        ("[i + j for i in k]", {"j", "k"}),
        ("a.b[c] = d", {"a", "c", "d"}),
        ("class A(B):\n    n = 1\n    m = n + o", {"B", "o"}),
        ("a = a + 1", {"a"}),
    ],
)
def test_the_names_that_code_reads_from_around_it(code: str, names: set[str]) -> None:
    assert names_in(ast.parse(code)) == names
