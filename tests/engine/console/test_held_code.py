"""Python that runs where code is held: what it sees and changes, and what is shown of the place."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
import torch

from engine.console import held
from engine.console.held import LINES_AROUND, HeldCode
from engine.console.namespace import Namespace
from engine.console.output import Output
from engine.project.cells import source_title
from engine.system.control import Control

FUNCTION = """
scale = 10

def outer(a, b=2):
    free = a * 100
    def inner():
        return free
    total = a + b
    hold()
    return a, total, inner(), scale, sorted(locals())

result = outer(1)
"""
CLASS = """
class Made:
    size = 3
    hold()
    double = size * 2
"""


class Place:
    """Where the code is held: runs what is typed there."""

    def __init__(self, frame: FrameType) -> None:
        self.code = HeldCode(Namespace(), frame)
        self.names: list[str] = []

    def type(self, source: str) -> str:
        """What it prints and gives, or the error that ended it."""
        said: list[str] = []
        output = Output(lambda told: said.append(getattr(told, "text", "")))
        with output.redirected(), self.code.suspended():
            error, name = self.code.run(source, output, Control())
        self.names.append(name)
        return repr(error) if error else "".join(said)


def ran(source: str, held: Callable[[Place], None]) -> dict[str, Any]:
    """The variables of code that was held where it calls `hold`."""
    variables: dict[str, Any] = {"__name__": "own"}
    variables["hold"] = lambda: held(Place(sys._getframe(1)))
    exec(compile(source, "<cell 7>", "exec"), variables)
    return variables


def test_what_is_typed_sees_and_changes_the_variables_of_the_function() -> None:
    def at(place: Place) -> None:
        assert place.type("a, b, free, total, scale") == "(1, 2, 100, 3, 10)\n"
        assert place.type("total = 50; free += 1") == ""
        assert place.type("total, free") == "(50, 101)\n"
        assert place.type("del b") == ""
        assert place.type("b").startswith("NameError")
        titles = [source_title(name) for name in place.names]
        assert titles == [f"held {number}" for number in (1, 2, 3, 4, 5)]
        shown = place.type("__import__('sys')._getframe().f_code.co_filename")
        assert shown == f"{place.names[5]!r}\n" and source_title(place.names[5]) == "held 6"
        assert linecache.getline(place.names[1], 1) == "total = 50; free += 1"

    found = ran(FUNCTION, at)
    assert found["result"] == (1, 50, 101, 10, ["a", "free", "inner", "total"])


def test_a_name_that_the_function_has_not_lasts_while_it_is_held() -> None:
    def at(place: Place) -> None:
        assert place.type("new = 5") == (
            "new: not among the variables of outer, so it is kept only while it is held here.\n"
        )
        assert "x, y: not among the variables of outer, so they are kept" in place.type("x = y = 1")
        assert place.type("new + x") == "6\n" and place.type("new = new") == ""
        assert place.type("1 / 0") == "ZeroDivisionError('division by zero')"
        assert place.type("total = 9\n1 / 0").startswith("ZeroDivisionError")
        assert place.type("def f(:").startswith("SyntaxError")

    found = ran(FUNCTION, at)
    assert found["result"][1] == 9 and "new" not in found and "new" not in found["result"][-1]


def test_a_global_is_changed_where_it_is_declared_so() -> None:
    def at(place: Place) -> None:
        assert place.type("scale = 5\nother = 1") == (
            "scale: outer does not see this change. To change the global, write `global scale`"
            " before it.\n"
        )
        assert place.type("scale") == "5\n"

    assert ran(FUNCTION, at)["result"][3] == 10
    found = ran(
        FUNCTION, lambda place: assert_silent(place, "global scale, more\nscale = more = 7")
    )
    assert found["result"][3] == 7 and found["more"] == 7


def assert_silent(place: Place, source: str) -> None:
    assert place.type(source) == ""


def test_at_the_top_of_a_file_and_in_a_class_all_names_are_its_own() -> None:
    found = ran("x = 1\nhold()\ny = x + new", lambda place: assert_silent(place, "x = new = 4"))
    assert (found["x"], found["y"]) == (4, 8)
    made = ran(CLASS, lambda place: assert_silent(place, "size = new = 5"))["Made"]
    assert (made.size, made.double, made.new) == (5, 10, 5)
    removed = ran("x = 1\nhold()", lambda place: assert_silent(place, "del x"))
    assert "x" not in removed


def test_what_is_typed_runs_in_the_modes_and_random_numbers_of_the_code_that_is_held() -> None:
    def at(place: Place) -> None:
        with torch.no_grad():
            assert place.type("torch.is_grad_enabled()") == "False\n"
            with place.code.suspended(), place.code.resumed():
                with place.code.resumed():  # a hook's code inside the run of its node
                    drawn.append(torch.rand(1).item())
                assert not torch.is_grad_enabled()
            with place.code.suspended():
                assert torch.is_grad_enabled()
                torch.rand(3)  # the engine's own
        place.type("drawn.append(torch.rand(1).item())")

    drawn: list[float] = []
    torch.manual_seed(0)
    expected = torch.rand(3).tolist()
    source = "hold()\ndrawn.append(torch.rand(1).item())"
    torch.manual_seed(0)
    exec(
        compile(source, "<cell 1>", "exec"),
        {"hold": lambda: at(Place(sys._getframe(1))), "drawn": drawn, "torch": torch},
    )
    assert drawn == expected


def test_where_the_code_is_held_is_shown_with_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = FUNCTION.splitlines(keepends=True)
    monkeypatch.setitem(linecache.cache, "<cell 7>", (1, None, lines, "<cell 7>"))
    shown = []
    ran(FUNCTION, lambda place: shown.append(place.code.snapshot("line", "Cell 7", "after it")))
    (where,) = shown
    assert (where.at, where.title, where.after) == ("line", "Cell 7", "after it")
    assert (where.file, where.function, where.line) == ("cell 7", "outer", 9)
    assert where.source == FUNCTION
    monkeypatch.setattr(held, "MAX_SOURCE", len(FUNCTION))
    ran(FUNCTION, lambda place: shown.append(place.code.snapshot("step", "Cell 7")))
    monkeypatch.setattr(held, "MAX_SOURCE", len(FUNCTION) - 1)
    monkeypatch.setattr(held, "LINES_AROUND", 2)
    ran(FUNCTION, lambda place: shown.append(place.code.snapshot("step", "Cell 7")))
    assert shown[1].source == FUNCTION and shown[1].after == ""
    assert shown[2].source == "\n" * 7 + "".join(lines[7:11]) and shown[2].line == 9
    monkeypatch.setattr(held, "LINES_AROUND", LINES_AROUND)
    long = "x" * 300
    monkeypatch.setitem(linecache.cache, "<cell 7>", (1, None, ["hold()\n", long], "<cell 7>"))
    ran("hold()", lambda place: shown.append(place.code.snapshot("step", "Cell 7")))
    assert shown[3].source == "hold()\n" + "x" * 200 and shown[3].function == ""
    many = ["#\n"] * 300 + ["hold()\n"] + [f"{n}\n" for n in range(300)]
    monkeypatch.setitem(linecache.cache, "<cell 7>", (1, None, many, "<cell 7>"))
    ran("".join(many), lambda place: shown.append(place.code.snapshot("step", "Cell 7")))
    around = shown.pop().source.splitlines()
    assert around[:101] == [""] * 101 and around[101] == "#" and around[-1] == "199"
    canvas = compile("hold()", "<eval_with_key>.3 from x", "exec")
    exec(
        canvas,
        {
            "hold": lambda: shown.append(
                HeldCode(Namespace(), sys._getframe(1)).snapshot("step", "")
            )
        },
    )
    assert shown[4].file == "the canvas" and shown[4].source == ""
