"""The list of blocks of a forward pass."""

from __future__ import annotations

from widgets.autograd.block_list import BlockList, BlockRow


def test_the_block_that_ran_last_stays_in_sight_when_the_list_becomes_smaller(qtbot):
    blocks = BlockList()
    qtbot.addWidget(blocks)
    blocks.resize(300, 500)
    blocks.show()
    blocks.show_rows(
        tuple(
            BlockRow(str(number), f"linear{number}", "current" if number == 8 else "done", None, 1)
            for number in range(9)
        )
    )
    blocks.resize(300, 250)
    last = blocks.visualItemRect(blocks.item(8))
    assert blocks.viewport().rect().contains(last)
