"""The Model workspace's presenter: gestures become edits, and all panels show one document."""

from __future__ import annotations

import itertools

import pytest
from PySide6.QtCore import QMimeData, QPoint
from PySide6.QtGui import QGuiApplication

from app.presenters.model.clipboard import MIME
from app.presenters.model.workspace import ModelPresenter
from app.selection.references import Blocks
from app.window.model_page import ModelPage
from engine.project import edits, files
from engine.project.document import Model, Project, ViewState, Wire, replace
from engine.project.problems import Fix, Problem
from engine.protocol import BlockReport, InitialiseCommand, ModelSnapshot, Snapshot, WeightsSnapshot
from tests.bench.bench_canvas import make_model
from tests.widgets.backward.autograd_snapshots import forward
from tests.widgets.small_model import SMALL_MODEL
from tests.work import work_of
from widgets.canvas.items import BlockItem
from widgets.layout.model_layout import layout_model

OPEN = Problem("It has no input.", block="a", fix=Fix("Set 7", "a", "out_features", 7))


def report(*problems: Problem, blocks: int = 2) -> ModelSnapshot:
    """What an engine tells of the model; block `a` has these problems."""
    return ModelSnapshot(
        blocks=tuple(
            BlockReport(block, problems=problems if block == "a" else ())
            for block in ("a", "b")[:blocks]
        ),
        parameters=12345,
        parameter_bytes=4 * 12345,
        activation_bytes=0,
        problems=(Problem("It has two outputs."),) if problems else (),
        runnable=not problems,
        code="import torch\nself.a = 1\nself.b = 2\n",
        lines={"a": (2,), "b": (3,)},
    )


class Desk:
    def __init__(self, bench, qtbot) -> None:
        self.bench = bench
        bench.store.set_project(replace(bench.project, model=SMALL_MODEL))
        self.page = ModelPage()
        qtbot.addWidget(self.page)
        self.canvas, self.properties = self.page.canvas, self.page.properties
        self.presenter = ModelPresenter(bench, self.page, bench.window)

    def take(self, snapshot: Snapshot) -> None:
        self.bench.store.take(replace(snapshot, revision=self.bench.store.revision))

    @property
    def model(self):
        return self.bench.project.model

    @property
    def undo_text(self) -> str:
        return self.bench.history.stack.undoText()

    @property
    def title(self) -> str:
        return self.properties._title.text()


@pytest.fixture
def desk(bench, link, qtbot) -> Desk:
    link.get_ready()
    return Desk(bench, qtbot)


# -- gestures ------------------------------------------------------------------------------------

WIRED = Wire("a", "output", "relu", "input")


@pytest.mark.parametrize(
    ("signal", "arguments", "text"),
    [
        ("block_dropped", ("nn.ReLU", 64.0, 512.0), "Add ReLU"),
        ("block_dropped_on_wire", ("nn.ReLU", 430.0, 0.0, SMALL_MODEL.wires[1]), "Insert ReLU"),
        ("blocks_moved", ({"a": (0.0, 96.0)},), "Move block"),
        ("blocks_moved", ({"a": (0.0, 96.0), "b": (0.0, 256.0)},), "Move 2 blocks"),
        ("wire_requested", (WIRED,), "Connect"),
        ("wire_rerouted", (SMALL_MODEL.wires[1], WIRED), "Re-route"),
        ("delete_requested", (("a",), ()), "Delete block"),
        ("delete_requested", ((), SMALL_MODEL.wires[:1]), "Delete wire"),
        ("duplicate_requested", (("a", "b"),), "Duplicate 2 blocks"),
        ("cut_requested", (("a",),), "Cut block"),
        ("fix_requested", (OPEN.fix,), "Fix: Set 7"),
        ("layout_requested", (), "Arrange"),
    ],
)
def test_a_gesture_is_one_step_that_undo_takes_back(desk, signal, arguments, text):
    getattr(desk.canvas, signal).emit(*arguments)
    assert desk.undo_text == text and desk.model != SMALL_MODEL
    assert set(desk.canvas.model_scene.blocks) == {block.id for block in desk.model.blocks}
    desk.bench.history.stack.undo()
    assert desk.model == SMALL_MODEL and not desk.bench.history.stack.canUndo()
    assert set(desk.canvas.model_scene.blocks) == {block.id for block in SMALL_MODEL.blocks}


def test_an_edit_that_is_refused_sets_the_canvas_back_and_says_why(desk, bench):
    item = desk.canvas.model_scene.blocks["a"]
    item.setPos(500, 500)  # as a drag shows it
    desk.canvas.wire_requested.emit(Wire("b", "output", "a", "nothing"))
    assert desk.model == SMALL_MODEL and len(bench.window.said) == 1
    assert desk.canvas.model_scene.blocks["a"].pos() == item.pos()
    assert (item.pos().x(), item.pos().y()) == (288, 0)


def test_a_duplicate_covers_no_block(desk):
    desk.canvas.duplicate_requested.emit(("a", "b"))
    desk.canvas.duplicate_requested.emit(("a", "b"))
    boxes = [item.rect() for item in desk.canvas.model_scene.blocks.values()]
    assert len(boxes) == len(SMALL_MODEL.blocks) + 4
    assert not [pair for pair in itertools.combinations(boxes, 2) if pair[0].intersects(pair[1])]


def test_what_is_copied_is_pasted_and_selected(desk, bench):
    desk.canvas.copy_requested.emit(("a", "b"))
    names = [block.name for block in SMALL_MODEL.blocks if block.id in ("a", "b")]
    assert QGuiApplication.clipboard().text() == "\n".join(f"{n}: nn.Linear" for n in names)
    desk.canvas.paste_requested.emit(0.0, 800.0)
    assert desk.undo_text == "Paste 2 blocks"
    pasted = desk.model.blocks[-2:]
    assert bench.selected_blocks == tuple(block.id for block in pasted)
    assert [block.kind for block in pasted] == ["nn.Linear", "nn.Linear"]
    left, right = pasted[0].x, pasted[1].x
    assert right - left == 288 and left < 0 < right  # the middle is where it was asked for


def test_without_blocks_in_the_clipboard_paste_says_so(desk, bench):
    QGuiApplication.clipboard().setText("a text")
    desk.canvas.paste_requested.emit(0.0, 0.0)
    assert desk.model == SMALL_MODEL
    assert bench.window.said == ["There are no blocks in the clipboard: copy some first."]


def test_blocks_that_no_file_could_hold_are_not_pasted(desk, bench):
    data = QMimeData()
    far = replace(SMALL_MODEL.blocks[0], x=1e12)
    data.setData(MIME, files.dumps(Project(model=Model(blocks=(far,)))).encode())
    QGuiApplication.clipboard().setMimeData(data)
    desk.canvas.paste_requested.emit(0.0, 0.0)
    assert desk.model == SMALL_MODEL
    (said,) = bench.window.said
    assert said.startswith("The clipboard's blocks were not pasted. model.blocks[0]")
    assert said.endswith(".x: It must be between -10,000,000 and 10,000,000, not 1e+12.")


def test_what_is_pasted_can_be_saved_and_opened(desk, bench):
    desk.canvas.copy_requested.emit(("a", "b"))
    desk.canvas.paste_requested.emit(1e12, 0.0)
    assert len(desk.model.blocks) == len(SMALL_MODEL.blocks) + 2
    assert files.loads(files.dumps(bench.project).encode()) == bench.project


def test_blocks_are_arranged_only_where_there_are_some_and_those_that_are_gone_stay_gone(
    desk, bench
):
    desk.presenter.arrange()
    view = desk.canvas.viewport().size()
    places = layout_model(SMALL_MODEL, (float(view.width()), float(view.height())))
    assert {block.id: (block.x, block.y) for block in desk.model.blocks} == places
    assert desk.canvas.visible_rect().contains(desk.canvas.content_rect())
    places = {"a": (0.0, 1024.0), "gone": (1.0, 1.0)}
    desk.presenter._move_to(places)  # the layout of an earlier model arrives
    assert (desk.model.block("a").x, desk.model.block("a").y) == (0, 1024)
    bench.files.new(Project())
    desk.presenter.arrange()
    assert desk.undo_text == ""


def test_a_block_is_asked_for_at_a_point_or_in_the_middle(desk, bench):
    canvas = desk.canvas
    for place in ((64.0, 640.0), (None, None)):
        desk.presenter.ask_for_block(*place)
        chosen, where = bench.window.insertions[-1]
        point = place if place[0] is not None else desk.presenter.edits.middle_place()
        in_view = canvas.viewport().mapTo(desk.page, canvas.mapFromScene(*point))
        assert where == bench.window.mapFromGlobal(desk.page.mapToGlobal(in_view))
        chosen("nn.ReLU")
        added = desk.model.blocks[-1]
        assert added.kind == "nn.ReLU" and added.x == point[0] and added.y >= point[1]
        assert bench.selected_blocks == (added.id,)
        bench.selection.choose(None)
    canvas.insert_requested.emit(0.0, 0.0)
    assert len(bench.window.insertions) == 3 and isinstance(where, QPoint)


def test_a_block_from_the_palette_follows_the_selected_one(desk, bench):
    bench.selection.choose(Blocks(("relu",)))
    desk.page.block_palette.block_chosen.emit("nn.Flatten")
    assert desk.undo_text == "Add Flatten"
    added = desk.model.blocks[-1].id
    assert (desk.model.wires[-1].source, desk.model.wires[-1].target) == ("relu", added)
    bench.selection.choose(Blocks(("a", "b")))
    desk.page.block_palette.block_chosen.emit("nn.Flatten")
    assert len(desk.model.wires) == len(SMALL_MODEL.wires) + 1


def test_the_properties_rename_and_set_and_a_refused_name_is_told_beside_it(desk, bench):
    bench.selection.choose(Blocks(("a",)))
    desk.properties.rename_requested.emit("a", "first")
    assert (desk.model.block("a").name, desk.undo_text) == ("first", "Rename")
    desk.properties.rename_requested.emit("a", "class")
    assert desk.model.block("a").name == "first"
    assert not desk.properties._name_error.isHidden() and bench.window.said == []
    for size in (1, 12, 128):
        desk.properties.param_edited.emit("a", "out_features", size)
    assert desk.undo_text == "Set out_features"
    bench.history.stack.undo()  # what is typed in one field is one step
    assert desk.model.block("a").params["out_features"] == 32


def test_parameters_are_set_anew_only_when_that_is_agreed(desk, bench, link):
    bench.dialogs.agrees = False
    desk.presenter.initialise()
    assert link.sent == [] and len(bench.dialogs.asked) == 1
    bench.dialogs.agrees = True
    desk.presenter.initialise()
    (command,) = link.sent
    assert isinstance(command, InitialiseCommand)
    assert (command.model, command.training) == (desk.model, bench.project.training)
    desk.take(WeightsSnapshot(origin="The parameters were set again.", parameters=3))
    assert bench.window.said == ["The parameters were set again."]


# -- what the panels show ------------------------------------------------------------------------


def test_the_report_is_shown_by_canvas_code_problems_and_totals(desk, bench):
    desk.take(report(OPEN))
    assert bench.window.totals == "2 blocks · 12,345 parameters · 48.2 KiB"
    assert desk.page.problems_dock.windowTitle() == "Problems (2)"
    assert "self.a = 1" in desk.page.code.editor.toPlainText()
    desk.page.problems.fix_requested.emit(OPEN.fix)
    assert desk.model.block("a").params["out_features"] == 7
    desk.take(report(blocks=1))
    assert bench.window.totals.startswith("1 block · ")
    assert desk.page.problems_dock.windowTitle() == "Problems"


def test_a_page_made_late_shows_what_is_known(bench, link, qtbot):
    link.get_ready()
    bench.store.take(replace(report(OPEN), revision=bench.store.revision + 1))
    bench.store.set_project(replace(bench.project, model=SMALL_MODEL))
    bench.store.take(replace(report(OPEN), revision=bench.store.revision))
    desk = Desk(bench, qtbot)
    assert desk.page.problems_dock.windowTitle() == "Problems (2)"
    assert set(desk.canvas.model_scene.blocks) == {"x", "a", "b", "out", "relu", "add"}
    assert desk.title  # the model as a whole


def test_the_code_is_copied_once_it_is_known(desk, bench):
    QGuiApplication.clipboard().setText("before")
    desk.presenter.copy_code()
    assert QGuiApplication.clipboard().text() == "before"
    desk.take(replace(report(), code=""))
    desk.presenter.copy_code()
    assert bench.window.said == ["There is no code yet: the engine has not read the model."] * 2
    desk.take(report())
    desk.presenter.copy_code()
    assert QGuiApplication.clipboard().text() == report().code
    assert bench.window.said[2] == "The model's Python is in the clipboard."


def test_the_selection_is_shared_by_canvas_code_and_properties(desk, bench, monkeypatch):
    lines: list = []
    monkeypatch.setattr(desk.page.code, "highlight_block", lines.append)
    desk.take(report())
    whole = desk.title
    bench.selection.choose(Blocks(("a",)))
    assert desk.canvas.selected_blocks() == ("a",)
    assert (desk.title, desk.properties.name.text()) == ("Linear", "a_")
    desk.canvas.selection_changed.emit(("a", "b"))
    assert bench.selected_blocks == ("a", "b") and desk.title == whole
    desk.page.code.block_selected.emit("b")
    assert bench.selected_blocks == ("b",) == desk.canvas.selected_blocks()
    assert lines == [None, "a", None, "b"]
    for panel in (desk.page.problems, desk.properties):
        panel.problem_activated.emit("relu")
        assert bench.selected_blocks == ("relu",)
        bench.selection.choose(None)


def test_a_block_that_is_removed_is_not_selected_any_more(desk, bench):
    bench.selection.choose(Blocks(("a", "b")))
    bench.store.set_project(edits.remove(bench.project, ("a",), ()))
    assert bench.selected_blocks == ("b",) and desk.title == "Linear"


def test_a_block_of_a_kind_that_is_not_known_is_named_by_it(desk, bench):
    alien = replace(SMALL_MODEL.block("relu"), kind="nn.Alien", params={})
    blocks = tuple(alien if block.id == "relu" else block for block in SMALL_MODEL.blocks)
    bench.store.set_project(replace(bench.project, model=replace(SMALL_MODEL, blocks=blocks)))
    bench.selection.choose(Blocks(("relu",)))
    assert desk.title == "nn.Alien"


def test_a_field_that_is_left_for_another_block_begins_another_step(desk, bench):
    desk.properties.param_edited.emit("a", "out_features", 8)
    bench.selection.choose(Blocks(("b",)))
    desk.properties.param_edited.emit("a", "out_features", 9)
    bench.history.stack.undo()
    assert desk.model.block("a").params["out_features"] == 8


def test_an_activated_block_opens_its_properties(desk):
    desk.page.show()
    desk.page.properties_dock.hide()
    desk.canvas.block_activated.emit("a")
    assert desk.page.properties_dock.isVisible()


def test_the_forward_pass_is_marked_on_the_canvas_until_the_model_changes(desk, monkeypatch, bench):
    shown: list = []
    monkeypatch.setattr(desk.canvas, "show_progress", lambda *progress: shown.append(progress))
    desk.take(forward(0))
    desk.take(forward(2))
    bench.store.set_project(edits.set_param(bench.project, "a", "out_features", 9))
    assert shown == [((), None), (("b1", "b2"), "b2"), ((), None)]


# -- another project -----------------------------------------------------------------------------


def test_a_project_that_is_opened_is_seen_as_it_was_left(desk, bench):
    bench.selection.choose(Blocks(("a",)))
    bench.files.new(Project(model=SMALL_MODEL, view=ViewState(canvas_zoom=0.5)))
    assert bench.selected_blocks == () and desk.canvas.zoom == 0.5
    far = ViewState(canvas_zoom=1.0, canvas_center=(400.0, 100.0))
    bench.files.new(Project(model=SMALL_MODEL, view=far))
    middle = desk.canvas.center()
    assert desk.canvas.zoom == 1
    assert abs(middle.x() - 400) <= 1 and abs(middle.y() - 100) <= 1


def test_a_project_that_was_never_seen_is_shown_whole(desk, bench):
    wide = edits.move_blocks(Project(model=SMALL_MODEL), {"out": (3000.0, 0.0)})
    bench.files.new(wide)
    scene = desk.canvas.model_scene.blocks["out"].rect()
    assert desk.canvas.zoom < 1 and desk.canvas.visible_rect().contains(scene)


def test_the_view_is_kept_in_the_document_without_a_step_of_undo(desk, bench):
    desk.canvas.view_changed.emit(0.75, 10.0, 20.0)
    view = bench.project.view
    assert (view.canvas_zoom, view.canvas_center) == (0.75, (10, 20))
    assert not bench.history.stack.canUndo()


# -- large models --------------------------------------------------------------------------------


def test_a_model_is_opened_and_an_edit_undone_by_work_in_proportion_to_its_blocks(
    desk, bench, monkeypatch
):
    made: list[str] = []
    changed: list[str] = []
    make, show = BlockItem.__init__, BlockItem.show_block
    monkeypatch.setattr(BlockItem, "__init__", lambda i, b: (made.append(b.id), make(i, b))[1])
    monkeypatch.setattr(BlockItem, "show_block", lambda i, b: (changed.append(b.id), show(i, b))[1])
    work: dict[int, list[int]] = {}
    for count in (100, 100, 400):  # the first one draws the icons
        bench.files.new(Project())
        made.clear()
        project = Project(model=make_model(count))
        faults = tuple(
            BlockReport(block.id, problems=(Problem("It is wrong.", block.id, "input"),))
            for block in project.model.blocks
        )
        opened = work_of(lambda project=project: bench.files.new(project))
        told = work_of(lambda faults=faults: desk.take(replace(report(), blocks=faults)))
        assert len(made) == count
        bench.history.edit(edits.set_param(project, "b7", "out_features", "9"), "Edit")
        changed.clear()
        work[count] = [opened, told, work_of(bench.history.stack.undo)]
        assert (len(made), changed) == (count, ["b7"])  # undo touches no other item
    for few, many in zip(work[100], work[400], strict=True):
        assert many < 4.4 * few  # quadratic work would be 16 times as much
