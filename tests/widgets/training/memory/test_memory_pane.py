"""The memory of a step: curve, words, the storages that live at an operation."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QApplication, QWidget

from engine.protocol import (
    AllocatorBlock,
    AllocatorSegment,
    MemoryBlock,
    MemoryCurveSnapshot,
    MemoryOp,
)
from tests.labels import said
from tests.pictures import assert_same_picture
from widgets import theme
from widgets.training.memory.memory_pane import MemoryPane
from widgets.training.memory.words import unit_of

KIB = 1024
OPS = (
    MemoryOp(0, "aten.addmm.default", "forward", "linear1", "", 0, "linear1 = self.linear1(x)"),
    MemoryOp(1, "aten.relu.default", "forward", "", "/home/me/net.py", 7, ""),
    MemoryOp(2, "aten.mm.default", "backward", None, "", 0, ""),
)
BLOCKS = (
    MemoryBlock("parameters", 40 * KIB, -1, -1, -1, "linear1.weight"),
    MemoryBlock("gradients", 40 * KIB, 2, -1, 2, "linear1.weight.grad"),
    MemoryBlock("activations", 16 * KIB, 0, 2, 0, ""),
    MemoryBlock("other", 8 * KIB, 1, 2, 1, ""),
)
SERIES = {
    "parameters": (40 * KIB,) * 3,
    "gradients": (0, 0, 40 * KIB),
    "optimizer": (0, 0, 0),
    "activations": (16 * KIB, 16 * KIB, 0),
    "data": (0, 0, 0),
    "other": (0, 8 * KIB, 0),
}


def found(**fields) -> MemoryCurveSnapshot:
    known = {
        "samples": 32, "device": "cpu", "total": 3, "peak": 2, "ops": OPS, "series": SERIES,
        "blocks": BLOCKS,
    }  # fmt: skip
    return MemoryCurveSnapshot(**{**known, **fields})


@pytest.fixture
def pane(qtbot) -> MemoryPane:
    pane = MemoryPane()
    qtbot.addWidget(pane)
    pane.resize(680, 480)
    pane.show()
    return pane


def test_the_peak_is_told_and_what_lives_there(pane: MemoryPane) -> None:
    pane.begin()
    assert not pane.measure.isEnabled()
    pane.show_step(found())
    assert pane.measure.isEnabled()
    assert said(pane, "step_memory_words") == (
        "A step with 32 samples on cpu holds at most 80 KiB, at operation 2 of 3: mm in backward."
    )
    assert pane.table.rows() == [
        ["linear1.weight", "parameters", "40 KiB", "before", "after"],
        ["linear1.weight.grad", "gradients", "40 KiB", "2", "after"],
    ]
    assert said(pane, "step_memory_at") == "At the peak"


def test_an_operation_that_is_chosen_lists_what_lives_after_it(pane: MemoryPane) -> None:
    chosen = []
    pane.op_chosen.connect(chosen.append)
    pane.show_step(found(left_out=5))
    pane.chart.point_at(1)
    assert said(pane, "step_memory_pointed") == (
        "1 · forward: relu in the model (net.py, line 7) → 64 KiB"
    )
    pane.chart.chosen.emit(1)
    assert chosen == [OPS[1]]
    assert [row[0] for row in pane.table.rows()] == [
        "linear1.weight", "addmm in linear1 (linear1 = self.linear1(x))",
        "relu in the model (net.py, line 7)",
    ]  # fmt: skip
    assert said(pane, "step_memory_at") == "After operation 1, the largest; 5 more"


def test_a_row_chooses_its_storage_and_a_module_lights_its_own(pane: MemoryPane) -> None:
    chosen = []
    pane.block_chosen.connect(lambda block, op: chosen.append((block, op)))
    pane.show_step(found())
    pane.table.selectRow(1)
    assert chosen == [(BLOCKS[1], OPS[2])]
    pane.light("linear1")
    assert {index.row() for index in pane.table.selectedIndexes()} == {0} and len(chosen) == 1
    pane.light(None)


def test_cuda_tells_its_allocator_and_errors_are_told(pane: MemoryPane) -> None:
    pane.show_step(
        found(allocated=(1, 2, 3 * KIB), reserved=(2048,) * 3, segments_in_all=2, unused=1024)
    )
    words = said(pane, "step_memory_words")
    assert "There the allocator holds 2 KiB in 2 segments, of which 1 KiB are free." in words
    pane.end("No data.")
    assert said(pane, "step_memory_words") == "No data."
    pane.tell_outdated()
    assert "measure again" in said(pane, "step_memory_words")
    pane.clear()
    assert not pane.chart.isVisible()


def test_the_unit_is_the_largest_that_fits() -> None:
    assert unit_of(0) == (1, "B") and unit_of(1023) == (1, "B")
    assert unit_of(1024) == (1024, "KiB") and unit_of(3 * 2**30) == (2**30, "GiB")


@pytest.mark.parametrize("name", ["light", "dark"])
def test_it_looks_as_it_did(pane: MemoryPane, name: str, qapp) -> None:
    theme.apply(qapp, {"light": theme.LIGHT, "dark": theme.DARK}[name])
    pane.show_step(found())
    assert_same_picture(pane, f"step_memory_{name}")


SEGMENTS = (
    AllocatorSegment(
        2048 * KIB,
        False,
        (
            AllocatorBlock(1024 * KIB, 1000 * KIB, "held", "parameters", "linear1.weight"),
            AllocatorBlock(256 * KIB, 256 * KIB, "held", "activations", "", 0),
            AllocatorBlock(256 * KIB, 256 * KIB, "waiting"),
            AllocatorBlock(512 * KIB, 512 * KIB, "free"),
        ),
    ),
    AllocatorSegment(512 * KIB, True, (AllocatorBlock(512 * KIB, 512 * KIB, "free"),)),
)


def on_cuda() -> MemoryCurveSnapshot:
    return found(
        device="cuda:0",
        allocated=(60 * KIB, 70 * KIB, 80 * KIB),
        reserved=(100 * KIB, 100 * KIB, 120 * KIB),
        segments=SEGMENTS,
        segments_in_all=5,
        unused=40 * KIB,
    )


def test_the_allocator_is_there_on_cuda_only(pane: MemoryPane) -> None:
    pane.show_step(found())
    assert not pane.below.isTabVisible(1) and pane.below.tabBar().isHidden()
    pane.show_step(on_cuda())
    assert pane.below.isTabVisible(1) and not pane.below.tabBar().isHidden()
    assert said(pane, "step_memory_words").endswith(
        "There the allocator holds 120 KiB in 5 segments, of which 40 KiB are free."
    )


def _point_at(widget: QWidget, at: QPointF) -> None:
    """Move the mouse there: QTest moves the one of the screen, and tells nothing if it is there."""
    none, no_keys = Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier
    there = widget.mapToGlobal(at)
    QApplication.sendEvent(
        widget, QMouseEvent(QEvent.Type.MouseMove, at, there, none, none, no_keys)
    )


def test_a_block_of_the_allocator_is_told_and_chosen(pane: MemoryPane, qtbot) -> None:
    pane.show_step(on_cuda())
    pane.below.setCurrentIndex(1)
    centers = {found[:2]: found[3].center() for found in pane.segments.blocks()}
    told = {}
    for at, center in centers.items():
        assert pane.segments.block_at(center) == at
        _point_at(pane.segments, center)
        told[at] = said(pane, "step_memory_segment")
    large = "of a large segment of 2 MiB"
    assert told[0, 0] == f"linear1.weight: 1 MiB, 1000 KiB were asked for, {large}"
    assert told[0, 1] == f"activations: 256 KiB, {large}"
    assert told[0, 2] == f"freed, but another stream uses it: 256 KiB {large}"
    assert told[1, 0] == "free: 512 KiB of a small segment of 512 KiB"
    chosen = []
    pane.block_chosen.connect(lambda block, op: chosen.append((block.kind, block.name, op)))
    for at in ((0, 0), (0, 1), (0, 3)):
        qtbot.mouseClick(pane.segments, Qt.MouseButton.LeftButton, pos=centers[at].toPoint())
    assert chosen == [("parameters", "linear1.weight", None), ("activations", "", OPS[0])]


@pytest.mark.parametrize("name", ["light", "dark"])
def test_a_picture_of_the_allocator(pane: MemoryPane, qapp, name: str) -> None:
    theme.apply(qapp, {"light": theme.LIGHT, "dark": theme.DARK}[name])
    pane.show_step(on_cuda())
    pane.below.setCurrentIndex(1)
    assert_same_picture(pane, f"step_memory_allocator_{name}")
