"""What the scene shows of a model, a report and a forward pass."""

from __future__ import annotations

from itertools import product

import pytest
from PySide6.QtCore import QPointF
from PySide6.QtGui import QColor, QImage, QPainter

from engine.project.document import Block, Model, Wire, replace
from engine.project.problems import Problem
from engine.protocol import BlockReport, TensorSpec
from tests.model_snapshots import model_snapshot
from widgets import theme
from widgets.canvas.items import _text
from widgets.diagram import style
from widgets.save_picture import save_picture


def test_items_follow_the_model_and_only_what_changed_is_touched(canvas, model):
    scene = canvas.model_scene
    kept = dict(scene.blocks)
    wires = dict(scene.wires)
    blocks = tuple(replace(b, x=8.0) if b.id == "relu" else b for b in model.blocks[1:])
    canvas.show_model(Model(blocks, model.wires[1:]))
    assert scene.blocks.keys() == {"a", "b", "out", "relu", "add"}
    assert all(scene.blocks[key] is kept[key] for key in scene.blocks)
    assert scene.wires == {wire: wires[wire] for wire in model.wires[1:]}
    assert scene.blocks["relu"].pos() == QPointF(8, 240)
    assert kept["x"].scene() is None and wires[model.wires[0]].scene() is None


def test_changed_parameters_change_words_and_ports(canvas, model):
    cat = Block("cat", "torch.cat", "cat1", {"inputs": 2, "dim": 1}, 0, 400)
    canvas.show_model(replace(model, blocks=(*model.blocks, cat)))
    item = canvas.model_scene.blocks["cat"]
    before = item.height
    assert item.port_names("in") == ("tensor0", "tensor1")
    cat = replace(cat, params={"inputs": 5, "dim": 1})
    canvas.show_model(replace(model, blocks=(*model.blocks, cat)))
    assert item.port_names("in") == tuple(f"tensor{i}" for i in range(5))
    assert item.height > before
    assert canvas.model_scene.blocks["a"].parameters_text == "64 → 32"


def test_wires_join_their_ports(canvas, model):
    for place in (None, QPointF(400, 300), QPointF(0, -200)):
        if place is not None:
            canvas.model_scene.preview_moves({"a": place})
        for wire, item in canvas.model_scene.wires.items():
            start = canvas.model_scene.blocks[wire.source].port_pos("out", wire.source_port)
            end = canvas.model_scene.blocks[wire.target].port_pos("in", wire.target_port)
            assert tuple(item.points[0]) == pytest.approx(start.toTuple())
            assert tuple(item.points[-1]) == pytest.approx(end.toTuple())
    canvas.show_model(model)
    assert canvas.port_center("a", "input", "in") == canvas.mapFromScene(288, 36)
    assert canvas.block_center("a") == canvas.mapFromScene(288 + 96, 36)
    with pytest.raises(KeyError):
        canvas.port_center("a", "nonsense", "in")


def test_wires_of_unknown_ports_or_kinds_are_left_out(canvas, model):
    odd = Block("odd", "nn.Nonsense", "odd1")
    wires = (*model.wires, Wire("x", "nowhere", "relu", "input"), Wire("odd", "y", "relu", "input"))
    canvas.show_model(Model((*model.blocks, odd), wires))
    assert set(canvas.model_scene.wires) == set(model.wires)
    assert "odd" not in canvas.model_scene.blocks


def test_shapes_stand_on_wires_and_blocks(canvas, model, snapshot):
    canvas.show_report(snapshot)
    scene = canvas.model_scene
    labels = {wire.source: item.label for wire, item in scene.wires.items()}
    assert labels == {"x": "(B, 64)", "a": "(B, 32)", "b": ""}
    assert scene.blocks["a"].state_text() == ("(B, 32)", "intermediate")
    canvas.show_report(None)
    assert {item.label for item in scene.wires.values()} == {""}


def test_labels_cover_no_block_and_no_other_label(canvas, model, snapshot):
    # A wire that runs under a block, and blocks so near that no label fits between them.
    blocks = [replace(b, x=400.0 if b.id == "b" else b.x) for b in model.blocks]
    canvas.show_model(replace(model, blocks=tuple(blocks)))
    canvas.show_report(snapshot)
    scene = canvas.model_scene
    for large in (False, True):
        labels = [item.label_rects[large] for item in scene.wires.values() if item.label]
        assert len(labels) == 2 and not any(label.isEmpty() for label in labels)
        assert not labels[0].intersects(labels[1])
        for label, block in product(labels, scene.blocks.values()):
            assert not label.intersects(block.rect())
    for wire in scene.wires.values():
        assert not wire.label or wire.boundingRect().contains(wire.label_rects[True])


def test_a_fault_colours_block_and_wire_and_says_why(canvas, model, snapshot):
    canvas.show_report(snapshot)
    scene = canvas.model_scene
    assert scene.blocks["b"].problem_role() == "error"
    assert scene.blocks["b"].state_text() == ("has a problem", "error")
    assert scene.wires[model.wires[1]].role == "error"
    assert scene.problems.keys() == {"b"}
    image = canvas.grab().toImage()
    corner = canvas.mapFromScene(scene.blocks["b"].rect().topLeft() + QPointF(60, 0))
    assert image.pixelColor(corner) == QColor(theme.current().error)
    canvas.show_report(None)
    assert not scene.problems and scene.blocks["b"].problem_role() is None


def test_an_input_that_is_not_wired_yet_is_no_fault(canvas, snapshot):
    canvas.show_report(snapshot)
    relu = canvas.model_scene.blocks["relu"]
    assert relu.problem_role() is None
    assert relu.state_text() == ("not connected", "warning")


def test_warnings_are_warnings(canvas, model):
    report = BlockReport("b", problems=(Problem("leads nowhere", "b", severity="warning"),))
    canvas.show_report(model_snapshot(blocks=(report,)))
    assert canvas.model_scene.blocks["b"].problem_role() == "warning"


def test_a_report_of_other_parameters_is_dropped(canvas, model, snapshot):
    canvas.show_report(snapshot)
    blocks = [
        replace(b, params={"in_features": 64, "out_features": 7}) if b.id == "a" else b
        for b in model.blocks
    ]
    canvas.show_model(replace(model, blocks=tuple(blocks)))
    assert canvas.model_scene.blocks["a"].report is None
    assert canvas.model_scene.wires[model.wires[1]].label == ""
    assert canvas.model_scene.blocks["x"].report is not None


def test_a_fault_on_a_deleted_block_goes_with_it(canvas, model, snapshot):
    canvas.show_report(snapshot)
    canvas.show_model(Model(model.blocks[:2], model.wires[:1]))
    assert not canvas.model_scene.problems
    canvas.grab()


def test_progress_of_a_forward_pass(canvas, model):
    canvas.show_progress(("x", "a"), "a")
    scene = canvas.model_scene
    assert [scene.blocks[key].progress for key in ("x", "a", "b")] == ["done", "current", "none"]
    assert scene.wires[model.wires[0]].role == "accent"
    assert scene.wires[model.wires[2]].role == "intermediate"
    canvas.show_progress((), None)
    assert scene.blocks["a"].progress == "none"


def test_spec_of_several_outputs(canvas, model):
    lstm = Block("lstm", "nn.LSTM", "lstm1", {"input_size": 8, "hidden_size": 16}, 0, 400)
    canvas.show_model(replace(model, blocks=(*model.blocks, lstm)))
    item = canvas.model_scene.blocks["lstm"]
    assert len(item.ports["out"]) == 3
    ys = [item.port_offset("out", index).y() for index in range(3)]
    assert ys == sorted(ys) and ys[-1] < item.height
    spec = TensorSpec(("B", 5, 16), "float32")
    item.report = BlockReport("lstm", {"output": spec})
    assert item.state_text()[0] == "(B, 5, 16)"


@pytest.mark.parametrize("name", ["light", "dark"])
@pytest.mark.parametrize("zoom", [0.15, 0.5, 1.0, 2.0])
def test_paints_at_every_level_of_detail_in_both_themes(qapp, canvas, snapshot, zoom, name):
    theme.apply(qapp, theme.DARK if name == "dark" else theme.LIGHT)
    canvas.show_report(snapshot)
    canvas.set_view(zoom, 384, 36)
    image = canvas.grab().toImage()
    assert image.pixelColor(5, 5).name() in (theme.current().canvas, theme.current().grid)
    inside = image.pixelColor(canvas.mapFromScene(288 + 160, 57))
    assert inside.name() == theme.current().raised


def test_the_empty_canvas_says_what_to_do(canvas):
    assert not canvas._empty.isVisible()
    canvas.show_model(Model())
    assert canvas._empty.isVisible()
    assert "press /" in canvas._empty.text()
    assert not canvas.minimap.isVisible()


def test_pictures_of_the_model_are_vector_text(canvas, snapshot, tmp_path):
    canvas.show_report(snapshot)
    save_picture(str(tmp_path / "model.svg"), *canvas.picture(bounded=False))
    svg = (tmp_path / "model.svg").read_text()
    for words in ("Linear", "64 → 32", "(B, 64)", "b is wrong"):
        assert words in svg


def test_a_wire_goes_round_a_block_in_its_way(canvas, model):
    skip = Wire("x", "x", "add", "other")
    blocks = [replace(b, y=0.0) if b.id == "add" else b for b in model.blocks]
    blocks = [replace(b, x=864.0) if b.id == "add" else b for b in blocks if b.id != "out"]
    canvas.show_model(Model(tuple(blocks), (*model.wires[:2], skip)))
    points = canvas.model_scene.wires[skip].points
    for key in ("a", "b"):
        body = canvas.model_scene.blocks[key].rect()
        assert not any(body.contains(QPointF(*point)) for point in points)
    assert tuple(points[-1]) == canvas.model_scene.blocks["add"].port_pos("in", "other").toTuple()


def test_a_wire_that_runs_backward_goes_round_both_its_blocks(canvas, model):
    blocks = [replace(b, x=0.0, y=200.0) if b.id == "b" else b for b in model.blocks]
    canvas.show_model(replace(model, blocks=tuple(blocks)))
    points = canvas.model_scene.wires[model.wires[1]].points
    for key in ("a", "b"):
        body = canvas.model_scene.blocks[key].rect().adjusted(1, 1, -1, -1)
        assert not any(body.contains(QPointF(*point)) for point in points)


def test_the_selected_block_lies_on_top(canvas, model):
    blocks = [replace(b, x=300.0, y=10.0) if b.id == "x" else b for b in model.blocks]
    canvas.show_model(replace(model, blocks=tuple(blocks)))
    overlap = QPointF(400, 40)
    for key in ("x", "a"):
        canvas.select([key])
        assert canvas.model_scene.block_at(overlap).block.id == key


@pytest.mark.parametrize("align_right", [False, True])
@pytest.mark.parametrize(("room", "is_painted"), [(19.5, False), (20.0, True), (60.0, True)])
def test_a_line_is_painted_where_a_few_letters_have_room(qapp, room, is_painted, align_right):
    image = QImage(200, 40, QImage.Format.Format_RGB32)
    image.fill(QColor("white"))
    painter = QPainter(image)
    _text(painter, "black", style.font(10), "a few letters", 50, 20, 50 + room, align_right)
    painter.end()
    inked = [x for x in range(200) if any(image.pixelColor(x, y).red() < 200 for y in range(40))]
    assert bool(inked) == is_painted
    assert not inked or 49 <= inked[0] <= inked[-1] <= 51 + room
