"""The form of deterministic mode, torch.compile and activation checkpointing."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QLineEdit, QPushButton, QToolButton

from engine.project import edits
from engine.project.document import Project, TrainingSetup, replace
from engine.protocol import StepBytes, StepMemorySnapshot
from widgets.forms import ParamForm
from widgets.training.settings.execution_form import ExecutionForm

MIB = 2**20


@pytest.fixture
def form(qtbot) -> ExecutionForm:
    form = ExecutionForm()
    qtbot.addWidget(form)
    form.show()
    form.told = []
    form.setup_edited.connect(lambda setup, words: form.told.append((setup, words)))
    return form


def part(form: ExecutionForm, kind: type, name: str):
    found = form.findChild(kind, name)
    assert found is not None
    return found


@pytest.mark.parametrize("name", ["deterministic", "compile"])
def test_a_switch_is_edited_and_the_document_takes_it(form: ExecutionForm, name: str) -> None:
    form.show_setup(TrainingSetup())
    part(form, ParamForm, "setup_execution_form").field(name).committed.emit(True)
    setup = replace(TrainingSetup(), **{name: True})
    assert form.told == [(setup, f"Set {name} to True")]
    assert edits.set_training(Project(), setup).training == setup


def test_modules_are_added_and_removed(form: ExecutionForm, qtbot) -> None:
    field = part(form, QLineEdit, "setup_recomputed_module")
    qtbot.keyClicks(field, " encoder1 ")
    qtbot.keyClick(field, Qt.Key.Key_Return)
    setup = TrainingSetup(recomputed=("encoder1",))
    assert form.told == [(setup, "Compute encoder1 again in backward")]
    assert edits.set_training(Project(), setup).training == setup
    form.show_setup(setup)
    assert field.text() == ""
    qtbot.keyClicks(field, "encoder1\r")  # it is there already
    assert len(form.told) == 1
    part(form, QToolButton, "setup_recomputed_encoder1_remove").click()
    assert form.told[-1] == (TrainingSetup(), "Keep the activations of encoder1")
    form.show_setup(TrainingSetup())
    assert not [label for label in form.findChildren(QLabel) if label.text() == "encoder1"
                and label.isVisible()]  # fmt: skip
    with pytest.raises(edits.EditError, match="again already"):
        edits.set_training(Project(), TrainingSetup(recomputed=("a", "a")))


def test_the_memory_is_asked_for_and_told_without_and_with_computing_again(
    form: ExecutionForm, qtbot
) -> None:
    found = StepMemorySnapshot(
        samples=64,
        without=StepBytes(2 * MIB, 8 * MIB),
        predicted=StepBytes(1 * MIB, 5 * MIB),
        measured=StepBytes(1 * MIB, 4 * MIB),
    )
    with qtbot.waitSignal(form.measure_asked):
        part(form, QPushButton, "setup_measure_step").click()
    words = part(form, QLabel, "setup_step_memory")
    form.show_memory(found)
    assert words.text() == "Peak of a batch of 64: 8 MiB, of which 2 MiB are kept for backward."
    form.show_setup(TrainingSetup(recomputed=("a",)))
    assert words.isHidden()  # it was about other modules
    form.show_memory(found)
    assert words.text().endswith(
        "With computing again: 4 MiB (predicted 5 MiB), kept 1 MiB (predicted 1 MiB)."
    )
    form.show_words("A run is under way.", "error")
    assert words.property("role") == "error"
