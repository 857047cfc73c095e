"""The usual mistakes that the program ships: what fits is found, and the right halves are quiet."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.engine.advice.desk import Desk

MISTAKES = sorted((Path(__file__).parents[3] / "assets" / "mistakes").glob("*.py"))
FOUND = {"17_kept_losses": "kept_graph"}


def halves(path: Path) -> tuple[str, str]:
    """The code of the mistake, and the code that is right; what stands before both in each."""
    head, wrong, right = re.split(r"# %% \w+\n", path.read_text(encoding="utf-8"))
    return head + wrong, head + right


GOES_ON = "14_once_differentiable"
"""Its right half needs the imports of the wrong one, which raises."""


@pytest.mark.parametrize(
    "path", [path for path in MISTAKES if path.stem != GOES_ON], ids=lambda path: path.stem
)
def test_what_is_right_is_quiet(desk: Desk, path: Path) -> None:
    assert desk.run(halves(path)[1]) == []


@pytest.mark.parametrize("name", FOUND)
def test_a_mistake_that_fits_is_found(desk: Desk, name: str) -> None:
    (path,) = (path for path in MISTAKES if path.stem == name)
    assert desk.only(halves(path)[0]).kind == FOUND[name]
