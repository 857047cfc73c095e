"""One element of a parameter below Train's table: its numbers, its index, what is not known."""

from __future__ import annotations

import pytest
import torch
from msgspec.structs import replace
from PySide6.QtWidgets import QApplication

from engine.project.updates import update_rule
from engine.protocol import Element, ElementSnapshot
from engine.tensors.summary import shown_values
from tests.labels import said
from tests.pictures import assert_same_picture
from tests.words import assert_same_words
from widgets import theme
from widgets.training.element_view import ElementView

RULE = update_rule("optim.Adam", {})
ELEMENT = Element(
    index=(3, 0),
    value=0.125,
    gradient=-0.01171875,
    optimizer="Adam",
    state={"step": 12.0, "exp_avg": -0.0078125, "exp_avg_sq": 0.000244140625},
    update=0.0009765625,
    after=0.1259765625,
    rule=RULE.step,
    words=RULE.words,
    options={"lr": 0.001, "eps": 1e-8},
    note="The update of a step with this gradient.",
)
FOUND = ElementSnapshot(name="0.weight", element=ELEMENT)


@pytest.fixture
def view(qtbot) -> ElementView:
    view = ElementView()
    qtbot.addWidget(view)
    view.resize(480, 400)
    view.choose("0.weight")
    view.show_element(FOUND)
    with qtbot.waitExposed(view):
        view.show()
    return view


def typed(view: ElementView, text: str) -> None:
    view._place.setText(text)
    view._place.setModified(True)
    view._place.returnPressed.emit()


def test_its_numbers_add_up(view):
    numbers = {name: text for name, text in view._numbers.rows()}
    assert numbers["exp_avg"] == "-0.0078125" and numbers["step"] == "12"
    total = float(numbers["value"]) + float(numbers["+ next update"])
    assert total == pytest.approx(float(numbers["= value after"]), abs=1e-7)
    assert total == pytest.approx(ELEMENT.after, abs=1e-7)
    assert said(view, "element_title") == "0.weight[3, 0] · Adam"
    assert said(view, "element_rule").startswith("new = old − lr · mean / (√square + eps)")


def test_the_largest_gradient_stays_the_one_that_is_shown(view, qtbot):
    assert view.index == (3, 0) and view._place.text() == "3, 0"
    with qtbot.waitSignal(view.asked):
        typed(view, "[1 -2]")
    assert view.index == (1, -2)
    typed(view, "")
    assert view.index is None
    view.show_element(replace(FOUND, element=replace(ELEMENT, index=(5, 6))))
    assert view.index == (5, 6) and view._place.text() == "5, 6"
    with qtbot.waitSignal(view.asked):
        view.choose("0.bias")
    assert view.index is None and view._place.text() == ""
    assert view._numbers.rows() == [] and said(view, "element_rule") == ""
    view.show_element(FOUND)  # of another parameter
    assert view._numbers.rowCount() == 0
    with qtbot.assertNotEmitted(view.asked):
        view.choose("0.bias")
        view.choose("")
    assert not view.isVisible()


def test_what_is_no_index_is_told_in_place(view, qtbot):
    with qtbot.assertNotEmitted(view.asked):
        typed(view, "a, 1")
    assert "“a, 1” is not an index" in said(view, "element_trouble")
    assert view._numbers.rows() == []
    view.show_element(FOUND)
    assert said(view, "element_trouble") == "" and view._numbers.rowCount() == 9


def test_new_numbers_leave_the_selection_and_others_can_be_copied(view):
    view._numbers.selectRow(1)
    view.show_element(replace(FOUND, element=replace(ELEMENT, state={**ELEMENT.state, "step": 13})))
    assert view._numbers.rows()[1] == ["step", "13"]
    view._numbers.copy()
    assert QApplication.clipboard().text() == "step\t13"
    bare = Element(index=(), value=2.0, note="No optimizer has this parameter yet.")
    view.show_element(ElementSnapshot(name="0.weight", element=bare))
    assert view._numbers.rows() == [["gradient", "–"], ["value", "2"]]
    assert said(view, "element_title") == "0.weight" and said(view, "element_rule") == ""


def whole() -> ElementSnapshot:
    torch.manual_seed(0)
    tensors = [
        ("parameter", torch.randn(8, 12)),
        ("gradient", torch.randn(8, 12)),
        ("next update", torch.randn(8, 12) / 1000),
    ]
    values = tuple(value for value in shown_values(tensors) if value is not None)
    return replace(FOUND, whole=values)


def test_all_elements_are_asked_for_where_they_are_seen(view, qtbot):
    assert not view.is_whole
    with qtbot.waitSignal(view.asked):
        view.tabs.setCurrentIndex(1)
    assert view.is_whole
    found = whole()
    view.show_element(found)
    assert said(view, "element_title") == "0.weight · Adam"
    assert [card._label.text() for card in view.stack.shown_cards()] == [
        "parameter", "gradient", "next update",
    ]  # fmt: skip
    norms = [value.summary.norm or 0.0 for value in found.whole]
    ratio = f"{norms[2] / norms[0]:.3g}"
    assert said(view, "element_ratio").startswith(f"The next update has {ratio} of the parameter's")
    unknown = replace(ELEMENT, update=None, after=None, note="It has no gradient now.")
    view.show_element(replace(found, element=unknown, whole=found.whole[:1]))
    assert len(view.stack.shown_cards()) == 1
    assert said(view, "element_ratio") == "It has no gradient now."
    view.show_trouble("There is no such parameter.")
    assert view.stack.shown_cards() == [] and said(view, "element_ratio") == ""


@pytest.mark.parametrize("name", ["light", "dark"])
def test_picture_of_all_elements(view, qapp, name):
    theme.apply(qapp, {"light": theme.LIGHT, "dark": theme.DARK}[name])
    view.tabs.setCurrentIndex(1)
    view.show_element(whole())
    assert_same_picture(view, f"train_element_whole_{name}")


@pytest.mark.parametrize("name", ["light", "dark"])
def test_picture(view, qapp, name):
    theme.apply(qapp, {"light": theme.LIGHT, "dark": theme.DARK}[name])
    assert_same_picture(view, f"train_element_{name}")


def test_words(view):
    assert_same_words(view, "train_element")
