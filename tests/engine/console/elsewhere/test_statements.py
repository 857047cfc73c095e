"""The statements of cells that made a name: run alone, they make it again."""

from __future__ import annotations

import pytest

from engine.console.elsewhere.statements import statements_of

CELLS = [
    "import math as m\nfrom random import Random\nunused = 1 / 3",
    "base = [m.pi,\n        2]\nother = 5",
    "def halved(x, y=other):\n    z = x / 2\n    return z + y * base[1]",
    "table = {}\ntable['a'] = halved(3)\nprint(table)",
    "@staticmethod\nclass Drawn:\n    seed = other\n    def draw(self):\n"
    "        return Random(self.seed)",
    "for i in range(3): total = i",
    "def broken(:",
    "text = '''one\n  two'''",
]


@pytest.mark.parametrize(
    ("name", "kept", "left"),
    [
        ("base", ["import math as m", "base = [m.pi,\n        2]"], ["unused", "other"]),
        ("halved", ["def halved", "other = 5", "base ="], ["table", "Random"]),
        ("table", ["table = {}", "table['a'] = halved(3)"], ["print", "class"]),
        ("Drawn", ["@staticmethod\nclass Drawn", "from random", "other = 5"], ["halved"]),
        ("total", ["for i in range(3): total = i"], ["base"]),
        ("text", ["text = '''one\n  two'''"], ["base"]),
    ],
)
def test_a_name_has_its_statements_and_no_others(name: str, kept: list, left: list) -> None:
    found = statements_of([name], CELLS)
    assert found.missing == () and name in found.makes
    for text in kept:
        assert text in found.source
    for text in left:
        assert text not in found.source
    exec(found.source, space := {})
    assert name in space


def test_what_no_cell_makes_is_told() -> None:
    assert statements_of(["x"], ["x = torch.ones(n)"]).missing == ("n", "torch")
    assert statements_of(["gone"], ["x = 1"]).missing == ("gone",)
    assert statements_of(["x"], ["from m import *\nx = torch.ones(n)"]).missing == ()
    later = statements_of(["x"], ["x = 1", "y = 2", "x = y"])
    assert later.source == "x = 1\ny = 2\nx = y"
