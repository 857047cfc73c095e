"""Every gesture by mouse: what it asks for, and that Esc takes it back."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QPointF, QRectF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from engine.project.document import Model, Wire, replace
from engine.project.problems import Fix, Problem
from engine.protocol import BlockReport
from tests.widgets.small_model import make_block
from widgets.canvas import wires
from widgets.canvas.snapping import snap_move

LEFT = Qt.MouseButton.LeftButton
SHIFT = Qt.KeyboardModifier.ShiftModifier
CONTROL = Qt.KeyboardModifier.ControlModifier


def at(canvas, x: float, y: float) -> QPoint:
    return canvas.mapFromScene(QPointF(x, y))


def click(canvas, point: QPoint, modifiers=Qt.KeyboardModifier.NoModifier) -> None:
    QTest.mouseClick(canvas.viewport(), LEFT, modifiers, point)


def positions(canvas) -> dict[str, tuple[float, float]]:
    return {key: item.pos().toTuple() for key, item in canvas.model_scene.blocks.items()}


# -- selection -----------------------------------------------------------------------------------


def test_click_selects_and_empty_canvas_deselects(canvas):
    said = []
    canvas.selection_changed.connect(said.append)
    click(canvas, canvas.block_center("a"))
    click(canvas, canvas.block_center("b"), SHIFT)
    click(canvas, canvas.block_center("a"), CONTROL)
    click(canvas, at(canvas, 40, 400))
    assert said == [("a",), ("a", "b"), ("b",), ()]


def test_click_on_one_of_several_selects_it_alone(canvas):
    canvas.select(["a", "b"])
    click(canvas, canvas.block_center("a"))
    assert canvas.selected_blocks() == ("a",)


def test_click_on_a_wire_selects_it(canvas, model, heard):
    click(canvas, at(canvas, 240, 36))
    assert canvas.selected_wires() == (model.wires[0],)
    QTest.keyClick(canvas, Qt.Key.Key_Delete)
    assert heard == [("delete_requested", (), (model.wires[0],))]


def test_marquee_selects_what_it_touches(canvas, drag):
    drag(at(canvas, 270, -40), at(canvas, 600, 60))
    assert canvas.selected_blocks() == ("a", "b")
    drag(at(canvas, 270, 220), at(canvas, 300, 260), modifiers=SHIFT)
    assert canvas.selected_blocks() == ("a", "b", "relu")


def test_esc_cancels_a_marquee_and_restores_the_selection(canvas, drag):
    canvas.select(["out"])
    drag(at(canvas, 270, -40), at(canvas, 600, 60), modifiers=SHIFT, release=False)
    assert canvas.selected_blocks() == ("a", "b", "out")
    QTest.keyClick(canvas, Qt.Key.Key_Escape)
    assert canvas.selected_blocks() == ("out",)
    QTest.mouseMove(canvas.viewport(), at(canvas, 800, 200))
    QTest.mouseRelease(canvas.viewport(), LEFT, pos=at(canvas, 800, 200))
    assert canvas.selected_blocks() == ("out",)


# -- moving --------------------------------------------------------------------------------------


def test_dragging_moves_on_the_grid_in_one_step(canvas, drag, heard):
    start = canvas.block_center("relu")
    drag(start, start + QPoint(20, 5), start + QPoint(53, 139))
    assert heard == [("blocks_moved", {"relu": (344.0, 376.0)})]
    assert positions(canvas)["relu"] == (344, 376), "the preview stays until show_model"


def test_dragging_one_of_several_moves_all(canvas, drag, heard):
    canvas.select(["relu", "add"])
    start = canvas.block_center("add")
    drag(start, start + QPoint(0, 160))
    assert heard == [("blocks_moved", {"relu": (288.0, 400.0), "add": (576.0, 400.0)})]


@pytest.mark.parametrize("zoom", [0.5, 1.0])
def test_a_drag_begins_at_the_systems_distance(canvas, drag, heard, zoom):
    canvas.set_view(zoom, 520, 150)
    start, least = canvas.block_center("relu"), QApplication.startDragDistance()
    drag(start, start + QPoint(least - 1, 0))
    assert heard == [] and positions(canvas)["relu"] == (288, 240)
    start = canvas.block_center("relu")
    drag(start, start + QPoint(least, 0))
    assert len(heard) == 1


def test_a_refused_move_goes_back(canvas, drag, model):
    start = canvas.block_center("relu")
    drag(start, start + QPoint(80, 80))
    canvas.show_model(model)
    assert positions(canvas)["relu"] == (288, 240)


def test_a_block_snaps_into_line_and_shows_the_guide(canvas, drag):
    start = canvas.block_center("relu")
    drag(start, start + QPoint(0, 40), start + QPoint(-286, 43), release=False)
    assert positions(canvas)["relu"][0] == 0, "left edges of relu and x in line"
    assert canvas._gesture._guides._lines
    QTest.mouseRelease(canvas.viewport(), LEFT, pos=start + QPoint(-286, 43))


@pytest.mark.parametrize("zoom", [0.25, 0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("nearness", [0.8, 1.2])
def test_the_pull_of_a_line_reaches_as_far_on_screen_at_every_zoom(canvas, drag, zoom, nearness):
    """8 pixels, but no farther in the scene than at half size."""
    other, moved = make_block("a", "nn.ReLU", 3, 0), make_block("b", "nn.ReLU", 403, 160)
    canvas.show_model(Model((other, moved)))
    canvas.set_view(zoom, 300, 100)
    reach = 8 / max(zoom, 0.5)
    wanted = 3 + nearness * reach  # the left edge, where it is let go
    start = canvas.block_center("b")
    drag(start, start + QPoint(round((wanted - 403) * zoom), 0))
    x, _ = positions(canvas)["b"]
    assert x == (3 if nearness < 1 else round(wanted / 8) * 8)


@pytest.mark.parametrize("zoom", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("away_px", [20, 28])
def test_a_wire_jumps_to_a_port_as_near_on_screen_at_every_zoom(canvas, drag, heard, zoom, away_px):
    canvas.set_view(zoom, 300, 150)
    port = canvas.port_center("relu", "input", "in")
    drag(canvas.port_center("a", "output", "out"), port - QPoint(away_px, 0))
    assert [name for name, *_ in heard] == ["wire_requested"] * (away_px < 24)


@pytest.mark.parametrize("zoom", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("away_px", [8, 12])
def test_a_port_that_does_not_fit_says_why_as_near_at_every_zoom(canvas, drag, zoom, away_px):
    canvas.set_view(zoom, 400, 36)
    port = canvas.port_center("a", "input", "in")
    drag(canvas.port_center("b", "output", "out"), port - QPoint(away_px, 0), release=False)
    assert ("loop" in canvas.note.text) == (away_px < 10)


@pytest.mark.parametrize("zoom", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("away_px", [6, 10])
def test_a_new_block_goes_into_a_wire_as_near_at_every_zoom(canvas, heard, zoom, away_px):
    canvas.set_view(zoom, 240, 36)
    place = canvas.viewport().mapToGlobal(at(canvas, 240, 36) + QPoint(0, away_px))
    canvas.clearFocus()
    assert canvas.drop("nn.ReLU", place)
    assert canvas.window().focusWidget() is canvas
    assert heard[0][0] == ("block_dropped_on_wire" if away_px < 8 else "block_dropped")


@pytest.mark.parametrize("zoom", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("away_px", [5, 9])
def test_a_wire_is_hit_as_near_on_screen_at_every_zoom(canvas, zoom, away_px):
    canvas.set_view(zoom, 240, 36)
    click(canvas, at(canvas, 240, 36) + QPoint(0, away_px))
    assert len(canvas.selected_wires()) == (away_px < 7)


@pytest.mark.parametrize("zoom", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("away_px", [10, 14])
def test_a_port_is_hit_as_near_on_screen_at_every_zoom(canvas, zoom, away_px):
    canvas.set_view(zoom, 300, 150)
    port = canvas.port_center("relu", "input", "in") - QPoint(away_px, 0)
    QTest.mouseMove(canvas.viewport(), port)
    cross = canvas.viewport().cursor().shape() == Qt.CursorShape.CrossCursor
    assert cross == (away_px < 12)


def test_alt_moves_freely(canvas, heard):
    start = canvas.block_center("relu")
    press = Qt.KeyboardModifier.AltModifier
    QTest.mousePress(canvas.viewport(), LEFT, press, start)
    canvas._gesture.move(canvas.mapToScene(start + QPoint(33, 31)), press)
    QTest.mouseRelease(canvas.viewport(), LEFT, press, start + QPoint(33, 31))
    assert heard == [("blocks_moved", {"relu": (321.0, 271.0)})]


def test_a_trembling_click_moves_nothing(canvas, drag, heard):
    start = canvas.block_center("relu")
    drag(start, start + QPoint(2, 1))
    assert heard == [] and positions(canvas)["relu"] == (288, 240)


def test_esc_cancels_a_move(canvas, drag, heard):
    before = positions(canvas)
    start = canvas.block_center("a")
    drag(start, start + QPoint(100, 100), release=False)
    assert positions(canvas) != before
    QTest.keyClick(canvas, Qt.Key.Key_Escape)
    QTest.mouseRelease(canvas.viewport(), LEFT, pos=start + QPoint(100, 100))
    assert positions(canvas) == before and heard == []


def test_another_model_ends_a_drag_but_the_same_one_does_not(canvas, drag, model, heard):
    start = canvas.block_center("relu")
    drag(start, start + QPoint(0, 80), release=False)
    canvas.show_model(Model(model.blocks, model.wires))
    assert positions(canvas)["relu"] == (288, 320)
    canvas.show_model(replace(model, wires=()))
    assert positions(canvas)["relu"] == (288, 240)
    QTest.mouseRelease(canvas.viewport(), LEFT, pos=start + QPoint(0, 80))
    assert heard == []


def test_snapping_prefers_lines_to_the_grid():
    moving, other = QRectF(103, 51, 192, 72), QRectF(100, 300, 192, 72)
    dx, dy, guides = snap_move(moving, [other], 8)
    assert (dx, dy) == (-3, -3), "left edges in line; tops on the grid"
    assert [(g.x1(), g.y1(), g.x2(), g.y2()) for g in guides] == [(100, 48, 100, 372)]


# -- wires ---------------------------------------------------------------------------------------


def test_wire_from_port_to_port(canvas, drag, heard):
    drag(canvas.port_center("a", "output", "out"), canvas.port_center("relu", "input", "in"))
    assert heard == [("wire_requested", Wire("a", "output", "relu", "input"))]


def test_wire_drawn_backward_from_an_input(canvas, drag, heard):
    drag(canvas.port_center("relu", "input", "in"), canvas.port_center("x", "x", "out"))
    assert heard == [("wire_requested", Wire("x", "x", "relu", "input"))]


def test_wire_jumps_to_the_nearest_port_that_fits(canvas, drag, heard):
    near = canvas.port_center("add", "other", "in") + QPoint(-14, 6)
    drag(canvas.port_center("a", "output", "out"), near)
    assert heard == [("wire_requested", Wire("a", "output", "add", "other"))]


def test_wire_dropped_on_a_block_takes_its_first_free_input(canvas, drag, model, heard):
    taken = Wire("relu", "output", "add", "input")
    canvas.show_model(replace(model, wires=(*model.wires, taken)))
    drag(canvas.port_center("a", "output", "out"), canvas.block_center("add"))
    assert heard == [("wire_requested", Wire("a", "output", "add", "other"))]


def test_wire_dropped_on_nothing_asks_for_nothing(canvas, drag, heard):
    drag(canvas.port_center("a", "output", "out"), at(canvas, 100, 300))
    click(canvas, canvas.port_center("a", "output", "out"))
    assert heard == []


def test_ports_that_fit_glow_and_others_fade(canvas, drag):
    drag(canvas.port_center("b", "output", "out"), at(canvas, 500, 400), release=False)
    looks = {key: item.port_looks for key, item in canvas.model_scene.blocks.items()}
    assert looks["relu"]["in", "input"] == "open"
    assert looks["a"]["in", "input"] == "refused", "a feeds b: it would be a loop"
    assert looks["relu"]["out", "output"] == "refused"
    QTest.mouseMove(canvas.viewport(), canvas.port_center("relu", "input", "in"))
    assert looks["relu"]["in", "input"] == "target"
    QTest.keyClick(canvas, Qt.Key.Key_Escape)
    assert not any(item.port_looks for item in canvas.model_scene.blocks.values())


@pytest.mark.parametrize("corner", ["topLeft", "topRight", "bottomLeft", "bottomRight"])
def test_a_reason_at_the_edge_of_the_view_is_whole(canvas, corner):
    seen = canvas.viewport().rect()
    at = getattr(seen, corner)()
    canvas.say_briefly("so many words that they need a second line " * 2, "error",
                       canvas.mapToScene(at))  # fmt: skip
    told = canvas.note.deviceTransform(canvas.viewportTransform()).mapRect(
        canvas.note.boundingRect()
    )
    assert QRectF(seen).contains(told) and not told.contains(QPointF(at))


@pytest.mark.parametrize("target", ["port", "body"])
def test_a_loop_is_refused_with_the_reason_at_the_cursor(canvas, drag, heard, target):
    end = canvas.port_center("a", "input", "in") if target == "port" else canvas.block_center("a")
    drag(canvas.port_center("b", "output", "out"), end, release=False)
    assert "loop" in canvas.note.text and canvas.note.isVisible()
    assert canvas.mapFromScene(canvas.note.pos()) == end
    QTest.mouseRelease(canvas.viewport(), LEFT, pos=end)
    assert heard == []
    assert "loop" in canvas.note.text, "it can still be read after the release"
    QTest.mousePress(canvas.viewport(), LEFT, pos=at(canvas, 40, 400))
    assert not canvas.note.isVisible()


def test_two_outputs_are_refused_in_words(canvas, drag, heard):
    end = canvas.port_center("relu", "output", "out")
    drag(canvas.port_center("b", "output", "out"), end)
    assert "Both ends are outputs" in canvas.note.text
    assert heard == []


def test_reasons_come_from_can_connect(qtbot, canvas, drag, heard):
    canvas.can_connect = lambda model, wire: "not on a Sunday"
    drag(canvas.port_center("a", "output", "out"), canvas.block_center("relu"))
    assert canvas.note.text == "not on a Sunday" and heard == []


def test_an_occupied_input_lets_its_wire_loose_to_reroute_it(canvas, drag, model, heard):
    drag(canvas.port_center("b", "input", "in"), canvas.port_center("relu", "input", "in"))
    assert heard == [("wire_rerouted", model.wires[1], Wire("a", "output", "relu", "input"))]
    assert canvas.model_scene.wires[model.wires[1]].isVisible()


def test_a_loose_wire_dropped_on_nothing_is_deleted(canvas, drag, model, heard):
    drag(canvas.port_center("b", "input", "in"), at(canvas, 500, 400))
    assert heard == [("delete_requested", (), (model.wires[1],))]


def test_a_loose_wire_put_back_changes_nothing(canvas, drag, heard):
    start = canvas.port_center("b", "input", "in")
    drag(start, at(canvas, 500, 400), start)
    click(canvas, start)
    assert heard == []


def test_rerouting_judges_the_model_without_the_old_wire(canvas, drag, heard, model):
    """x -> a loosened leaves x free of a; the end of a -> b may go to what a fed before."""
    drag(canvas.port_center("a", "input", "in"), canvas.port_center("b", "input", "in"))
    assert heard == [("wire_rerouted", model.wires[0], Wire("x", "x", "b", "input"))]


def test_esc_cancels_a_reroute(canvas, drag, model, heard):
    drag(canvas.port_center("b", "input", "in"), at(canvas, 500, 400), release=False)
    assert not canvas.model_scene.wires[model.wires[1]].isVisible()
    QTest.keyClick(canvas, Qt.Key.Key_Escape)
    QTest.mouseRelease(canvas.viewport(), LEFT, pos=at(canvas, 500, 400))
    assert canvas.model_scene.wires[model.wires[1]].isVisible() and heard == []


# -- the rest ------------------------------------------------------------------------------------


def test_double_click_opens_a_block_or_searches_for_one(canvas, heard):
    QTest.mouseDClick(canvas.viewport(), LEFT, pos=canvas.block_center("a"))
    assert heard == [("block_activated", "a")]
    QTest.mouseDClick(canvas.viewport(), LEFT, pos=at(canvas, 48, 400))
    assert heard[1:] == [("insert_requested", 48.0, 400.0)]


def test_fix_button(canvas, model, snapshot, heard):
    fix = Fix("set in_features to 32", "b", "in_features", 32)
    problem = Problem("b expects 64 features, gets 32", "b", "input", "torch says", fix)
    canvas.show_report(replace(snapshot, blocks=(BlockReport("b", problems=(problem,)),)))
    item = canvas.model_scene.problems["b"]
    button = canvas.mapFromScene(item.mapToScene(item.fix_rect().center()))
    click(canvas, button)
    assert heard == [("fix_requested", fix)]
    QTest.mousePress(canvas.viewport(), LEFT, pos=button)
    QTest.mouseRelease(canvas.viewport(), LEFT, pos=button + QPoint(0, 200))
    assert len(heard) == 1, "released elsewhere: not meant"


def test_palette_drag(canvas, heard):
    place = canvas.viewport().mapToGlobal(at(canvas, 96, 436))
    canvas.ghost("nn.ReLU", place)
    assert canvas._gesture is not None
    assert canvas.drop("nn.ReLU", place)
    assert heard == [("block_dropped", "nn.ReLU", 0.0, 400.0)]
    assert len(canvas.model_scene.blocks) == 6, "the ghost is no block"


def test_palette_drag_onto_a_wire(canvas, model, heard):
    place = canvas.viewport().mapToGlobal(at(canvas, 240, 36))
    assert canvas.drop("nn.ReLU", place)
    assert heard == [("block_dropped_on_wire", "nn.ReLU", 144.0, 0.0, model.wires[0])]
    assert canvas.drop("Input", place)
    assert heard[1][0] == "block_dropped", "an Input has no input: it cannot go between"


def test_palette_drag_elsewhere_or_cancelled(canvas, heard):
    inside = canvas.viewport().mapToGlobal(QPoint(100, 100))
    outside = canvas.viewport().mapToGlobal(QPoint(-50, 100))
    count = len(canvas.model_scene.items())
    canvas.ghost("nn.ReLU", inside)
    canvas.ghost("nn.ReLU", outside)
    assert not canvas.drop("nn.ReLU", outside)
    canvas.ghost("nn.ReLU", inside)
    canvas.end_ghost()
    canvas.ghost("nn.ReLU", inside)
    QTest.keyClick(canvas, Qt.Key.Key_Escape)
    assert heard == [] and len(canvas.model_scene.items()) == count


def test_hover_and_cursor(canvas, snapshot):
    QTest.mouseMove(canvas.viewport(), at(canvas, 40, 400))  # a move to where it is would be none
    QTest.mouseMove(canvas.viewport(), canvas.block_center("a"))
    assert canvas.model_scene.blocks["a"].hovered
    QTest.mouseMove(canvas.viewport(), canvas.port_center("a", "output", "out"))
    assert canvas.viewport().cursor().shape() == Qt.CursorShape.CrossCursor
    QTest.mouseMove(canvas.viewport(), at(canvas, 40, 400))
    assert not canvas.model_scene.blocks["a"].hovered
    assert canvas.viewport().cursor().shape() == Qt.CursorShape.ArrowCursor


def test_minimap_takes_one_there(canvas):
    canvas.zoom_by(3)
    minimap = canvas.minimap
    before = canvas.center()
    QTest.mouseClick(minimap, LEFT, pos=QPoint(20, 56))
    left = canvas.center()
    assert left.x() < before.x()
    QTest.mouseClick(minimap, LEFT, pos=QPoint(156, 56))
    assert canvas.center().x() > left.x()


def test_the_minimap_is_there_only_while_something_is_out_of_sight(canvas):
    canvas.fit()
    assert not canvas.minimap.isVisible()
    canvas.zoom_by(3)
    assert canvas.minimap.isVisible()


def test_what_is_shown_whole_stays_whole_in_another_size_until_it_is_moved(canvas, model):
    """A banner takes some of the canvas's height just after a template was opened."""
    canvas.fit()
    canvas.resize(canvas.width(), canvas.height() - 150)
    assert canvas.visible_rect().contains(canvas.content_rect())
    assert not canvas.minimap.isVisible()
    canvas.zoom_by(1.5)
    zoom = canvas.zoom
    canvas.resize(canvas.width(), canvas.height() + 150)
    assert canvas.zoom == zoom
    canvas.fit()
    canvas.show_model(Model((replace(model.blocks[0], x=model.blocks[0].x + 8),), ()))
    zoom = canvas.zoom
    canvas.resize(canvas.width(), canvas.height() - 150)
    assert canvas.zoom == zoom


def test_the_minimap_draws_wires_from_end_to_end_without_measuring_them(canvas, monkeypatch):
    drawn = list(canvas.model_scene.wires.values())
    for wire in drawn:
        start, end = (point.toTuple() for point in wire.ends)
        assert (*start, *end) == pytest.approx((*wire.points[0], *wire.points[-1]))
        wire._points = []
    assert drawn
    monkeypatch.setattr(wires, "sample_path", lambda path: pytest.fail("a wire was measured"))
    canvas.zoom_by(3)
    canvas.minimap.grab()


def test_the_minimap_goes_out_of_the_way_of_a_block(canvas, model):
    canvas.set_view(1.0, 520, 150)
    edge = canvas.minimap.EDGE_PX
    for y in (canvas.height() - 100, 30):  # a block in the lower right corner, then the upper one
        seen = canvas.mapToScene(canvas.width() - 150, y)
        far = replace(model.blocks[1], x=-3000.0)
        here = replace(model.blocks[0], x=seen.x(), y=seen.y())
        canvas.show_model(Model((here, far), ()))
        box = canvas.mapFromScene(canvas.model_scene.blocks[here.id].rect()).boundingRect()
        assert canvas.minimap.isVisible()
        assert not canvas.minimap.geometry().intersects(box)
        assert canvas.rect().adjusted(edge, edge, -edge, -edge).contains(canvas.minimap.geometry())


def test_zoom_bar(canvas):
    buttons = {b.objectName(): b for b in canvas.zoom_bar.children() if b.objectName()}
    buttons["zoom_in"].click()
    assert canvas.zoom == pytest.approx(1.2)
    assert buttons["actual_size"].text() == "120 %"
    buttons["actual_size"].click()
    assert canvas.zoom == pytest.approx(1)
    buttons["fit"].click()
    assert canvas.visible_rect().contains(canvas.content_rect())


def test_a_drag_at_the_edge_pans_and_goes_on(canvas, drag, heard):
    start = canvas.block_center("relu")
    edge = QPoint(canvas.viewport().width() - 4, start.y())
    before = canvas.center().x()
    drag(start, edge, release=False)
    assert canvas._edge_pan.isActive()
    canvas._edge_pan.timeout.emit()
    assert canvas.center().x() == before + 10
    QTest.mouseRelease(canvas.viewport(), LEFT, pos=edge)
    assert not canvas._edge_pan.isActive()
    (_, moved), *_ = heard
    assert moved["relu"][0] == pytest.approx(288 + edge.x() - start.x() + 10, abs=8)
