"""Which mutants are judged, and which files of tests may notice them."""

from __future__ import annotations

import random
import re
from collections import Counter
from functools import cache
from pathlib import Path, PurePosixPath

import networkx as nx

from tests.mutation.mutants import Mutant, mutants

PACKAGES = [
    "app/presenters", "app", "widgets", "engine/tensors engine/operations", "engine/autograd",
    "engine/recording engine/restoring engine/console", "engine/models", "engine/training",
    "engine/exporting engine/verifier", "engine/artifacts", "engine/project",
    "engine/protocol engine/process engine/connecting engine/attached engine/server",
    "engine/system engine/importing engine/lab", "engine/subjects",
    "engine/loops engine/advice", "engine/runs engine/ranks engine/events",
    "engine/datasets", "engine/handlers",
]  # fmt: skip
"""Folders that are sampled together. One that is inside another one is no part of that."""
_MOST_FILES = 25
_EVERYWHERE = {"handlers", "lab", "protocol", "project", "restoring", "system"}
"""Rooms of which handlers of all kinds use something."""


def sample(root: Path, package: str, count: int, seed: int) -> list[Mutant]:
    """Mutants of the package: the same ones for the same seed and code, no two on a line."""
    found = [
        mutant
        for path in files(root, package)
        for mutant in mutants(path.relative_to(root).as_posix(), path.read_bytes())
    ]
    random.Random(f"{seed} {package}").shuffle(found)
    chosen = {(mutant.path, mutant.line): mutant for mutant in reversed(found)}
    order = [mutant for mutant in found if chosen[mutant.path, mutant.line] is mutant]
    return sorted(order[:count], key=lambda mutant: (mutant.path, mutant.line))


def files(root: Path, package: str) -> list[Path]:
    """The package's Python files, without those of other packages inside it."""
    places = [root / place for place in package.split()]
    others = {root / place for other in PACKAGES if other != package for place in other.split()}
    inside = {place for place in others if not set(places).isdisjoint(place.parents)}
    return [
        path
        for place in places
        for path in ([place] if place.suffix else sorted(place.rglob("*.py")))
        if inside.isdisjoint(path.parents)
    ]


def near_tests(root: Path, path: str) -> list[str]:
    """The files of tests in the same folder under tests/, those that import the room, and those of
    the engine that name a command which the file answers."""
    folder = PurePosixPath(path).parent
    module = ".".join(PurePosixPath(path).with_suffix("").parts)
    room = re.escape(".".join(folder.parts))
    named = re.compile(rf"{re.escape(module)}\b|\bfrom {room} import")
    found = [test for test in _tests(root) if named.search(_text(root, test))]
    answered = _answered(root, module)
    if answered:
        commands = re.compile(rf"\b({'|'.join(answered)})\b")
        of_engine = [test for test in _tests(root) if test.startswith("tests/engine/")]
        found += [test for test in of_engine if commands.search(_text(root, test))]
    return list(dict.fromkeys([*_mirrored(root, folder), *found]))


def wide_tests(root: Path, path: str) -> list[str]:
    """Those of the rooms that use the file, or that a handler answers for, and the flows whose
    names have a word of its path."""
    graph, name = _imports(), path.removesuffix(".py")
    users = set(graph.predecessors(name)) if name in graph else set()
    for door in [user for user in users if user.endswith("__init__")]:
        users |= set(graph.predecessors(door))
    rooms = [*_answered_for(graph, name), *sorted({PurePosixPath(user).parent for user in users})]
    found = [test for room in rooms for test in _mirrored(root, room)]
    if not path.startswith("engine"):
        words = set(re.split(r"[/_.]", path)) - {"app", "widgets", "presenters", "py", "init", ""}
        found = [*_flows(root, words), *found]
    return list(dict.fromkeys(found))[:_MOST_FILES]


def _answered_for(graph: nx.DiGraph, name: str) -> list[PurePosixPath]:
    """The room that has a handler's name; for handlers of no room, and what holds code, the two
    that they import most."""
    if not name.startswith(("engine/handlers/", "engine/lab/")):
        return []
    if name.count("/") > 2:
        return [PurePosixPath(name.replace("/handlers/", "/", 1)).parent]
    called = Counter(PurePosixPath(used).parent for used in sorted(graph.successors(name)))
    rooms = [room for room, _ in called.most_common() if len(room.parts) > 1]
    return [room for room in rooms if room.name not in _EVERYWHERE][:2]


@cache
def _imports() -> nx.DiGraph:
    from tests.house.test_rooms import imports

    return imports()


def _flows(root: Path, words: set[str]) -> list[str]:
    """Those that have most of the words first."""
    flows = [test for test in _tests(root) if test.startswith("tests/flows/")]
    parts = {test: re.split(r"[/_]", test.removeprefix("tests/flows/")) for test in flows}
    had = {
        test: sum(any(part.startswith(word) for part in parts[test]) for word in words)
        for test in flows
    }
    return sorted((test for test in flows if had[test]), key=lambda test: -had[test])


def _answered(root: Path, module: str) -> list[str]:
    """The classes of the commands whose handlers are in the module."""
    place = re.escape(module.removeprefix("engine.handlers."))
    pattern = re.compile(
        rf"""^class (\w+)\((?:(?!^class ).)*?^    handler = "{place}:""", re.DOTALL | re.MULTILINE
    )
    files = sorted((root / "engine" / "protocol").rglob("*.py"))
    return [name for path in files for name in pattern.findall(path.read_text("utf-8"))]


@cache
def _text(root: Path, test: str) -> str:
    return (root / test).read_text("utf-8")


@cache
def _tests(root: Path) -> list[str]:
    found = sorted((root / "tests").rglob("test_*.py"))
    return [path.relative_to(root).as_posix() for path in found if path.parent.name != "house"]


def _mirrored(root: Path, folder: PurePosixPath) -> list[str]:
    """The test files of the folder, or of the nearest folder around it that has some."""
    while folder.parts:
        own = PurePosixPath("tests") / folder
        found = [test for test in _tests(root) if PurePosixPath(test).parent == own]
        if found:
            return found
        folder = folder.parent
    return []
