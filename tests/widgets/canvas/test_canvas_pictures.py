"""The canvas looks as it did: reports of the engine, and gestures while they are under way."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest

from engine.project.document import replace
from engine.project.problems import Fix, Problem
from engine.protocol import BlockReport
from tests.pictures import assert_same_picture

SHIFT = Qt.KeyboardModifier.ShiftModifier


def at(canvas, x: float, y: float) -> QPoint:
    return canvas.mapFromScene(QPointF(x, y))


def test_a_report_and_a_pass(canvas, model, snapshot, qapp):
    fix = Problem("It expects 64.", "add", fix=Fix("Set it to 64", "add", "alpha", 64))
    reports = (*snapshot.blocks, BlockReport("add", problems=(fix,)))
    canvas.show_report(replace(snapshot, blocks=reports))
    canvas.show_progress(("x", "a"), "a")
    canvas.select(["relu"])
    canvas.select_wires([model.wires[1]])
    QTest.mouseMove(canvas.viewport(), at(canvas, 690, 280))
    qapp.processEvents()
    assert_same_picture(canvas, "canvas_report")


def test_a_wire_that_does_not_fit(canvas, drag):
    start = canvas.port_center("a", "output", "out")
    refused = canvas.port_center("x", "x", "out")
    drag(start, start + QPoint(20, 20), refused, release=False)
    assert_same_picture(canvas, "canvas_wire_refused")
    QTest.keyClick(canvas, Qt.Key.Key_Escape)


def test_a_wire_that_fits(canvas, drag):
    start = canvas.port_center("b", "output", "out")
    drag(start, start + QPoint(20, 20), canvas.port_center("relu", "input", "in"), release=False)
    assert_same_picture(canvas, "canvas_wire")
    QTest.keyClick(canvas, Qt.Key.Key_Escape)


def test_blocks_in_line_while_they_are_dragged(canvas, drag):
    start = canvas.block_center("relu")
    drag(start, start + QPoint(0, 40), start + QPoint(-286, 43), release=False)
    assert_same_picture(canvas, "canvas_guides")
    QTest.keyClick(canvas, Qt.Key.Key_Escape)


def test_a_marquee_from_afar(canvas, snapshot, drag, qapp):
    canvas.show_report(snapshot)
    canvas.set_view(0.4, 520, 150)
    drag(at(canvas, 270, -40), at(canvas, 600, 60), release=False)
    qapp.processEvents()
    assert_same_picture(canvas, "canvas_marquee")
    QTest.keyClick(canvas, Qt.Key.Key_Escape)


def test_a_block_that_would_be_dropped_on_a_wire(canvas, qapp):
    canvas.ghost("nn.ReLU", canvas.viewport().mapToGlobal(at(canvas, 526, 36)))
    qapp.processEvents()
    assert_same_picture(canvas, "canvas_ghost")
    canvas.end_ghost()


def test_a_map_of_what_is_out_of_sight(canvas, snapshot, qapp):
    canvas.show_report(snapshot)
    canvas.set_view(2.0, 300, 100)
    qapp.processEvents()
    assert_same_picture(canvas.minimap, "canvas_minimap")
