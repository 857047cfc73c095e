"""Where blocks come to lie, what is brought into view, and what the panels of the Model page do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QByteArray, QPointF, QRectF
from PySide6.QtGui import QGuiApplication

from app.presenters.model.clipboard import blocks_from_clipboard, blocks_to_clipboard
from app.presenters.model.first_page import first_page, show_view
from app.presenters.model.workspace import CANVAS, CODE, ModelPresenter
from app.selection.references import Blocks, Module
from app.window.model_page import ModelPage
from engine.project import edits, files
from engine.project.document import Model, Project, ViewState, replace
from engine.project.problems import Fix, Problem
from engine.project.subject import ConsoleSubject
from tests.model_snapshots import model_snapshot
from tests.widgets.small_model import SMALL_MODEL

EDGE, GRID = 32.0, 16.0


class Desk:
    def __init__(self, bench: Any, qtbot: Any) -> None:
        self.bench = bench
        bench.store.set_project(replace(bench.project, model=SMALL_MODEL))
        self.page = ModelPage()
        qtbot.addWidget(self.page)
        self.page.resize(1800, 1400)
        self.page.show()
        self.canvas = self.page.canvas
        self.presenter = ModelPresenter(bench, self.page, bench.window)
        self.revealed: list[QRectF] = []
        self.canvas.reveal = self.revealed.append

    @property
    def model(self) -> Model:
        return self.bench.project.model

    def box(self, *blocks: str) -> QRectF:
        box = QRectF()
        for block in blocks:
            box = box.united(self.canvas.model_scene.blocks[block].rect())
        return box

    def new_box(self, before: Model) -> QRectF:
        known = {block.id for block in before.blocks}
        return self.box(*(block.id for block in self.model.blocks if block.id not in known))


@pytest.fixture
def desk(bench, link, qtbot) -> Desk:
    link.get_ready()
    return Desk(bench, qtbot)


def near(one: float, other: float) -> bool:
    return abs(one - other) <= GRID


# -- places ----------------------------------------------------------------------------------------


def test_what_is_pasted_has_its_middle_where_it_was_asked_for(desk: Desk) -> None:
    desk.canvas.copy_requested.emit(("a", "b"))
    seen = desk.canvas.visible_rect()
    wanted = QPointF(seen.center().x(), seen.top() + seen.height() * 0.2)
    desk.canvas.paste_requested.emit(wanted.x(), wanted.y())
    box = desk.new_box(SMALL_MODEL)
    assert near(box.center().x(), wanted.x()) and near(box.center().y(), wanted.y())
    copied = desk.box("a", "b")
    assert (box.width(), box.height()) == (copied.width(), copied.height())
    assert desk.revealed == [box]


@pytest.mark.parametrize(("x", "y"), [(-1, 0), (1, 0), (0, -1), (0, 1)])
def test_what_is_pasted_outside_comes_inside_the_visible_part(desk: Desk, x: int, y: int) -> None:
    desk.canvas.copy_requested.emit(("a",))
    seen = desk.canvas.visible_rect()
    middle = seen.center() + QPointF(x * 10_000.0, y * 10_000.0)
    desk.bench.store.set_project(replace(desk.bench.project, model=Model()))
    desk.canvas.paste_requested.emit(middle.x(), middle.y())
    box = desk.new_box(Model())
    inside = seen.adjusted(EDGE, EDGE, -EDGE, -EDGE)
    for far, edge, side in (
        (x < 0, inside.left(), box.left()), (x > 0, inside.right(), box.right()),
        (y < 0, inside.top(), box.top()), (y > 0, inside.bottom(), box.bottom()),
    ):  # fmt: skip
        assert near(side, edge) or not far
    if x:
        assert near(box.center().y(), middle.y())
    else:
        assert near(box.center().x(), middle.x())


def test_a_duplicate_lies_beside_what_it_was_made_of(desk: Desk) -> None:
    desk.canvas.duplicate_requested.emit(("out",))
    first, second = desk.box("out"), desk.new_box(SMALL_MODEL)
    assert second.left() - first.left() == EDGE and second.top() > first.top()
    assert desk.revealed == [second] and len(desk.bench.selected_blocks) == 1


def test_a_block_that_nothing_precedes_comes_into_the_middle(desk: Desk) -> None:
    desk.bench.store.set_project(replace(desk.bench.project, model=Model()))
    desk.page.block_palette.block_chosen.emit("nn.ReLU")
    box, middle = desk.new_box(Model()), desk.canvas.center()
    assert near(box.center().x(), middle.x()) and near(box.top() + EDGE, middle.y())
    assert desk.revealed == [box]


def test_an_edit_of_blocks_that_is_refused_changes_nothing(desk: Desk) -> None:
    desk.canvas.block_dropped_on_wire.emit("Input", 430.0, 0.0, SMALL_MODEL.wires[1])
    assert desk.model == SMALL_MODEL and desk.revealed == [] and desk.bench.window.said


# -- what is brought into view ---------------------------------------------------------------------


def test_the_blocks_of_the_selection_are_brought_into_view(desk: Desk, bench) -> None:
    desk.presenter.show_chosen()
    assert desk.revealed == []
    bench.selection.choose(Blocks(("a", "out")))
    desk.presenter.show_chosen()
    assert desk.revealed == [desk.box("a", "out")]


def test_the_code_of_the_selected_block_is_brought_into_view(desk: Desk, bench) -> None:
    lines: list[str | None] = []
    desk.page.code.highlight_block = lines.append
    bench.selection.choose(Blocks(("a",)))
    desk.page.code_dock.hide()
    desk.presenter.show_code()
    assert not desk.page.code_dock.isHidden() and lines == ["a", "a"]


def test_what_is_in_no_block_leaves_the_canvas_as_it_is(desk: Desk, bench) -> None:
    bench.selection.choose(Blocks(("a",)))
    bench.selection.choose(Module("elsewhere"))
    assert desk.canvas.selected_blocks() == ("a",)
    bench.selection.choose(None)
    assert desk.canvas.selected_blocks() == ()
    assert (bench.selection.views[desk.canvas], bench.selection.views[desk.page.code]) == (
        CANVAS, CODE,
    )  # fmt: skip


def test_the_last_of_the_selected_blocks_takes_the_selection_with_it(desk: Desk, bench) -> None:
    bench.selection.choose(Blocks(("a",)))
    bench.store.set_project(edits.remove(bench.project, ("b",), ()))
    assert bench.selection.current == Blocks(("a",))
    bench.store.set_project(edits.remove(bench.project, ("a",), ()))
    assert bench.selection.current is None


def test_a_choice_on_the_canvas_is_the_selection(desk: Desk, bench) -> None:
    views: list[str] = []
    choose = bench.selection.choose
    bench.selection.choose = lambda reference, view="", **more: (
        views.append(view), choose(reference, view, **more)
    )  # fmt: skip
    desk.canvas.selection_changed.emit(("a",))
    desk.canvas.selection_changed.emit(("a",))  # it is selected already
    desk.canvas.selection_changed.emit(())
    assert views == [CANVAS, CANVAS] and bench.selection.current is None


# -- edits -----------------------------------------------------------------------------------------


def test_a_name_is_edited_on_the_canvas_and_refused_there(desk: Desk) -> None:
    said: list[tuple] = []
    desk.canvas.say_briefly = lambda *words: said.append(words)
    desk.canvas.rename_requested.emit("a", "first")
    assert desk.model.block("a").name == "first" and said == []
    desk.canvas.rename_requested.emit("a", "class")
    ((why, tone, corner),) = said
    assert desk.model.block("a").name == "first" and "class" in why and tone == "error"
    assert corner == desk.box("a").topLeft()


def test_each_view_can_fix_a_problem(desk: Desk) -> None:
    for number, view in enumerate((desk.canvas, desk.page.properties, desk.page.problems), 5):
        view.fix_requested.emit(Fix(f"Set {number}", "a", "out_features", number))
        assert desk.model.block("a").params["out_features"] == number
        assert desk.bench.history.stack.undoText() == f"Fix: Set {number}"


def test_what_is_cut_is_in_the_clipboard(desk: Desk) -> None:
    QGuiApplication.clipboard().setText("before")
    desk.canvas.cut_requested.emit(("a", "b"))
    assert {block.id for block in desk.model.blocks} == {"x", "out", "relu", "add"}
    piece = blocks_from_clipboard()
    assert piece is not None and len(piece.blocks) == 2
    blocks_to_clipboard(Model())
    assert blocks_from_clipboard() is None


def test_a_block_is_dragged_from_the_palette_to_the_canvas(desk: Desk, bench, qtbot) -> None:
    done: list[Any] = []
    page = ModelPage()
    qtbot.addWidget(page)
    page.canvas.ghost = lambda *where: done.append(("ghost", *where))
    page.canvas.drop = lambda *where: done.append(("drop", *where))
    page.canvas.end_ghost = lambda: done.append("end")
    ModelPresenter(bench, page, bench.window)
    palette, point = page.block_palette, QPointF(3, 4).toPoint()
    palette.drag_moved.emit("nn.ReLU", point)
    palette.drag_dropped.emit("nn.ReLU", point)
    palette.drag_cancelled.emit()
    assert done == [("ghost", "nn.ReLU", point), ("drop", "nn.ReLU", point), "end"]


def test_words_on_the_size_go_while_other_code_is_worked_on(desk: Desk, bench) -> None:
    bench.store.take(model_snapshot(revision=bench.store.revision, parameters=5))
    assert bench.window.totals == "0 blocks · 5 parameters · 0 B"
    bench.store.set_project(replace(bench.project, subject=ConsoleSubject("net")))
    assert bench.window.totals == ""


def test_in_an_empty_project_nothing_is_wrong_yet(desk: Desk, bench) -> None:
    shown: list[int] = []
    desk.page.show_problems = lambda problems, model: shown.append(len(problems))
    bench.store.take(model_snapshot(revision=bench.store.revision, problems=(Problem("Wrong."),)))
    bench.store.set_project(replace(bench.project, model=Model()))
    bench.store.take(model_snapshot(revision=bench.store.revision, problems=(Problem("Wrong."),)))
    assert shown[0] == 1 and shown[-1] == 0


# -- the first page --------------------------------------------------------------------------------


def saved(folder: Path, **changes: Any) -> str:
    path = str(folder / "net.tlab")
    view = ViewState(workspace="model", canvas_zoom=0.5, canvas_center=(3.0, 4.0))
    files.save(replace(Project(model=SMALL_MODEL, view=view), **changes), path)
    return path


def test_the_page_that_is_painted_first_has_the_blocks(qtbot, tmp_path: Path) -> None:
    found = first_page(saved(tmp_path), QByteArray())
    assert found is not None
    page, view = found
    qtbot.addWidget(page)
    assert set(page.canvas.model_scene.blocks) == {block.id for block in SMALL_MODEL.blocks}
    assert (view.canvas_zoom, view.canvas_center) == (0.5, (3.0, 4.0))


def test_what_shows_something_else_first_has_no_first_page(qtbot, tmp_path: Path) -> None:
    train = ViewState(workspace="train")
    for changes in ({"view": train}, {"subject": ConsoleSubject("net")}):
        assert first_page(saved(tmp_path, **changes), QByteArray()) is None
    assert first_page(str(tmp_path / "gone.tlab"), QByteArray()) is None


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (ViewState(), "fit"),
        (ViewState(canvas_zoom=2.0), (2.0, 0.0, 0.0)),
        (ViewState(canvas_center=(3.0, 4.0)), (1.0, 3.0, 4.0)),
    ],
)
def test_a_canvas_is_shown_whole_until_it_was_seen(view: ViewState, expected: Any) -> None:
    class Canvas:
        shown: Any = None

        def fit(self) -> None:
            self.shown = "fit"

        def set_view(self, *view: float) -> None:
            self.shown = view

    canvas = Canvas()
    show_view(canvas, view)  # pyright: ignore[reportArgumentType]
    assert canvas.shown == expected
