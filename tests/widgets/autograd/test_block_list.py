"""The list of blocks of a forward pass."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import Qt

from engine.protocol import Activation, ForwardSnapshot, TensorSummary
from widgets.autograd.block_list import ROW_HEIGHT, BlockList, BlockRow, rows_of


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


def summary(*shape: int, low: float | None = -1.0, high: float | None = 2.0) -> TensorSummary:
    return TensorSummary(
        shape=shape, dtype="float32", device="cpu", size_bytes=4, minimum=low, maximum=high,
        mean=0.12345, std=0.5,
    )  # fmt: skip


def test_a_row_tells_where_its_block_stands_and_what_it_gave() -> None:
    given = (
        Activation("a", (summary(2, 3, low=-4.5), summary(3)), 0.1),
        Activation("b", (summary(2, low=None, high=None),), 0.1),
        Activation("c", (), 0.1),
    )
    found = rows_of(
        ForwardSnapshot(order=tuple("abcde"), position=3, activations=given), {"a": "x"}
    )
    assert [(row.block, row.name, row.state, row.scale) for row in found] == [
        ("a", "x", "done", 4.5), ("b", "b", "done", 4.5), ("c", "c", "current", 4.5),
        ("d", "d", "next", 4.5), ("e", "e", "waiting", 4.5),
    ]  # fmt: skip
    assert [row.shape_text() for row in found] == ["(2, 3), (3,)", "(2,)", "", "", ""]
    mean = "mean 0.123 · std 0.5"
    assert [row.numbers_text() for row in found] == [mean, mean, "", "next", ""]
    assert BlockRow("l", "l", "current", Activation("l", (summary(),), 0), 1).numbers_text() == (
        "= 0.12345"
    )
    assert rows_of(ForwardSnapshot(order=("a",), position=0, activations=()), {})[0].scale == 0


def test_rows_are_selected_silently_chosen_and_run_to(qtbot):
    blocks = BlockList()
    qtbot.addWidget(blocks)
    told = []
    blocks.chosen.connect(lambda block: told.append(("chosen", block)))
    blocks.run_to.connect(lambda block: told.append(("to", block)))
    qtbot.keyClick(blocks, Qt.Key.Key_Return)
    rows = tuple(BlockRow(name, name, "waiting", None, 1) for name in "abc")
    blocks.show_rows(rows)
    assert blocks.selected_block() is None
    blocks.show_rows((rows[0], replace(rows[1], state="current"), rows[2]))
    assert blocks.selected_block() == "b" and told == []
    assert [row.state for row in blocks.rows()] == ["waiting", "current", "waiting"]
    blocks.setCurrentRow(2)
    for key in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Up):
        qtbot.keyClick(blocks, key)
    blocks.itemDoubleClicked.emit(blocks.item(0))
    assert told == [("chosen", "c"), ("to", "c"), ("to", "c"), ("chosen", "b"), ("to", "a")]
    blocks.show_rows(rows[:2])
    assert [row.block for row in blocks.rows()] == ["a", "b"]
    spoken = blocks.item(1).data(Qt.ItemDataRole.AccessibleTextRole)
    assert spoken == "b, waiting,  "


def test_the_block_after_the_last_is_in_sight(qtbot):
    blocks = BlockList()
    qtbot.addWidget(blocks)
    blocks.resize(300, 2 * ROW_HEIGHT + 4)
    blocks.show()
    for current in (3, 7, 11, 5):
        states = ["current" if place == current else "done" for place in range(12)]
        blocks.show_rows(tuple(BlockRow(str(n), "", s, None, 1) for n, s in enumerate(states)))
        assert blocks.currentRow() == current
        seen = blocks.viewport().rect()
        for place in {current, min(current + 1, 11)}:
            assert seen.contains(blocks.visualItemRect(blocks.item(place)))
