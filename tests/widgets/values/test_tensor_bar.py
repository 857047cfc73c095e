"""The line over the views of one tensor: what it says, and what typing into it does."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QLineEdit, QToolButton

from engine.protocol import Variable
from widgets.values.tensor_bar import TensorBar, facts_of

X = Variable(
    name="x",
    kind="tensor",
    type="Tensor",
    shape=(3, 4),
    dtype="float32",
    device="cpu",
    is_leaf=True,
    size_bytes=48,
    version=2,
)


@pytest.fixture
def bar(qtbot):
    bar = TensorBar()
    qtbot.addWidget(bar)
    bar.show()
    return bar


def facts(bar: TensorBar) -> str:
    return bar.findChild(QLabel, "tensor_facts").text()


def test_it_says_what_is_known_of_the_tensor(bar):
    assert facts(bar) == ""
    bar.show_tensor("x", X)
    assert facts(bar) == "(3, 4) · float32 · cpu · 48 B"
    bar.show_tensor("x.grad", None)
    assert facts(bar) == ""


def test_other_kinds_say_what_they_are():
    model = Variable(name="m", kind="module", type="Linear", text="20 parameters")
    assert facts_of(model) == "Linear · 20 parameters"


def test_what_is_typed_is_asked_for_on_enter_and_survives_a_refresh(bar, qtbot):
    bar.show_tensor("x", X)
    field = bar.findChild(QLineEdit, "tensor_expression")
    assert field.text() == "x"
    qtbot.keyClicks(field, ".grad")
    bar.show_tensor("x", X)
    assert field.text() == "x.grad"
    with qtbot.waitSignal(bar.expression_entered) as entered:
        qtbot.keyClick(field, Qt.Key.Key_Return)
    assert entered.args == ["x.grad"]


def test_the_selected_element_stands_there_until_it_is_cleared(bar, qtbot):
    bar.show_tensor("x", X)
    element = bar.findChild(QLabel, "tensor_element")
    assert element.isHidden()
    bar.show_element((0, 2))
    assert element.isVisible() and element.text() == "x[0, 2]"
    bar.show_element(())
    assert element.text() == "x[()]"
    with qtbot.waitSignal(bar.element_cleared):
        qtbot.mouseClick(
            bar.findChild(QToolButton, "tensor_element_clear"), Qt.MouseButton.LeftButton
        )
