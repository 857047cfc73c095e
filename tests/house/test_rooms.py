"""The house: no two files, folders or rooms import each other, and every room has a door."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path, PurePosixPath

import networkx as nx
import pytest

ROOT = Path(__file__).parents[2]
FILES = {
    path.relative_to(ROOT).with_suffix("").as_posix(): path
    for side in ("app", "widgets", "engine")
    for path in sorted((ROOT / side).rglob("*.py"))
}
"""Every product file, by its path without `.py`."""
MOST_FILES = 24
"""In one folder with its door: more, and a newcomer does not find the right one. No reason to make
a folder of one file."""


def imported(name: str, tree: ast.Module) -> set[str]:
    """The product files that a file imports anywhere, also for types only."""
    here = PurePosixPath(name)
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            base = here.parents[node.level - 1] if node.level else PurePosixPath()
            base = base.joinpath(*(node.module or "").split("."))
            for alias in node.names:
                found.update(file_of(base / alias.name) or file_of(base))
        elif isinstance(node, ast.Import):
            for alias in node.names:
                found.update(file_of(PurePosixPath(*alias.name.split("."))))
    return found - {name}


def file_of(place: PurePosixPath) -> set[str]:
    """The file of a module, or the door of a package; empty for what is not ours or no module."""
    return {str(p) for p in (place, place / "__init__") if str(p) in FILES}


def imports() -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_nodes_from(FILES)
    for name, path in FILES.items():
        for other in imported(name, ast.parse(path.read_text(encoding="utf-8"))):
            graph.add_edge(name, other)
    return graph


def circles(graph: nx.DiGraph) -> list[list[str]]:
    return [sorted(c) for c in nx.strongly_connected_components(graph) if len(c) > 1]


def room(name: str) -> str:
    """The folder of a file. A file that lies directly in app, widgets or engine is its own."""
    folder = str(PurePosixPath(name).parent)
    return name if folder in ("app", "widgets", "engine") else folder


def top_room(name: str) -> str:
    """The folder right under app, widgets or engine, with all that is in it."""
    return "/".join(PurePosixPath(name).parts[:2])


@pytest.fixture(scope="module")
def graph() -> nx.DiGraph:
    return imports()


def test_the_reader_of_imports_sees_them(graph: nx.DiGraph):
    """Guards the tests below, which would pass on a graph without edges."""
    assert graph.has_edge("engine/handlers/values", "engine/lab/__init__")
    assert graph.has_edge("widgets/canvas/scene", "widgets/layout/__init__")
    assert graph.number_of_edges() > len(FILES)
    tree = ast.parse(
        "from ...system.errors import LabError\nfrom . import window\nimport engine.lab"
    )
    assert imported("engine/tensors/values/x", tree) == {
        "engine/system/errors",
        "engine/tensors/values/window",
        "engine/lab/__init__",
    }


def test_no_two_files_import_each_other(graph: nx.DiGraph):
    assert circles(graph) == []


def test_no_two_folders_import_each_other(graph: nx.DiGraph):
    folders = nx.DiGraph()
    for name, other in graph.edges:
        if room(name) != room(other) and not name.endswith("__init__"):  # a door hands names on
            folders.add_edge(room(name), room(other))
    assert circles(folders) == []


def test_no_two_rooms_import_each_other(graph: nx.DiGraph):
    rooms = nx.DiGraph()
    for name, other in graph.edges:
        if top_room(name) != top_room(other):
            rooms.add_edge(top_room(name), top_room(other))
    assert rooms.has_edge("engine/operations", "engine/console")
    assert circles(rooms) == []


def test_the_engine_has_all_its_files_in_rooms():
    assert [name for name in FILES if PurePosixPath(name).parent.name == "engine"] == [
        "engine/__init__"
    ]


def test_no_folder_holds_too_many_files():
    counts = Counter(path.parent for path in [*FILES.values(), *(ROOT / "tests").rglob("*.py")])
    assert {folder: n for folder, n in counts.items() if n > MOST_FILES} == {}


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith("__init__")])
def test_every_room_has_a_door_that_says_what_is_in_and_what_is_not(name: str):
    """In its first paragraph what is in, and after that what one would look for here in vain."""
    said = ast.get_docstring(ast.parse(FILES[name].read_text(encoding="utf-8"))) or ""
    first, _, rest = said.partition("\n\n")
    assert len(first.split()) > 2
    assert "Not here: " in rest


def test_no_file_has_a_name_that_says_nothing():
    """A name is to say what the file holds, not how it came about."""
    unclear = {"debugger", "debugging", "break_mode", "passes", "beside", "deep", "turns", "kept"}
    unclear |= {
        "stops",
        "lines",
        "utils",
        "helpers",
        "misc",
        "common",
        "part",
        "parts",
        "way",
        "given",
    }
    unclear |= {"asked", "meeting", "there", "given", "found"}
    assert [name for name in FILES if PurePosixPath(name).name in unclear] == []
