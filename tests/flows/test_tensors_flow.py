"""The Tensors workspace by mouse and keys: cells, variables, one selection, cells kept."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QLineEdit, QPushButton, QWidget

from app.application import Application
from app.window.tensors_page import TensorsPage
from engine.protocol import LocationSnapshot, StorageSnapshot, VariablesSnapshot
from tests.gestures import click, click_button, press_key, type_text
from widgets.operations.step_card import NOT_CHECKED

pytestmark = pytest.mark.one_program


class Desk:
    """The workspace and a person at it; every gesture is let through to its end."""

    def __init__(self, program: Application) -> None:
        self.program = program
        program.window.show_workspace("tensors")
        page = program.window.page("tensors")
        assert isinstance(page, TensorsPage)
        self.page = page
        self.settle()

    def settle(self) -> None:
        self.program.bench.link.drain()

    def type(self, *lines: str) -> None:
        for line in lines:
            type_text(self.page.console.input, line)
            press_key(self.page.console.input, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
            self.settle()

    def go_to(self, tab: QWidget) -> None:
        self.page.tabs.setCurrentWidget(tab)
        self.settle()

    def names(self) -> list[str]:
        return [variable.name for variable in self.page.variables.model.variables]

    def text(self, name: str) -> str:
        return self.page.findChild(QLabel, name).text()

    def output(self) -> str:
        return self.page.console.output.toPlainText()

    def kept(self) -> list[str]:
        return [cell.source for cell in self.program.bench.store.project.cells]

    def newest(self, kind: type):
        return self.program.bench.store.newest(kind)


@pytest.fixture
def desk(program) -> Desk:
    return Desk(program)


def test_what_is_typed_runs_and_its_tensor_is_shown(desk):
    desk.type("x = torch.arange(6.).view(2, 3)", "x.sum()")
    assert desk.names() == ["x"]
    assert desk.page.variables.selected == "x"
    assert desk.text("tensor_facts").startswith("(2, 3) · float32 · cpu · 24 B")
    assert "tensor(15.)" in desk.output()


def test_the_form_makes_a_tensor_by_a_line_that_stands_in_the_console(desk):
    desk.program.window.show_workspace("train")
    desk.program.bench.actions["tensors.create"].trigger()
    form = desk.page.create_form
    assert form.factory_box.hasFocus()
    form.choose("eye")
    line = form.source
    click(form.create_button)
    desk.settle()
    assert "torch.eye" in line and desk.kept() == [line]
    assert line in desk.output()
    assert [desk.program.workspaces.tensors.expression] == desk.names()


def test_a_new_tensor_comes_into_sight_and_a_name_typed_leads_elsewhere(desk):
    desk.type("net = nn.Linear(2, 1)", "x = torch.zeros(3)", "x[0] = 1")
    assert desk.program.workspaces.tensors.expression == "x"
    desk.program.bench.actions["tensors.show"].trigger()
    field = desk.page.findChild(QLineEdit, "tensor_expression")
    assert field.hasFocus()
    type_text(field, "net.weight")
    press_key(field, Qt.Key.Key_Return)
    desk.go_to(desk.page.storage)
    shown = desk.newest(StorageSnapshot)
    assert (shown.expression, shown.shape) == ("net.weight", (1, 2))
    desk.type("del net")
    assert desk.program.workspaces.tensors.expression == "x"


def test_a_name_that_is_not_there_says_so_and_is_shown_once_it_is(desk):
    desk.go_to(desk.page.storage)
    desk.program.workspaces.tensors.select("later")
    desk.settle()
    desk.type("later = torch.ones(2)")
    assert desk.newest(StorageSnapshot).expression == "later"


def test_a_module_is_told_from_a_tensor(desk):
    desk.type("x = torch.ones(2)", "net = nn.Linear(2, 1)")
    desk.go_to(desk.page.values)
    desk.program.workspaces.tensors.select("net")
    desk.settle()
    assert desk.page.values.slice_bar.isHidden()
    assert desk.text("tensor_facts").startswith("Linear")
    desk.program.workspaces.tensors.select("net.weight")
    desk.settle()
    assert desk.page.values.slice_bar.isVisible()
    assert desk.page.values.table.text_at(0, 1) is not None


def test_names_are_completed_from_live_objects(desk):
    desk.type("counts = torch.ones(2)")
    editor = desk.page.console.input
    type_text(editor, "coun")
    press_key(editor, Qt.Key.Key_Tab)
    desk.settle()
    assert editor.source() == "counts"


def test_writing_to_a_slice_shows_in_the_storage_of_both(desk):
    desk.type("x = torch.zeros(2, 3)", "y = x[1]")
    desk.go_to(desk.page.storage)
    desk.type("y[2] = 5")
    assert desk.program.workspaces.tensors.expression == "y"
    shown = desk.newest(StorageSnapshot)
    assert (shown.offset, shown.values[5 - shown.first]) == (3, "5")
    numbers = {v.name: v.storage for v in desk.newest(VariablesSnapshot).variables}
    assert numbers["x"] == numbers["y"]


def test_an_element_typed_into_the_table_runs_as_python_and_changes_all_who_share_it(desk):
    desk.type("x = torch.zeros(2, 3)", "y = x[1]")
    desk.go_to(desk.page.values)
    table = desk.page.values.table
    click(table.viewport(), table.cell_rect(0, 2).center())
    assert desk.text("tensor_element") == "y[2]"
    press_key(table, Qt.Key.Key_F2)
    editor = table.findChild(QLineEdit, "cell_editor")
    editor.selectAll()
    type_text(editor, "5")
    press_key(editor, Qt.Key.Key_Return)
    desk.settle()
    assert desk.kept()[-1] == "y[2] = 5.0"
    assert table.text_at(0, 2) == "5"
    assert desk.program.workspaces.tensors.element == (2,)
    desk.program.workspaces.tensors.select("x")
    desk.settle()
    assert [table.text_at(1, column) for column in range(3)] == ["0", "0", "5"]


def test_one_element_is_lit_in_values_and_storage_at_once(desk):
    desk.type("x = torch.arange(12.).view(3, 4)", "t = x.T")
    desk.go_to(desk.page.storage)
    desk.page.storage.strip.cell_chosen.emit(6)
    desk.settle()
    desk.go_to(desk.page.values)
    assert desk.page.values.element() == (2, 1)
    assert desk.page.values.table.selected() == (2, 1)
    desk.page.values.table.cell_selected.emit(3, 2)
    desk.settle()
    desk.go_to(desk.page.storage)
    assert desk.page.storage.strip.cell == 11


def test_an_element_chosen_lights_its_cell_and_names_all_who_read_it(desk):
    desk.type("x = torch.arange(6.).view(2, 3)", "t = x.T")
    desk.go_to(desk.page.storage)
    desk.page.storage.strip.cell_chosen.emit(5)
    desk.settle()
    assert desk.program.workspaces.tensors.element == (2, 1)
    assert desk.text("tensor_element") == "t[2, 1]"
    readers = {r.expression: r.elements for r in desk.newest(LocationSnapshot).readers}
    assert readers == {"t": ((2, 1),), "x": ((1, 2),)}
    desk.page.storage.reader_activated.emit("x", (1, 2))
    desk.settle()
    assert desk.program.workspaces.tensors.expression == "x"
    assert desk.text("tensor_element") == "x[1, 2]"
    assert desk.page.variables.selected == "x"


def test_an_operation_is_told_checked_and_run_from_one_line(desk):
    desk.type("x = torch.arange(6.).view(2, 3)", "t = x.T")
    view = desk.page.operation
    desk.go_to(view)
    item = view.list.item_of("reshape")
    place = view.list.visualItemRect(item).center()
    click(view.list.viewport(), place)
    desk.settle()
    assert view.line.text() == "y = t.reshape(-1)"
    assert [card.mark.word for card in view.cards] == ["COPY"]
    assert view.cards[0].table.text("shape", "prediction") == "(6,)"
    click(view.check_button)
    desk.settle()
    assert view.cards[0].table.text("stride", "PyTorch") == "(1,)"
    assert view.verdict.text() == "✓ PyTorch does what was predicted."
    assert desk.names() == ["x", "t"]
    click(view.run_button)
    desk.settle()
    assert desk.names() == ["x", "t", "y"] and desk.kept()[-1] == "y = t.reshape(-1)"
    assert view.line.text() == "y = t.reshape(-1)" and view.verdict.isVisible()
    view.line.selectAll()
    type_text(view.line, "t.view(-1)")
    press_key(view.line, Qt.Key.Key_Return)
    desk.settle()
    assert view.cards[0].mark.word == "REFUSED"
    assert view.cards[0].words.text().startswith("RuntimeError: view size is not compatible")


def test_an_element_that_is_gone_is_let_go(desk):
    desk.type("x = torch.zeros(4)")
    desk.program.workspaces.tensors.select("x", (3,))
    desk.type("x = torch.zeros(2)")
    assert desk.program.workspaces.tensors.element is None
    assert desk.page.findChild(QLabel, "tensor_element").isHidden()


def test_cells_that_ran_well_are_kept_and_run_again_on_the_users_word(desk, answers, tmp_path):
    desk.type("x = torch.ones(2)", "x.nonsense", "x += 1")
    assert desk.kept() == ["x = torch.ones(2)", "x += 1"]
    answers.save = str(tmp_path / "cells.tlab")
    desk.program.bench.actions["file.save"].trigger()
    desk.program.bench.link.restart()
    desk.settle()
    assert desk.names() == []
    banner = desk.program.window.banners.banner("cells")
    assert "went with the engine" in banner.title
    banner.findChild(QPushButton, "banner_run_again").click()
    desk.settle()
    assert desk.names() == ["x"]
    desk.type("print(x)")
    assert "tensor([2., 2.])" in desk.output()
    assert desk.kept() == ["x = torch.ones(2)", "x += 1", "print(x)"]


def test_a_project_with_cells_runs_nothing_by_itself(program, answers, tmp_path):
    desk = Desk(program)
    desk.type("x = 1", "y = x / 0", "z = 3")
    answers.save = str(tmp_path / "cells.tlab")
    program.bench.actions["file.save"].trigger()
    program.bench.actions["file.new"].trigger()
    assert program.window.banners.banner("cells") is None
    assert not program.bench.actions["tensors.run_again"].isEnabled()
    program.bench.link.restart()
    program.bench.files.open(answers.save)
    program.window.show_workspace("model")
    desk.settle()
    assert program.window.banners.banner("cells") is not None
    assert desk.names() == []
    program.bench.actions["tensors.run_again"].trigger()
    desk.settle()
    assert program.window.workspace == "tensors"
    assert program.window.banners.banner("cells") is None
    assert desk.names() == ["x", "z"]


def test_running_again_ends_at_the_first_cell_that_fails(desk, tmp_path):
    path = tmp_path / "there"
    path.write_text("")
    desk.type(f"open({str(path)!r}).close()", "x = 1")
    path.unlink()
    desk.program.bench.link.restart()
    desk.program.bench.actions["tensors.run_again"].trigger()
    desk.settle()
    assert desk.names() == []
    assert "FileNotFoundError" in desk.output()


def test_cells_are_forgotten_after_asking(desk, answers, monkeypatch):
    desk.type("x = 1")
    asked: list[str] = []
    monkeypatch.setattr(answers, "confirm", lambda *args: bool(asked.append(args[1])))
    desk.program.bench.actions["tensors.forget_cells"].trigger()
    assert desk.kept() == ["x = 1"] and "one cell" in asked[0]
    monkeypatch.setattr(answers, "confirm", lambda *_: True)
    desk.program.bench.actions["tensors.forget_cells"].trigger()
    assert desk.kept() == []
    assert desk.names() == ["x"]


def test_a_python_file_is_run_cell_by_cell(desk, answers, tmp_path):
    path = tmp_path / "lesson.py"
    path.write_text("# %% first\nx = torch.ones(2)\n# %% second\ny = x * 2\n")
    answers.open = str(path)
    desk.program.bench.actions["tensors.open_file"].trigger()
    desk.page.console.file.run_rest_requested.emit()
    desk.settle()
    assert desk.names() == ["x", "y"]
    assert len(desk.kept()) == 2
    answers.open = str(tmp_path / "none.py")
    desk.program.bench.actions["tensors.open_file"].trigger()
    assert "none.py cannot be read" in desk.program.window.statusBar().currentMessage()


def test_console_and_tensor_are_reached_by_keys_from_anywhere(desk):
    desk.program.window.show_workspace("train")
    desk.program.bench.actions["tensors.console"].trigger()
    assert desk.program.window.workspace == "tensors"
    assert desk.page.console.input.hasFocus()


def test_without_an_engine_a_cell_is_not_lost_silently(desk):
    desk.program.bench.link.close()
    desk.type("x = 1")
    assert "There is no engine" in desk.output()
    assert not desk.page.console.busy


def test_the_start_page_leads_here(program):
    click_button(program.window.page("start"), "start_tensors_tensors.console")
    assert program.window.workspace == "tensors"


# -- another project, another engine -------------------------------------------------------------


def test_another_project_begins_with_a_fresh_namespace(desk, answers, tmp_path):
    desk.type("x = torch.arange(6.).view(2, 3)")
    desk.go_to(desk.page.operation)
    desk.page.operation.line.setFocus()
    type_text(desk.page.operation.line, "x.T")
    desk.page.operation.refresh()
    desk.settle()
    assert desk.page.operation.cards[0].isVisible()
    answers.save = str(tmp_path / "first.tlab")
    desk.program.bench.actions["file.save"].trigger()
    desk.program.bench.actions["file.new"].trigger()
    assert desk.names() == []
    desk.settle()
    assert desk.names() == [] and desk.program.workspaces.tensors.expression == ""
    assert desk.output() == ""
    assert desk.page.operation.source == "" and not desk.page.operation.cards[0].isVisible()
    desk.type("x")
    assert "NameError: name 'x' is not defined" in desk.output()
    assert desk.kept() == []
    desk.program.bench.files.open(answers.save)
    desk.settle()
    assert desk.names() == []
    desk.program.bench.actions["tensors.run_again"].trigger()
    desk.settle()
    assert desk.names() == ["x"]


def test_the_cell_in_hand_of_another_project_is_not_heard_of_any_more(desk):
    desk.page.console.submit("x = 1")
    desk.page.console.submit("y = 2")
    desk.program.bench.actions["file.new"].trigger()
    desk.settle()
    assert desk.names() == [] and desk.output() == "" and not desk.page.console.busy
    assert desk.kept() == []
    desk.type("z = 3")
    assert desk.names() == ["z"]


@pytest.mark.own_program
def test_cells_that_run_again_are_not_remembered_twice(desk):
    desk.type("x = 1", "y = 2")
    desk.program.bench.link.restart()
    desk.program.bench.actions["tensors.run_again"].trigger()
    desk.settle()
    assert desk.names() == ["x", "y"]
    assert desk.page.console.history.entries == ["x = 1", "y = 2"]


def test_what_was_told_of_a_line_goes_with_the_engine_and_comes_back_with_its_tensors(desk):
    desk.type("x = torch.arange(6.).view(2, 3)")
    view = desk.page.operation
    desk.go_to(view)
    type_text(view.line, "x.T")
    view.refresh()
    desk.settle()
    assert view.cards[0].isVisible()
    desk.program.bench.link.close()
    assert not view.cards[0].isVisible()
    assert view.note.text().startswith("The engine has ended")
    assert view.line.text() == "x.T" and not view.check_button.isEnabled()
    desk.program.bench.link.start()
    desk.program.bench.actions["tensors.run_again"].trigger()
    desk.settle()
    assert view.cards[0].isVisible() and view.note.isHidden()


@pytest.mark.parametrize(
    ("room", "field", "grid"),
    [
        ("broadcast", "operand_a", "result_cells"),
        ("reduction", "reduction_expression", "result_cells"),
        ("product", "operand_a", "result_cells"),
        ("pick", "pick_source", "source_cells"),
    ],
)
def test_no_picture_outlives_the_engine_that_it_was_read_from(desk, room, field, grid):
    desk.type("x = torch.arange(9.).view(3, 3)")
    view = getattr(desk.page, room)
    desk.go_to(view)
    typed = "x[0]" if room == "pick" else "x"
    for name in (field, field.replace("_a", "_b")):
        view.findChild(QLineEdit, name).setText(typed)
    desk.settle()
    run, hint = view.findChild(QPushButton, "shape_run"), view.findChild(QLabel, "shape_hint")
    assert getattr(view, grid).isVisible() and run.isEnabled()
    desk.program.bench.link.close()
    assert not getattr(view, grid).isVisible() and not run.isEnabled()
    assert hint.text().startswith("The engine has ended")
    assert view.findChild(QLineEdit, field).text() == typed
    desk.program.bench.link.start()
    desk.program.bench.actions["tensors.run_again"].trigger()
    desk.settle()
    assert getattr(view, grid).isVisible() and run.isEnabled() and hint.isHidden()


def test_shapes_that_were_typed_are_explained_again_by_the_next_engine(desk):
    view = desk.page.broadcast
    desk.go_to(view)
    desk.program.bench.link.close()
    hint = view.findChild(QLabel, "shape_hint")
    assert hint.isVisible() and hint.y() == 0 and not view.result_cells.isVisible()
    desk.program.bench.link.start()
    desk.settle()
    assert view.result_cells.isVisible() and hint.isHidden()


# -- what torch refuses --------------------------------------------------------------------------


def test_the_operands_of_an_error_are_drawn_in_the_console_and_on_the_card(desk):
    desk.type("x = torch.zeros(3, 4)", "x @ x")
    (picture,) = desk.page.console.output.pictures()
    assert picture.isVisible() and picture.failed.kind == "product"
    assert [row.failing for row in picture.failed.operands] == [(1,), (0,)]
    view = desk.page.operation
    desk.go_to(view)
    type_text(view.line, "x + torch.ones(3)")
    view.refresh()
    desk.settle()
    card = view.cards[0]
    assert card.operands.isVisible() and card.words.text() == NOT_CHECKED
    predicted = card.operands.failed
    press_key(view.line, Qt.Key.Key_Return)
    desk.settle()
    assert card.words.text().startswith("RuntimeError")
    assert card.operands.failed == predicted and predicted.kind == "broadcast"
    view.line.selectAll()
    type_text(view.line, "x.T")
    view.refresh()
    desk.settle()
    assert not card.operands.isVisible()


def test_tab_inside_a_call_offers_its_parameters(desk):
    desk.type("x = torch.zeros(2, 3)")
    editor = desk.page.console.input
    type_text(editor, "torch.cat([x, x], ")
    press_key(editor, Qt.Key.Key_Tab)
    desk.settle()
    assert editor.popup.texts()[:2] == ["dim=", "out="]
    press_key(editor, Qt.Key.Key_Return)
    type_text(editor, "1).sh")
    press_key(editor, Qt.Key.Key_Tab)
    desk.settle()
    assert "shape" in editor.popup.texts()
    press_key(editor, Qt.Key.Key_Tab)
    assert editor.source() == "torch.cat([x, x], dim=1).shape"
