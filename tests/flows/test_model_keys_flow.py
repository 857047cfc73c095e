"""The keyboard in the Model workspace, across canvas, properties and undo."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from engine.project import edits
from tests.gestures import press_key, type_text

pytestmark = pytest.mark.one_program

CONTROL = Qt.KeyboardModifier.ControlModifier
SHIFT = Qt.KeyboardModifier.ShiftModifier


@pytest.fixture
def page(program, qtbot):
    """The Model page with a Linear, selected, and a ReLU."""
    program.window.show_workspace("model")
    page = program.window.page("model")
    for kind in ("nn.Linear", "nn.ReLU"):
        page.block_palette.block_chosen.emit(kind)
    program.bench.link.drain()
    page.canvas.select(["b1"])
    page.canvas.setFocus()
    program.window.activateWindow()
    qtbot.waitUntil(page.canvas.hasFocus)
    return page


def features(program) -> int:
    block = program.bench.project.model.block("b1")
    return block.params["out_features"]


def test_undo_works_while_the_edited_field_has_the_focus(program, page):
    field = page.properties.form.field("out_features")
    before = features(program)
    field.setFocus()
    field.selectAll()
    type_text(field, "12")
    press_key(field, Qt.Key.Key_Return)
    assert features(program) == 12 and field.hasFocus()
    press_key(field, Qt.Key.Key_Z, CONTROL)
    assert features(program) == before and field.text_value() == str(before)
    press_key(field, Qt.Key.Key_Z, CONTROL | SHIFT)
    assert features(program) == 12 and field.text_value() == "12"


def test_undo_takes_back_typed_text_before_it_takes_back_edits(program, page):
    field = page.properties.form.field("out_features")
    before = program.bench.project
    field.setFocus()
    press_key(field, Qt.Key.Key_End)
    type_text(field, "7")
    press_key(field, Qt.Key.Key_Z, CONTROL)
    assert field.text_value() == str(features(program))
    assert program.bench.project is before


def test_undo_takes_a_rename_back_while_the_name_has_the_focus(program, page):
    name = page.properties.name
    name.setFocus()
    name.selectAll()
    type_text(name, "head")
    press_key(name, Qt.Key.Key_Return)
    assert program.bench.project.model.block("b1").name == "head"
    press_key(name, Qt.Key.Key_Z, CONTROL)
    assert program.bench.project.model.block("b1").name == "linear1" and name.text() == "linear1"


def test_enter_on_a_block_edits_its_properties_and_esc_leads_back(program, page):
    page.properties_dock.hide()
    press_key(page.canvas, Qt.Key.Key_Return)
    field = page.properties.form.field("in_features")
    assert QApplication.focusWidget() in (field, field.lineEdit())
    assert field.lineEdit().selectedText() == field.text_value()
    press_key(field, Qt.Key.Key_Escape)
    assert page.canvas.hasFocus()
    page.canvas.select(["b2"])
    page.canvas.activate_selected()
    assert page.properties.isAncestorOf(QApplication.focusWidget())


def test_f2_renames_the_selected_block_on_the_canvas(program, page):
    press_key(page.canvas, Qt.Key.Key_F2)
    editor = page.canvas.name_editor
    assert editor.isVisible() and editor.hasFocus() and editor.selectedText() == "linear1"
    type_text(editor, "head")
    press_key(editor, Qt.Key.Key_Return)
    assert program.bench.project.model.block("b1").name == "head"
    assert not editor.isVisible() and page.canvas.hasFocus()
    program.bench.actions["edit.undo"].trigger()
    assert program.bench.project.model.block("b1").name == "linear1"


def test_esc_keeps_the_name_and_a_wrong_name_keeps_the_editor_open(program, page):
    editor = page.canvas.name_editor
    page.canvas.rename_selected()
    type_text(editor, "1 2")
    press_key(editor, Qt.Key.Key_Return)
    assert editor.isVisible() and editor.toolTip()
    press_key(editor, Qt.Key.Key_Escape)
    assert not editor.isVisible()
    assert program.bench.project.model.block("b1").name == "linear1"


def test_a_taken_name_is_refused_on_the_canvas_in_words(program, page):
    page.canvas.rename_selected()
    type_text(page.canvas.name_editor, "relu1")
    press_key(page.canvas.name_editor, Qt.Key.Key_Return)
    assert program.bench.project.model.block("b1").name == "linear1"
    assert "relu1" in page.canvas.note.text


def test_a_double_click_on_the_title_renames(program, page):
    canvas = page.canvas
    box = canvas.mapFromScene(canvas.model_scene.blocks["b2"].rect()).boundingRect()
    point = QPoint(box.center().x(), box.top() + 10)
    QTest.mouseDClick(canvas.viewport(), Qt.MouseButton.LeftButton, pos=point)
    assert canvas.name_editor.isVisible() and canvas.name_editor.text() == "relu1"
    type_text(canvas.name_editor, "squash")
    canvas.setFocus()
    assert program.bench.project.model.block("b2").name == "squash"


def test_an_edit_that_removes_the_block_ends_its_renaming(program, page):
    page.canvas.rename_selected()
    program.bench.edit("Delete", lambda project: edits.remove(project, ["b1"], ()))
    assert not page.canvas.name_editor.isVisible()
