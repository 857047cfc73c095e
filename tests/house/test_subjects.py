"""The engine asks a subject, and not what kind of a subject it is."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KINDS = {"CanvasSubject", "ConsoleSubject", "FileSubject", "CodeSubject"}
KINDS |= {"CanvasModel", "CodeModel", "ConsoleModel", "FileModel"}
FLAGS = {"is_code", "is_canvas", "of_canvas"}
"""Attributes that say the same. `is_code` is the subject's own."""

DOORS = {
    "engine/project/subject": "what the document keeps, and all that follows from it alone",
    "engine/handlers/subjects/find": "makes the subject of a command",
}
ENGINE = {
    "engine/attached/allowed": (1, "a script of the user's has no canvas"),
    "engine/project/machines": (3, "words on what other machines do not have"),
    "engine/project/edits/loss": (1, "the canvas has a loss block, code a loss in its step"),
    "engine/project/edits/training": (1, "code may have a loss that blocks cannot have"),
    "engine/project/soundness": (2, "the fields of the document are checked"),
    "engine/subjects/state": (1, "a variable that is watched may hold another module"),
}
WINDOW = {
    "app/commands/export": (1, "the weights beside a project are its canvas's"),
    "app/commands/projects": (2, "what code is trained on is told"),
    "app/commands/run_beginnings": (1, "the weights beside a project are its canvas's"),
    "app/commands/target": (2, "the runs of a file of code lie in the data folder"),
    "app/presenters/autograd/workspace": (1, "the canvas has a forward pass by blocks"),
    "app/presenters/model/comparing": (1, "the page for code"),
    "app/presenters/model/first_page": (1, "the page for blocks"),
    "app/presenters/model/structure": (1, "the page for code"),
    "app/presenters/model/workspace": (1, "the page for blocks"),
    "app/presenters/subject": (2, "what an expression of the console needs first"),
    "app/presenters/train/objective": (4, "code has a step, and names of its own"),
    "app/presenters/train/resuming": (2, "code that has run may fit a checkpoint"),
    "app/presenters/train/runs/sweeps": (1, "values of blocks can be varied"),
    "app/presenters/train/train": (1, "words on what is trained"),
    "app/presenters/window": (1, "what the workspaces' title says"),
    "app/selection/finding": (1, "only blocks are on the canvas"),
    "app/selection/known": (2, "what Python of the console calls the module"),
    "app/ways": (1, "which views a reference can be shown in"),
    "app/workspaces": (1, "Model shows blocks, or the structure of code"),
}
"""Views that differ: how often each asks, and what for."""


def checks_in(tree: ast.Module) -> int:
    """How often a file asks of what kind a subject is."""
    count = 0
    for node in ast.walk(tree):
        asked: list[ast.expr] = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in ("isinstance", "issubclass"):
                asked = node.args[1:]
        elif isinstance(node, ast.MatchClass):
            asked = [node.cls]
        elif isinstance(node, ast.Attribute) and node.attr in FLAGS:
            count += 1
        names = {each.id for part in asked for each in ast.walk(part) if isinstance(each, ast.Name)}
        count += bool(names & KINDS)
    return count


def checks(side: str) -> dict[str, int]:
    """The files of a side that ask, but for the doors, with how often they do."""
    paths = {p.relative_to(ROOT).with_suffix("").as_posix(): p for p in (ROOT / side).rglob("*.py")}
    found = {n: checks_in(ast.parse(p.read_text(encoding="utf-8"))) for n, p in paths.items()}
    return {name: count for name, count in sorted(found.items()) if count and name not in DOORS}


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("isinstance(x.subject, CanvasSubject)", 1),
        ("isinstance(x, (int, project.FileSubject | CodeModel))", 1),
        ("match x:\n    case CanvasSubject(): ...\n    case ConsoleSubject(e): ...", 2),
        ("snapshot.is_canvas", 1),
        ("CanvasSubject()\nisinstance(x, Model)", 0),
    ],
)
def test_a_check_is_seen(source: str, count: int):
    assert checks_in(ast.parse(source)) == count


def test_the_doors_decide_by_kind():
    """Guards the tests below, which would pass if no check were seen."""
    for name in DOORS:
        tree = ast.parse((ROOT / name).with_suffix(".py").read_text(encoding="utf-8"))
        assert checks_in(tree) > 2


def test_the_engine_does_not_ask_of_what_kind_a_subject_is():
    assert checks("engine") == {name: count for name, (count, _) in ENGINE.items()}


def test_the_window_asks_only_where_what_it_shows_differs():
    assert checks("app") == {name: count for name, (count, _) in WINDOW.items()}
    assert checks("widgets") == {}
