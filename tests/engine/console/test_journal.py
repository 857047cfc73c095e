"""What the journal keeps of what is done: cells, passes, and what happened during a pass."""

from __future__ import annotations

from engine.console.journal import Journal, ZeroGrad


class Owner:
    """Whose cells they are."""


def test_gradients_zeroed_between_passes_are_no_entry() -> None:
    journal, owner = Journal(), Owner()
    journal.add(ZeroGrad(set_to_none=True))
    with journal.cell(owner, "x = 1", "cell 1"):
        pass
    assert [cell.source for cell in journal.entries] == ["x = 1"]
    assert journal.cells == journal.entries
