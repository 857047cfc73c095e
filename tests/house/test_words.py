"""Turns of phrase that a reader stumbles over do not come back in the texts that a user sees."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TURNS = {
    r"(?<!there )\bis no (?!longer|larger|more than)": "say: is not a",
    r"\banew\b": "say: again",
    r"\bbegun\b": "say: started",
    r"\bthat comes in\b": "say: incoming",
    r"\bis no more\b": "say: no longer exists",
    r"\bdimensions? [0-9{]": "with its number it is `dim 0`",
    r"\b(a|an|one|each|every|this) dim\b": "without a number it is `dimension`",
}


@cache
def shown_texts() -> list[tuple[str, str]]:
    return list(_texts())


def _texts() -> Iterator[tuple[str, str]]:
    """(place, text) of each text of the product with a space in it. A placeholder is `{}`.
    Docstrings, and texts without a space (names and keys), are left out."""
    for folder in ("app", "widgets", "engine"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield from _texts_of(path)
    for path in sorted((ROOT / "assets").rglob("*.py")):
        heads = re.findall(r"^# {1,3}(.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        yield str(path.relative_to(ROOT)), " ".join(heads)
    for path in (ROOT / "README.md", *sorted((ROOT / "assets" / "guide").iterdir())):
        for paragraph in path.read_text(encoding="utf-8").split("\n\n"):
            yield path.name, " ".join(paragraph.split())
    help_file = ROOT / "engine" / "tensors" / "errors.toml"
    for error in tomllib.loads(help_file.read_text(encoding="utf-8"))["errors"]:
        yield help_file.name, f"{error['what']} {error['fix']}"


def _texts_of(path: Path) -> Iterator[tuple[str, str]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    parts = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in node.values
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            pieces = [p.value if isinstance(p, ast.Constant) else "{}" for p in node.values]
            text = "".join(map(str, pieces))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = "" if id(node) in (alone | parts) else node.value
        else:
            continue
        if " " in text:
            yield f"{path.relative_to(ROOT)}:{node.lineno}", text


@pytest.mark.parametrize("turn", TURNS)
def test_no_text_has_this_turn(turn: str) -> None:
    wrong = [
        f"{place}: {text}" for place, text in shown_texts() if re.search(turn, text, re.IGNORECASE)
    ]
    assert not wrong, "\n".join([TURNS[turn], *wrong])


def test_the_texts_are_found() -> None:
    """One in a widget, in the help for errors, at the head of an example, in a guide."""
    texts = "\n".join(text for _, text in shown_texts())
    for known in (
        "No tensors yet.",
        "Bits of {0} cannot be combined.",
        "zero_grad() forgotten",
        "Why did `x` change?",
    ):
        assert known in texts
