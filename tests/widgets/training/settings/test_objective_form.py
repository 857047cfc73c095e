"""The form of what code is trained for."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from engine.project.subject import Objective
from engine.protocol import StepSnapshot
from tests.pictures import assert_same_picture
from widgets import make
from widgets.training.settings.objective_form import ObjectiveForm

USUAL = StepSnapshot(
    task="regression", source="def step(batch):\n    return 1\n", batch="float32 (4,)"
)


@pytest.fixture
def form(qtbot) -> ObjectiveForm:
    form = ObjectiveForm()
    form.around = make.page(form, form.of_step)
    qtbot.addWidget(form.around)
    form.around.show()
    form.edits = []
    form.edited.connect(lambda objective, text: form.edits.append((objective, text)))
    return form


def test_fields_emit_the_whole_objective(form, qtbot):
    form.show_objective(Objective("a", "", "def step(batch): ...\n"))
    form.data.setText(" loader ")
    form.data.editingFinished.emit()
    form.validation.setText("held")
    form.validation.editingFinished.emit()
    assert form.edits == [
        (Objective("loader", "", "def step(batch): ...\n"), "Set the data to loader"),
        (Objective("a", "held", "def step(batch): ...\n"), "Set the validation data to held"),
    ]
    form.edits.clear()
    form.data.setText("a")
    form.data.editingFinished.emit()
    assert form.edits == []  # as it is


def test_the_step_is_taken_over_by_its_key_and_by_leaving_and_left_by_escape(form, qtbot):
    form.show_objective(Objective("a"))
    form.show_usual_step(USUAL)
    form.step.left.emit()
    assert form.edits == []  # the written step is nobody's edit
    form.step.setPlainText("def step(batch):")
    cursor = form.step.textCursor()
    cursor.movePosition(cursor.MoveOperation.End)
    form.step.setTextCursor(cursor)
    qtbot.keyClick(form.step, Qt.Key.Key_Return)
    qtbot.keyClick(form.step, Qt.Key.Key_Tab)
    qtbot.keyClicks(form.step, "return 2")
    assert form.step.toPlainText() == "def step(batch):\n    return 2"
    assert form.edits == []
    qtbot.keyClick(form.step, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert form.edits == [
        (Objective("a", step="def step(batch):\n    return 2\n"), "Edit the step")
    ]
    form.step.setPlainText("lost")
    qtbot.keyClick(form.step, Qt.Key.Key_Escape)
    assert form.step.toPlainText() == USUAL.source
    form.step.setPlainText("  \n")
    form.edits.clear()
    form.step.left.emit()
    assert form.edits == [(Objective("a"), "Edit the step")]  # an empty step is the written one


def test_an_own_step_stays_when_a_usual_one_comes(form):
    own = Objective("a", step="def step(batch):\n    return 3\n")
    form.show_objective(own)
    form.show_usual_step(USUAL)
    assert form.step.toPlainText() == own.step
    assert form._words.text() == "Your step. The first batch is float32 (4,)."
    assert form._usual_button.isVisible()
    form._usual_button.click()
    assert form.edits == [(Objective("a"), "Use the written step")]
    form.show_objective(Objective("a"))
    assert form.step.toPlainText() == USUAL.source and not form._usual_button.isVisible()


def test_other_data_forgets_the_step_that_was_written(form):
    form.show_objective(Objective("a"))
    form.show_usual_step(USUAL)
    form.data.setText("b")
    form.data.editingFinished.emit()
    form.show_objective(Objective("b"))
    assert form.step.toPlainText() == ""
    form.show_usual_step(USUAL)
    form.show_objective(Objective())  # another subject has no data yet
    assert form.step.toPlainText() == ""


def test_a_step_of_the_code_itself_is_told(form):
    form.show_objective(Objective("a"))
    form.show_usual_step(StepSnapshot(task="", source="", batch="float32 (4,)"))
    assert form._words.text() == "Your code's own step is used. The first batch is float32 (4,)."
    assert form.step.placeholderText().startswith("The step of your code.")
    form.show_usual_step(USUAL)
    assert form.step.placeholderText().startswith("def step(batch):")


def test_names_are_completed(form):
    form.offer_names(["loader", "held"])
    model = form.data.completer().model()
    assert [model.data(model.index(row, 0)) for row in range(model.rowCount())] == [
        "loader",
        "held",
    ]


def test_the_names_are_listed_to_choose_from_and_a_choice_is_an_edit(form, qtbot):
    (choose,) = form.data.actions()
    assert not choose.isVisible()
    form.offer_names(["loader", "held", "x"])
    assert choose.isVisible()
    form.data.setFocus()
    choose.trigger()
    completer = form.data.completer()
    assert completer.popup().isVisible() and completer.completionCount() == 3
    qtbot.keyClick(completer.popup(), Qt.Key.Key_Down)
    qtbot.keyClick(completer.popup(), Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: bool(form.edits), timeout=10_000)
    assert form.edits == [(Objective("loader"), "Set the data to loader")]
    form.offer_names([])
    assert form.data.placeholderText() == "such as loader, data.py:loader"


def test_the_data_is_of_the_code_or_a_data_set(form):
    form.show_objective(Objective("a", "held"))
    assert form.source.currentText() == "of my code" and form.data.isVisible()
    form.source.setCurrentIndex(1)
    form.source.activated.emit(1)
    of_setup = Objective("a", "held", of_setup=True)
    assert form.edits == [(of_setup, "Train on a data set")]
    form.show_objective(of_setup)
    assert not form.data.isVisible() and not form.validation.isVisible()
    form.show_usual_step(USUAL)
    assert form.step.toPlainText() == USUAL.source
    form.source.activated.emit(1)
    assert len(form.edits) == 1  # as it is
    form.source.setCurrentIndex(0)
    form.source.activated.emit(0)
    assert form.edits[1:] == [(Objective("a", "held"), "Train on data of the code")]
    form.show_objective(Objective("a", "held"))  # the names are there again
    assert form.data.isVisible() and form.data.text() == "a"
    assert form.step.toPlainText() == ""


@pytest.mark.parametrize("has_step", [False, True])
def test_pictures(form, has_step):
    form.around.resize(320, 460)
    form.offer_names(["loader", "held", "more"])
    form.show_objective(Objective("loader", "", "def step(batch): ...\n" * has_step))
    form.show_usual_step(USUAL)
    assert_same_picture(form.around, f"objective_form_{'own' if has_step else 'usual'}_step")
