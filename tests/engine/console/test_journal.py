"""What the journal keeps of the cells, and which of them a value may depend on."""

from __future__ import annotations

import pytest
import torch

from engine.console.journal import Journal


class Owner:
    """Whose cells they are."""


OWNER = Owner()


def journal(*sources: str) -> Journal:
    """A journal of cells that ran."""
    kept, variables = Journal(), {"torch": torch}
    for source in sources:
        try:
            with kept.cell(OWNER, source, "a cell"):
                exec(source, variables)
        except ZeroDivisionError:
            continue
    return kept


def behind(kept: Journal, *expressions: str) -> list[str]:
    return [cell.source for cell in kept.cells_behind(OWNER, expressions)]


def test_a_cell_that_failed_is_kept_but_did_not_run_to_its_end() -> None:
    kept = journal("x = 1", "1 / 0")
    assert [(cell.source, cell.error) for cell in kept.entries] == [
        ("x = 1", ""),
        ("1 / 0", "ZeroDivisionError"),
    ]
    assert kept.sources == ["x = 1"]


def test_cells_are_behind_a_value_through_the_variables_that_they_share() -> None:
    kept = journal("a = 1", "b = a + 1", "other = 5", "c = b * 2", "a = 7", "more = other")
    assert behind(kept, "c") == ["a = 1", "b = a + 1", "c = b * 2", "a = 7"]
    assert behind(kept, "other") == ["other = 5", "more = other"]
    assert behind(kept, "nothing of these") == []


@pytest.mark.parametrize(
    "source",
    [
        "torch.set_default_dtype(torch.float32)",
        "exec('z = 1')",
        "globals()['z'] = 1",
        "torch.rand(1)",
        "from math import *",
        "1 + 1",
        "torch.manual_seed(3)",
    ],
)
def test_cells_that_may_change_anything_are_behind_every_value(source: str) -> None:
    kept = journal("a = 1", source, "other = 5")
    assert behind(kept, "a") == ["a = 1", source]


def test_cells_of_another_console_are_not_behind_a_value() -> None:
    kept = journal("a = 1")
    with kept.cell(Owner(), "a = 2", "elsewhere"):
        pass
    assert behind(kept, "a") == ["a = 1"]
