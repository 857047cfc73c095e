"""Building a model through the widgets' signals: edits, checks, undo, files."""

from __future__ import annotations

import itertools

import pytest
import torch
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication

from app.selection.references import Blocks
from engine.project import files
from engine.project.document import Wire, replace
from engine.protocol import CheckModelCommand, ModelSnapshot
from tests.gestures import press_key, type_text
from widgets.model.code_view import COLUMNS

pytestmark = pytest.mark.one_program

MLP = ("Input", "nn.Flatten", "nn.Linear", "nn.ReLU", "nn.Linear", "Output")


def build_mlp(program, out_features: int = 10) -> list[str]:
    """Choose the blocks of an MLP one after the other, as Enter in the palette does."""
    page = program.window.page("model")
    program.window.show_workspace("model")
    for kind in MLP:
        page.block_palette.block_chosen.emit(kind)
    ids = [block.id for block in program.bench.store.project.model.blocks]
    page.properties.param_edited.emit(ids[4], "out_features", out_features)
    program.bench.link.drain()
    return ids


def model(program):
    return program.bench.store.project.model


def report(program) -> ModelSnapshot:
    snapshot = program.bench.store.newest(ModelSnapshot)
    assert snapshot is not None and snapshot.revision == program.bench.store.revision
    return snapshot


def test_a_model_is_built_checked_and_written_as_python(program):
    build_mlp(program)
    assert [(w.source, w.target) for w in model(program).wires] == [
        ("b1", "b2"), ("b2", "b3"), ("b3", "b4"), ("b4", "b5"), ("b5", "b6"),
    ]  # fmt: skip
    snapshot = report(program)
    assert snapshot.runnable
    namespace: dict = {"__name__": "exported"}
    exec(snapshot.code, namespace)
    net = namespace["Model"]()
    assert sum(p.numel() for p in net.parameters()) == snapshot.parameters
    assert net(torch.randn(3, 1, 8, 8)).shape == (3, 10)
    page = program.window.page("model")
    assert f"{snapshot.parameters:,} parameters" in program.window._totals.text()
    assert page.code.editor.toPlainText().strip() == snapshot.code.strip()


def test_a_model_is_built_by_keys_alone(program, qtbot):
    program.window.show_workspace("model")
    canvas = program.window.page("model").canvas
    canvas.setFocus()
    popup = program.window.palette_popup
    for words in ("input", "flatten", "linear", "relu", "output"):
        press_key(canvas, Qt.Key.Key_Slash)
        type_text(popup.field, words)
        press_key(popup.field, Qt.Key.Key_Return)
        (added,) = canvas.selected_blocks()
        on_screen = canvas.mapFromScene(canvas.model_scene.blocks[added].rect()).boundingRect()
        assert canvas.viewport().rect().contains(on_screen)
        assert not canvas.minimap.geometry().intersects(on_screen)
    assert [(w.source, w.target) for w in model(program).wires] == [
        ("b1", "b2"), ("b2", "b3"), ("b3", "b4"), ("b4", "b5"),
    ]  # fmt: skip
    program.bench.link.drain()
    assert report(program).runnable


def test_a_block_that_is_added_covers_no_other(program):
    ids = build_mlp(program)
    page = program.window.page("model")
    for selected in ((), (), (ids[1],), (ids[1],)):
        program.bench.selection.choose(Blocks(selected) if selected else None)
        page.block_palette.block_chosen.emit("nn.LSTM")
    boxes = [item.rect() for item in page.canvas.model_scene.blocks.values()]
    assert len(boxes) == 10
    assert not [pair for pair in itertools.combinations(boxes, 2) if pair[0].intersects(pair[1])]


def test_a_block_dropped_on_a_short_wire_makes_itself_room(program):
    ids = build_mlp(program)
    page = program.window.page("model")
    wire, end = model(program).wires[2], model(program).block(ids[-1])
    there = model(program).block(wire.target)
    page.canvas.block_dropped_on_wire.emit("nn.Dropout", there.x - 60, there.y, wire)
    boxes = [item.rect() for item in page.canvas.model_scene.blocks.values()]
    assert not [pair for pair in itertools.combinations(boxes, 2) if pair[0].intersects(pair[1])]
    assert model(program).block(ids[-1]).x == end.x + 304
    assert [(w.source, w.target) for w in model(program).wires[-2:]] == [("b3", "b7"), ("b7", "b4")]
    program.bench.actions["edit.undo"].trigger()
    assert model(program).block(ids[-1]) == end and wire in model(program).wires


def test_the_panels_open_wide_enough_to_read(program):
    program.window.show_workspace("model")
    page = program.window.page("model")
    assert page.block_palette.width() >= page.block_palette.sizeHint().width()
    line_px = page.code.editor.fontMetrics().horizontalAdvance("9" * COLUMNS)
    assert page.code.editor.viewport().width() >= line_px
    assert page.canvas.width() > page.code.width()
    program.window.resize(1024, 700)
    assert program.window.width() == 1024 and page.canvas.width() >= 400


def test_an_edit_shows_at_once_and_undo_takes_it_back(program):
    ids = build_mlp(program)
    canvas = program.window.page("model").canvas
    canvas.delete_requested.emit((ids[3],), ())
    assert ids[3] not in canvas.model_scene.blocks
    assert program.bench.actions["edit.undo"].text() == "&Undo Delete block"
    program.bench.actions["edit.undo"].trigger()
    assert ids[3] in canvas.model_scene.blocks
    program.bench.actions["edit.redo"].trigger()
    assert ids[3] not in canvas.model_scene.blocks


def test_a_refused_wire_changes_nothing_and_says_why(program):
    ids = build_mlp(program)
    before = program.bench.store.project
    canvas = program.window.page("model").canvas
    canvas.wire_requested.emit(Wire(ids[4], "output", ids[2], "input"))
    assert program.bench.store.project is before
    assert "loop" in program.window.statusBar().currentMessage()


def test_a_problem_offers_a_fix_that_cures_it(program):
    ids = build_mlp(program)
    page = program.window.page("model")
    page.properties.param_edited.emit(ids[2], "in_features", 63)
    program.bench.link.drain()
    assert not report(program).runnable
    program.bench.selection.choose(None)
    for problems in (page.problems, page.properties.problems):
        assert [p.message[:11] for p in problems.problems()] == ["“linear1”: "]
    (problem,) = [p for block in report(program).blocks for p in block.problems if p.fix]
    page.problems.fix_requested.emit(problem.fix)
    program.bench.link.drain()
    assert report(program).runnable
    assert model(program).block(ids[2]).params["in_features"] == 64


def test_one_selection_lights_up_everywhere(program):
    ids = build_mlp(program)
    page = program.window.page("model")
    page.code.block_selected.emit(ids[2])
    assert page.canvas.selected_blocks() == (ids[2],)
    assert page.properties.name.text() == "linear1"
    page.canvas.select([ids[3]])
    assert program.bench.selected_blocks == (ids[3],)
    assert page.code.editor.marked_lines() == report(program).lines[ids[3]]


def test_copy_and_paste_keep_the_inner_wires(program):
    ids = build_mlp(program)
    canvas = program.window.page("model").canvas
    canvas.select(ids[2:4])
    canvas.request_copy()
    canvas.paste_requested.emit(500.0, 500.0)
    names = [block.name for block in model(program).blocks]
    assert names[-2:] == ["linear3", "relu2"]
    assert program.bench.selected_blocks == tuple(b.id for b in model(program).blocks[-2:])
    assert len(model(program).wires) == 6
    canvas.cut_requested.emit(program.bench.selected_blocks)
    assert len(model(program).blocks) == 6
    assert "linear3: nn.Linear" in QGuiApplication.clipboard().text()


def test_a_paste_covers_no_block_and_lies_in_sight(program):
    ids = build_mlp(program)
    canvas = program.window.page("model").canvas
    canvas.select(ids[2:4])
    canvas.request_copy()
    seen = canvas.visible_rect()
    block = model(program).block(ids[2])
    for x, y in ((block.x, block.y), (seen.right(), seen.bottom()), (seen.left(), seen.top())):
        canvas.paste_requested.emit(x, y)
        boxes = [item.rect() for item in canvas.model_scene.blocks.values()]
        assert not [p for p in itertools.combinations(boxes, 2) if p[0].intersects(p[1])]
        in_sight = canvas.visible_rect()
        for key in program.bench.selected_blocks:
            assert in_sight.contains(canvas.model_scene.blocks[key].rect())


def test_while_the_engine_is_busy_only_the_newest_model_waits(program, monkeypatch):
    ids = build_mlp(program)
    sent = []
    link = program.bench.link
    original = link.send

    def send(command):
        sent.append(command)
        return original(command)

    monkeypatch.setattr(link, "send", send)
    page = program.window.page("model")
    for features in (1, 2, 3, 4):
        page.properties.param_edited.emit(ids[2], "out_features", features)
    link.drain()
    checks = [c for c in sent if isinstance(c, CheckModelCommand)]
    assert [c.model.block(ids[2]).params["out_features"] for c in checks] == [1, 4]
    assert report(program).revision == program.bench.store.revision


def test_arrange_is_one_step_that_moves_every_block(program, qtbot):
    build_mlp(program)
    before = program.bench.store.project
    steps = program.bench.history.stack.count()
    program.bench.actions["model.layout"].trigger()
    qtbot.waitUntil(lambda: program.bench.history.stack.count() > steps, timeout=30_000)
    assert program.bench.history.stack.count() == steps + 1
    xs = [block.x for block in model(program).blocks]
    assert len(set(zip(xs, [b.y for b in model(program).blocks], strict=True))) == len(xs)
    program.bench.history.stack.undo()
    assert program.bench.store.project.model == before.model


def test_the_project_is_saved_and_opened_as_it_was(program, answers, tmp_path):
    build_mlp(program)
    saved = model(program)
    answers.save = str(tmp_path / "mlp.tlab")
    program.bench.actions["file.save"].trigger()
    assert not program.window.isWindowModified()
    assert program.window.windowTitle() == "mlp[*] – Tensor Lab"
    program.bench.actions["file.new"].trigger()
    assert model(program).blocks == ()
    answers.open = answers.save
    program.bench.actions["file.open"].trigger()
    assert model(program) == saved
    assert files.load(answers.save).model == saved
    program.bench.link.drain()
    assert report(program).runnable


def test_a_damaged_file_is_told_in_a_banner(program, tmp_path):
    path = tmp_path / "bad.tlab"
    path.write_text("{", encoding="utf-8")
    program.window.file_dropped.emit(str(path))
    banner = program.window.banners.banner("file")
    assert banner is not None and "only a part of it was written" in banner.title


def test_every_template_opens_and_runs(program):
    from app import templates

    page = program.window.page("start")
    for template in templates.templates():
        page.template_chosen.emit(template.key)
        program.bench.link.drain()
        assert report(program).runnable, template.key
        assert report(program).problems == (), template.key
        assert program.window.workspace == "model"
        assert not program.window.isWindowModified()


def test_the_command_palette_reaches_actions_and_blocks(program, qtbot):
    program.window.show_workspace("model")
    program.bench.actions["view.commands"].trigger()
    field = program.window.palette_popup.field
    type_text(field, "conv2d")
    press_key(field, Qt.Key.Key_Return)
    assert [b.kind for b in model(program).blocks] == ["nn.Conv2d"]
    program.bench.actions["view.commands"].trigger()
    type_text(field, "dark theme")
    press_key(field, Qt.Key.Key_Return)
    assert program.bench.settings.theme == "dark"


def test_a_name_that_is_taken_is_refused_in_place(program):
    ids = build_mlp(program)
    page = program.window.page("model")
    page.canvas.select([ids[2]])
    page.properties.rename_requested.emit(ids[2], "relu1")
    assert model(program).block(ids[2]).name == "linear1"
    assert "named “relu1”" in page.properties._name_error.text()


def test_typing_a_number_is_one_step_though_each_digit_is_checked(program):
    ids = build_mlp(program)
    page = program.window.page("model")
    page.canvas.select([ids[2]])
    steps = program.bench.history.stack.count()
    for value in (1, 12, 128):
        page.properties.param_edited.emit(ids[2], "out_features", value)
        program.bench.link.drain()
    assert program.bench.history.stack.count() == steps + 1
    program.bench.history.stack.undo()
    assert model(program).block(ids[2]).params["out_features"] == 64


def test_the_view_is_saved_but_is_no_edit(program):
    build_mlp(program)
    steps = program.bench.history.stack.count()
    canvas = program.window.page("model").canvas
    canvas.set_view(0.5, 100.0, 50.0)
    view = program.bench.store.project.view
    assert (view.canvas_zoom, view.workspace) == (0.5, "model")
    assert program.bench.history.stack.count() == steps
    assert replace(view, canvas_zoom=0.5) == view
