"""The card of a node's rule, with snapshots as the engine gives them."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec import structs
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLabel, QPushButton, QWidget

from engine.project.document import replace
from engine.protocol import (
    CheckedRuleElement,
    RuleCheckSnapshot,
    RuleInput,
    RuleLine,
    RuleNumbers,
    RuleOp,
    RuleOpsSnapshot,
    RuleOpValue,
    RuleSnapshot,
    RuleSymbol,
)
from tests.widgets.backward.autograd_snapshots import value_of
from tests.words import assert_same_words
from widgets import theme
from widgets.rules.rule_card import RuleCard
from widgets.rules.rule_formula import parse_element

GRADIENT = np.array([[1.5, -2.0, 0.0], [0.25, 4.0, -1.0]], np.float32)


def rule(node: int = 7, **changes) -> RuleSnapshot:
    fields = {
        "node": node,
        "name": "MulBackward0",
        "words": "Each factor gets the gradient times the other factor.",
        "general": False,
        "inputs": (RuleInput(0, "a", "x", (2, 3)), RuleInput(1, "b", "relu", (2, 3))),
        "input": 0,
        "formula": "∂L/∂a = g · b",
        "symbols": (
            RuleSymbol("g", "the incoming gradient", shape=(2, 3)),
            RuleSymbol("b", "the other operand, as it was in forward", "other", (2, 3)),
        ),
        "element": (0, 0),
        "numbers": RuleNumbers(
            ("∂L/∂a[0, 0] = g[0, 0] · b[0, 0]", "= 0.5 · 3", "= 1.5"), 1.5, 1.5, 1
        ),
        "outgoing": value_of("∂L/∂a", GRADIENT),
        "max_difference": 0.0,
    }
    return RuleSnapshot(**(fields | changes))


def before_it_ran(node: int = 7) -> RuleSnapshot:
    return rule(
        node,
        element=None,
        numbers=None,
        outgoing=None,
        max_difference=None,
        note="It has not run yet, so there are no numbers: step backward until it has.",
    )


CHECK = RuleCheckSnapshot(
    node=7,
    op="aten::mul.Tensor",
    elements=(
        CheckedRuleElement("a", (0, 1), 2.0, 3.0, 1.0, 1e-4, "wrong"),
        CheckedRuleElement("b", (), 0.0, 0.5, 0.5, 1e-4, "kink"),
        CheckedRuleElement("a", (0, 0), 1.5, 1.5, 0.0, 1e-4, "right"),
    ),
    counts={"a": 6, "b": 1},
    notes=("A note.",),
    passed=False,
)
OPS = RuleOpsSnapshot(
    node=7,
    ops=(
        RuleOp(
            1,
            "aten::sigmoid",
            (RuleOpValue("saved x", (3,), "float32", "1, 2, 3"),),
            (RuleOpValue("%1", (3,), "float32", "0.7, 0.9, 1"),),
        ),
        RuleOp(
            2,
            "aten::mul.Tensor",
            (RuleOpValue("g", (3,), "float32"), RuleOpValue("%1", (3,), "float32")),
            (RuleOpValue("%2", (3,), "float32"),),
        ),
    ),
)


@pytest.fixture
def card(qtbot) -> RuleCard:
    made = RuleCard()
    made.resize(384, 480)
    qtbot.addWidget(made)
    made.show()
    return made


def label(card: RuleCard, name: str) -> QLabel:
    found = card.findChild(QLabel, name)
    assert found is not None
    return found


def said(card: RuleCard, name: str) -> str:
    """The text, if it can be seen on its page."""
    found = label(card, name)
    return "" if found.isHidden() else found.text()


def test_empty_says_what_to_do(card: RuleCard) -> None:
    assert "Step backward" in said(card, "rule_note")
    assert said(card, "rule_formula") == "" and card.formula.text() == ""
    assert not card.check.button.isEnabled() and not card.ops.button.isEnabled()
    assert said(card, "rule_check_notes").startswith("Step backward over a node")


def test_a_rule_shows_formula_letters_and_numbers(card: RuleCard) -> None:
    card.show_rule(rule())
    assert said(card, "rule_formula") == "∂L/∂a = g · b"
    letters = [w.text() for w in card.findChildren(QLabel, "rule_symbol") if not w.isHidden()]
    meanings = [w.text() for w in card.findChildren(QLabel, "rule_meaning") if not w.isHidden()]
    assert letters == ["g", "b"]
    assert meanings[1] == "the other operand, as it was in forward · (2, 3)"
    assert said(card, "rule_numbers").splitlines()[1:] == ["= 0.5 · 3", "= 1.5"]
    assert said(card, "rule_agreement").startswith("The engine gave 1.5.")
    assert card.formula.element.text() == "0, 0"
    assert [card.formula.inputs.itemText(i) for i in range(2)] == ["a, to x", "b, to relu"]
    assert said(card, "rule_general") == ""


def test_a_rule_checked_and_stepped_into_says_all_that_it_did(card: RuleCard) -> None:
    card.show_rule(rule())
    card.show_check(CHECK)
    card.show_ops(OPS)
    assert_same_words(card, "rule_card_filled")


def test_before_the_node_ran_there_is_the_formula_alone(card: RuleCard) -> None:
    card.show_rule(before_it_ran())
    assert said(card, "rule_formula") and said(card, "rule_numbers") == ""
    assert "has not run yet" in said(card, "rule_note")
    assert card.formula.picture.isHidden() and card.formula.element.isHidden()
    assert not card.check.button.isEnabled()


def test_a_freed_tensor_is_told_beside_its_letter(card: RuleCard) -> None:
    symbol = RuleSymbol("y", "the result of forward", "result", note="result: freed")
    card.show_rule(rule(symbols=(symbol,), numbers=None, note="No numbers: result: freed."))
    notes = [w for w in card.findChildren(QLabel, "rule_symbol_note") if not w.isHidden()]
    assert [w.text() for w in notes] == ["result: freed"]
    assert "No numbers" in said(card, "rule_note")


def test_a_general_rule_is_marked(card: RuleCard) -> None:
    card.show_rule(rule(general=True, formula="∂L/∂x = Σ g · ∂y/∂x, over all elements of y"))
    assert "no formula" in said(card, "rule_general")


def test_a_typed_element_is_asked_for(card: RuleCard, qtbot) -> None:
    card.show_rule(rule())
    asked = []
    card.rule_requested.connect(lambda *args: asked.append(args))
    card.formula.element.setText("[1, 2]")
    qtbot.keyClick(card.formula.element, Qt.Key.Key_Return)
    assert asked == [(7, 0, (1, 2))]
    card.formula.element.setText("one")
    qtbot.keyClick(card.formula.element, Qt.Key.Key_Return)
    assert len(asked) == 1 and "separated by commas" in said(card, "rule_note")


def test_a_clicked_element_is_asked_for(card: RuleCard, qtbot) -> None:
    card.show_rule(rule())
    card.formula.verticalScrollBar().setValue(card.formula.verticalScrollBar().maximum())
    picture = card.formula.picture
    asked = []
    card.rule_requested.connect(lambda *args: asked.append(args))
    x, y, w, h = picture._grid().cell_rect((1, 2))
    qtbot.mouseClick(picture, Qt.MouseButton.LeftButton, pos=QPoint(int(x + w / 2), int(y + h / 2)))
    assert asked == [(7, 0, (1, 2))]


def test_a_picture_that_leaves_elements_out_asks_to_type_the_index(card: RuleCard) -> None:
    value = value_of("∂L/∂a", GRADIENT)
    assert value.picture is not None
    few = structs.replace(value, picture=structs.replace(value.picture, sampled=True))
    card.show_rule(rule(outgoing=few))
    asked = []
    card.rule_requested.connect(lambda *args: asked.append(args))
    card.formula.picture.cell_chosen.emit((1, 2))
    assert asked == []
    assert said(card, "rule_note") == (
        "The picture leaves out elements here. Type the index instead."
    )


def test_only_a_rule_that_has_run_is_stepped_into(card: RuleCard) -> None:
    asked = []
    card.trace_requested.connect(asked.append)
    card.ask_trace()
    card.show_rule(before_it_ran())
    card.ask_trace()
    assert asked == []
    card.show_rule(rule())
    card.ops.trace.click()
    assert asked == [7]


def test_another_input_is_asked_for(card: RuleCard, qtbot) -> None:
    card.show_rule(rule())
    asked = []
    card.rule_requested.connect(lambda *args: asked.append(args))
    card.formula.inputs.setFocus()
    qtbot.keyClick(card.formula.inputs, Qt.Key.Key_Down)
    assert asked == [(7, 1, None)]


def test_the_rule_is_copied_as_text(card: RuleCard) -> None:
    card.show_rule(rule())
    card.formula.copy()
    lines = QGuiApplication.clipboard().text().splitlines()
    assert lines[:2] == ["MulBackward0", "∂L/∂a = g · b"]
    assert lines[-1] == "= 1.5"


def test_a_check_names_the_worst_first_and_says_how_many(card: RuleCard) -> None:
    card.show_rule(rule())
    asked = []
    card.check_requested.connect(asked.append)
    card.check.button.click()
    assert asked == [7] and not card.check.button.isEnabled()
    card.clear()
    card._ask_check()
    card._ask_ops()
    assert asked == [7]
    card.show_rule(rule())
    card.show_check(CHECK)
    assert card.check.button.isEnabled()
    assert card.check.table.rows() == [
        ["a[0, 1]", "2", "3", "1", "wrong"],
        ["b", "0", "0.5", "0.5", "kink"],
        ["a[0, 0]", "1.5", "1.5", "0", "right"],
    ]
    verdict = said(card, "rule_verdict")
    assert verdict.startswith("Wrong: 1 of 3 elements") and "3 of 7 checked" in verdict
    assert "1 at a kink" in verdict and label(card, "rule_verdict").property("role") == "error"
    assert said(card, "rule_check_notes") == "A note."
    card.check.table.copy()
    assert QGuiApplication.clipboard().text().splitlines()[0] == "a[0, 1]\t2\t3\t1\twrong"


def test_edges_and_nothing_at_all_are_said(card: RuleCard) -> None:
    card.show_rule(rule())
    edge = CheckedRuleElement("a", (0, 1), float("inf"), 0.0, float("inf"), 1e-4, "edge")
    card.show_check(replace(CHECK, elements=(*CHECK.elements[1:], edge), passed=True))
    assert "1 where the rule gives inf or NaN" in said(card, "rule_verdict")
    card.show_check(replace(CHECK, elements=(), counts={}, passed=True))
    assert said(card, "rule_verdict").startswith("No element")
    assert label(card, "rule_verdict").property("role") == "muted"


def test_a_refusal_says_why_and_what_to_do(card: RuleCard) -> None:
    card.show_rule(rule())
    card.show_check(RuleCheckSnapshot(node=7, refused="Not recorded.", hint="Step the model."))
    assert said(card, "rule_check_notes") == "Not recorded. Step the model."
    assert card.check.table.isHidden() and said(card, "rule_verdict") == ""


def test_operators_are_listed_in_order(card: RuleCard) -> None:
    card.show_rule(rule())
    asked = []
    card.ops_requested.connect(asked.append)
    card.ops.button.click()
    assert asked == [7]
    card.show_ops(OPS)
    assert card.ops.table.rows() == [
        ["%1", "sigmoid", "(3,): 0.7, 0.9, 1", "saved x (3,)"],
        ["%2", "mul.Tensor", "(3,)", "g (3,), %1 (3,)"],
    ]


def test_lines_of_python_stand_over_their_operators(card: RuleCard) -> None:
    card.show_rule(rule())
    lines = (
        RuleLine("cell 1", 4, "s = x.sigmoid()", (1,)),
        RuleLine("cell 1", 5, "return g * s", (2,)),
    )
    card.show_ops(RuleOpsSnapshot(node=7, ops=OPS.ops, lines=lines, more=3))
    assert [row[1] for row in card.ops.table.rows()] == [
        "s = x.sigmoid()",
        "    sigmoid",
        "return g * s",
        "    mul.Tensor",
    ]
    assert "3 more operators" in said(card, "rule_ops_note")


def test_another_node_clears_what_was_found_of_the_last(card: RuleCard) -> None:
    card.show_rule(rule())
    card.show_check(CHECK)
    card.show_ops(OPS)
    card.show_rule(rule(element=(1, 1)))
    assert card.check.table.rowCount() == 3 and card.ops.table.rowCount() == 2
    card.show_rule(rule(node=8))
    assert card.check.table.rowCount() == card.ops.table.rowCount() == 0
    card.show_check(CHECK)  # came too late
    assert card.check.table.rowCount() == 0


def test_another_step_of_the_same_node_clears_it_too(card: RuleCard) -> None:
    card.show_rule(rule())
    card.show_check(CHECK)
    card.forget_step()
    card.show_rule(rule())
    assert card.check.table.rowCount() == 0 and card.check.button.isEnabled()


def test_it_fits_into_the_side_panel(card: RuleCard) -> None:
    long = rule(formula="∂L/∂x = " + " + ".join(f"g · w[{i}]" for i in range(30)))
    card.show_rule(long)
    assert card.minimumSizeHint().width() <= 384
    body = card.formula.widget()
    assert body is not None and body.width() <= card.formula.viewport().width()


@pytest.mark.parametrize("name", ["rule_copy", "rule_element", "rule_input"])
def test_controls_teach_and_can_be_reached(card: RuleCard, name: str) -> None:
    card.show_rule(rule())
    widget = card.findChild(QWidget, name)
    assert widget is not None and widget.toolTip() and widget.accessibleName()
    assert widget.focusPolicy() & Qt.FocusPolicy.TabFocus


def test_buttons_teach(card: RuleCard) -> None:
    for button in card.findChildren(QPushButton):
        assert button.toolTip() and button.accessibleName()


def test_verdicts_keep_their_colour_in_the_other_theme(card: RuleCard, qapp) -> None:
    card.show_rule(rule())
    card.show_check(CHECK)
    before = theme.current()
    try:
        for each in (theme.LIGHT, theme.DARK):
            theme.apply(qapp, each)
            colour = card.check.table.item(0, 4).foreground().color().name()
            assert colour == each.error
    finally:
        theme.apply(qapp, before)


@pytest.mark.parametrize(
    ("text", "element"),
    [("0, 2", (0, 2)), ("[1]", (1,)), ("(3,)", (3,)), ("", ()), ("a", None), ("-1", None)],
)
def test_an_index_is_read_as_people_write_it(text: str, element) -> None:
    assert parse_element(text) == element
