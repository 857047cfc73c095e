"""ARCHITECTURE.md tells of every thread of the program, by its name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED_BY = {"Thread": "name", "ThreadPoolExecutor": "thread_name_prefix"}


def started() -> Iterator[tuple[Path, str]]:
    """The threads that are made, each by its name; "" if it has none."""
    for path in (p for room in ("app", "engine", "widgets") for p in (ROOT / room).rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text())):
            if not isinstance(call, ast.Call):
                continue
            name = NAMED_BY.get(getattr(call.func, "attr", getattr(call.func, "id", "")))
            if name is not None:
                given = [ast.unparse(each.value) for each in call.keywords if each.arg == name]
                yield path, "".join(given).strip("'")


def test_each_thread_is_in_the_table():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    section = text[text.index("## Threads") : text.index("## What can run code")]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    told = {name for row in rows for name in re.findall("`([a-z-]+)`", row)}
    there = list(started())
    assert [path for path, name in there if not name] == []
    assert {name for _, name in there} == told
