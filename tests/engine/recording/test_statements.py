"""The statements of a file: the line at which each begins, and its names in their order."""

from __future__ import annotations

import linecache
from collections.abc import Iterator

import pytest

from engine.recording.statements import MAX_NAMES, Statement, Statements

FILE = "<statements of a test>"


@pytest.fixture
def read() -> Iterator:
    def read(source: str) -> Statements:
        linecache.cache[FILE] = (len(source), None, source.splitlines(keepends=True), FILE)
        return Statements(FILE)

    yield read
    linecache.cache.pop(FILE, None)


@pytest.mark.parametrize(
    ("source", "reads", "stores"),
    [
        ("y = w * x + w", ("w", "x"), ("y",)),
        ("a, b = c", ("c",), ("a", "b")),
        ("x += y", ("y", "x"), ("x",)),
        ("self.a.b = x.grad", ("self", "self.a", "x", "x.grad"), ("self.a.b",)),
        ("self.n += 1", ("self", "self.n"), ("self.n",)),
        ("f(x)[i].y", ("f", "x", "i"), ()),
        ("x: int = y", ("y",), ("x",)), ("x: int", (), ()),
        ("import a.b, c as d", (), ("a", "d")), ("from a import b as c", (), ("c",)),
        ("@deco(k)\ndef f(a=x, *, b=y, c):\n    return z", ("deco", "k", "x", "y"), ("f",)),
        ("class A(B): pass", ("B",), ("A",)),
        ("if (n := f(x)) > 1: pass", ("n", "f", "x"), ()),
        ("for i in xs: pass", ("xs",), ("i",)),
        ("with open(p) as f: pass", ("open", "p"), ("f",)),
        ("a = 1; b = a", ("a",), ("a", "b")),
        ("del x", ("x",), ()),
    ],
)  # fmt: skip
def test_the_names_that_a_statement_reads_and_binds(read, source, reads, stores) -> None:
    line = 2 if source.startswith("@") else 1
    found = read(source).at(line)
    assert (found.reads, found.stores, found.inner) == (reads, stores, ())


def test_names_of_comprehensions_and_lambdas_are_their_own(read) -> None:
    found = read("a = [x + y for x in xs if z]; f = lambda u: u.v").at(1)
    assert found.reads == ("xs",) and found.stores == ("a", "f")
    assert found.inner == ("x", "y", "xs", "z", "u", "u.v")


@pytest.mark.parametrize(
    ("source", "binds", "branches", "returns"),
    [
        ("x = 1", True, False, False), ("if x: pass", False, True, False),
        ("while x: pass", False, True, False), ("for x in y: pass", False, True, False),
        ("with x: pass", False, False, False), ("return x", True, False, True),
        ("match x:\n    case 1: pass", False, True, False), ("x = 1; return x", True, False, True),
        ("x = 1; \\\nif_ = 2", True, False, False),
    ],
)  # fmt: skip
def test_what_a_statement_does_besides(read, source, binds, branches, returns) -> None:
    found = read(source).at(1)
    assert (found.binds, found.branches, found.returns) == (binds, branches, returns)


def test_lines_belong_to_the_innermost_statement_that_begins_before(read) -> None:
    found = read(
        "x = f(\n    a,\n)\n@deco\ndef g(\n    b=1,\n):\n    return (\n        b)\n"
        "try:\n    y = 1\nexcept E as e:\n    z = e\nmatch x:\n    case [p, *q] if (\n"
        "        p):\n        x\n    case {'k': r}:\n        r\n"
    )
    lines = {line: found.first_line(line) for line in range(1, 21)}
    assert lines == {
        1: 1, 2: 1, 3: 1, 4: 5, 5: 5, 6: 5, 7: 5, 8: 8, 9: 8, 10: 10, 11: 11, 12: 12, 13: 13,
        14: 14, 15: 15, 16: 14, 17: 17, 18: 18, 19: 19, 20: 20,
    }  # fmt: skip
    caught = found.at(12)
    assert (caught.reads, caught.stores, caught.branches, caught.binds) == (
        ("E",), ("e",), True, False,
    )  # fmt: skip
    case = found.at(15)
    assert (case.reads, case.stores, case.branches) == (("p",), ("p", "q"), True)
    assert found.at(2) == Statement(2) and not found.at(2).binds
    assert found.at(11) is found.at(11)


def test_many_names_are_cut_and_a_file_that_cannot_be_parsed_has_none(read) -> None:
    names = [f"a{number}" for number in range(MAX_NAMES + 1)]
    found = read(f"{', '.join(names)} = {', '.join(f'b{n}' for n in names)}").at(1)
    assert found.stores == tuple(names[:MAX_NAMES]) and len(found.reads) == MAX_NAMES
    broken = read("x = (\ny = 1")
    assert broken.first_line(2) == 2 and broken.at(1) == Statement(1)
