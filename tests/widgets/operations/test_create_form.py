"""The form that makes a tensor: fields, the line that they give, and faults said at their field."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel

from engine.project.factories import FACTORIES
from engine.protocol import Variable, VariablesSnapshot
from tests.pictures import assert_same_picture
from tests.words import assert_same_words
from widgets.operations.create_form import CreateForm


@pytest.fixture
def form(qtbot):
    form = CreateForm()
    qtbot.addWidget(form)
    form.resize(400, 560)
    form.show()
    return form


def test_typing_shows_the_line_and_create_asks_to_run_it(form, qtbot):
    form.choose("zeros")
    size = form.editors["size"]
    size.selectAll()
    QTest.keyClicks(size, "4, 5")
    assert form.source == "x = torch.zeros(4, 5)"
    with qtbot.waitSignal(form.run_requested) as asked:
        QTest.mouseClick(form.create_button, Qt.MouseButton.LeftButton)
    assert asked.args == ["x = torch.zeros(4, 5)"]
    with qtbot.waitSignal(form.run_requested):
        QTest.keyClick(size, Qt.Key.Key_Return)


def test_a_fault_stands_under_its_field_and_nothing_can_be_run(form, qtbot):
    form.choose("zeros")
    size = form.editors["size"]
    QTest.keyClicks(size, ", q")
    assert "whole numbers" in form.error("size")
    assert (form.source, form.create_button.isEnabled()) == ("", False)
    with qtbot.assertNotEmitted(form.run_requested):
        QTest.keyClick(size, Qt.Key.Key_Return)
    for _ in range(3):
        QTest.keyClick(size, Qt.Key.Key_Backspace)
    assert (form.error("size"), form.source) == ("", "x = torch.zeros(2, 3)")


def test_what_was_typed_stays_when_the_function_changes(form):
    form.choose("zeros")
    form.editors["size"].setText("7")
    form.editors["dtype"].setCurrentText("float64")
    form.choose("rand")
    assert form.source == "x = torch.rand(7, dtype=torch.float64)"


def test_variables_are_offered_and_a_free_name_proposed(form):
    form.choose("ones_like")
    assert "Create a tensor first" in form.error("input")
    form.show_variables(
        VariablesSnapshot(
            variables=(
                Variable("x", "tensor", "Tensor", shape=(2, 3), dtype="float32"),
                Variable("a", "other", "ndarray", shape=(2,), dtype="float64"),
            )
        )
    )
    assert form.source == "y = torch.ones_like(x)"
    form.choose("from_numpy")
    assert form.editors["array"].findText("a") == 0
    form.name_edit.setText("x")
    assert "torch.from_numpy" in form.source
    form.show_variables(VariablesSnapshot(variables=()))
    assert form.name_edit.text() == "x"


def test_devices_are_offered(form):
    form.choose("zeros")
    form.set_devices(("cpu", "cuda:0"))
    form.editors["device"].setCurrentText("cuda:0")
    assert form.source == 'x = torch.zeros(2, 3, device="cuda:0")'


def test_pinning_is_offered_only_with_a_cuda_device(form):
    form.choose("zeros")
    box = form.editors["pin_memory"]
    assert not box.isEnabled() and "no CUDA device" in box.toolTip()
    form.set_devices(("cpu", "cuda:0"))
    assert box.isEnabled() and "no CUDA device" not in box.toolTip()
    box.setChecked(True)
    assert "pin_memory=True" in form.source
    form.set_devices(("cpu",))  # the engine came back without
    assert not box.isChecked() and "pin_memory" not in form.source
    form.choose("randn")
    assert not form.editors["pin_memory"].isEnabled()


def test_the_fields_of_every_factory_fit_into_a_narrow_dock(qtbot):
    form = CreateForm()
    qtbot.addWidget(form)
    form.resize(240, 500)
    form.show()
    for key in FACTORIES:
        form.choose(key)
        qtbot.waitUntil(lambda: form.width() == 240)
        for field in (form.factory_box, form.name_edit, *form.editors.values()):
            assert field.mapTo(form, field.rect().topRight()).x() < 240 - 8, (key, field)


def test_the_form_looks_as_it_did(form, qapp):
    form.choose("full")
    form.editors["size"].setText("2, q")
    qapp.processEvents()
    assert_same_picture(form, "create_form")
    assert_same_words(form, "create_form_filled")


def test_what_was_chosen_stays_when_the_lists_are_filled_anew(form):
    form.choose("zeros_like")
    form.set_devices(("cpu", "cuda:0"))
    variables = tuple(
        Variable(name, "tensor", "Tensor", shape=(2,), dtype="float32") for name in "ab"
    )
    form.show_variables(VariablesSnapshot(variables=variables))
    form.editors["input"].setCurrentText("b")
    form.editors["device"].setCurrentText("cuda:0")
    form.show_variables(VariablesSnapshot(variables=variables[::-1]))
    form.set_devices(("cpu", "mps", "cuda:0"))
    assert form.source == 'x = torch.zeros_like(b, device="cuda:0")'
    form.set_devices(("cpu",))
    assert form.source == "x = torch.zeros_like(b)"
    box = form.editors["device"]
    assert [box.itemText(row) for row in range(box.count())] == ["default", "cpu", "meta"]


def test_a_name_that_exists_is_told_to_be_replaced(form):
    form.show_variables(VariablesSnapshot(variables=(Variable("x", "tensor", "Tensor"),)))
    told = form.findChild(QLabel, "create_replaces")
    assert form.name_edit.text() == "y" and not told.isVisible()
    form.name_edit.setText(" x ")
    assert told.isVisible() and told.text() == "x exists and will be replaced."
    form.name_edit.setText("2x")
    assert not told.isVisible() and form.error("name")


def test_the_proposed_names_go_on_after_the_letters(form):
    names = ["x", "y", "z", "w", "a", "b", "c", "x1"]
    for number, name in enumerate(names):
        taken = tuple(Variable(each, "tensor", "Tensor") for each in names[:number])
        form.show_variables(VariablesSnapshot(variables=taken))
        assert form.name_edit.text() == name


def test_an_unknown_function_cannot_be_chosen(form):
    with pytest.raises(ValueError, match="no factory 'oness'"):
        form.choose("oness")


def test_groups_of_functions_are_parted(form):
    box = form.factory_box
    separators = [row for row in range(box.count()) if box.itemData(row) is None]
    groups = [
        FACTORIES[box.itemData(row)].group for row in range(box.count()) if row not in separators
    ]
    parted = [row + 1 for row in range(len(groups) - 1) if groups[row] != groups[row + 1]]
    assert separators == [row + number for number, row in enumerate(parted)]
