"""The card of one tensor: its numbers, its picture, or why there is none."""

from __future__ import annotations

import numpy as np
from PySide6.QtWidgets import QLabel

from engine.protocol import Picture, TensorSummary, Value
from widgets.values.value_card import ValueCard
from widgets.values.value_stack import ValueStack


def _text(card: ValueCard, name: str) -> str:
    label = card.findChild(QLabel, name)
    assert label is not None
    return label.text() if label.isVisibleTo(card) else ""


def test_shows_every_number_of_the_summary(qtbot) -> None:
    card = ValueCard()
    qtbot.addWidget(card)
    data = np.eye(64, 10, dtype="<f4")
    card.show_value(
        Value(
            "linear1.weight.grad",
            TensorSummary(
                (64, 10), "float32", "cpu", 2560, -0.5, 1.25, 0.0625, 0.31, 12.5, 7, nans=3, infs=1
            ),
            Picture((64, 10), data.tobytes(), (64, 10)),
        )
    )
    assert _text(card, "value_label") == "linear1.weight.grad"
    assert _text(card, "value_kind") == "(64, 10) · float32 · cpu · 2.5 KiB"
    assert _text(card, "value_bad") == "3 NaN, 1 inf"
    shown = {
        name: _text(card, f"value_{name}")
        for name in ("min", "max", "mean", "std", "norm", "zeros")
    }
    assert shown == {
        "min": "-0.5",
        "max": "1.25",
        "mean": "0.0625",
        "std": "0.31",
        "norm": "12.5",
        "zeros": "7",
    }
    assert card.picture.value_range() == (0.0, 1.0)


def test_a_scalar_without_picture_shows_its_text(qtbot) -> None:
    card = ValueCard()
    qtbot.addWidget(card)
    summary = TensorSummary((), "float32", "cpu", 4, 2.5, 2.5, 2.5, None, 2.5)
    card.show_value(Value("loss", summary, None, "2.5"))
    assert _text(card, "value_number") == "2.5" and _text(card, "value_text") == ""
    assert _text(card, "value_std") == ""  # it has no statistics
    assert _text(card, "value_bad") == ""
    assert not card.picture.isVisibleTo(card)


def test_a_scalar_with_a_picture_is_a_number_all_the_same(qtbot) -> None:
    card = ValueCard()
    qtbot.addWidget(card)
    summary = TensorSummary((1, 1), "float32", "cpu", 4, 10.0, 10.0, 10.0, None, 10.0)
    picture = Picture((1, 1), np.full(1, 10, "<f4").tobytes(), (1, 1))
    card.show_value(Value("gradient in", summary, picture, "[[10.]]"))
    assert _text(card, "value_number") == "10"
    assert not card.picture.isVisibleTo(card)
    card.show_value(Value("index", TensorSummary((1,), "int64", "cpu", 8), None, "[3]"))
    assert _text(card, "value_number") == "3"


def test_the_longest_number_fits_where_statistics_do(qtbot) -> None:
    card = ValueCard(narrow=True)
    qtbot.addWidget(card)
    number, statistics = card.findChild(QLabel, "value_number"), card._statistics
    assert number is not None
    card.show()
    assert (
        number.fontMetrics().horizontalAdvance("-1.23457e-05")
        <= statistics.minimumSizeHint().width()
    )


def test_what_comes_out_stands_beside_what_goes_in(qtbot) -> None:
    stack = ValueStack("backward_values", columns=2)
    qtbot.addWidget(stack)
    stack.resize(400, 300)
    stack.show()
    data = np.eye(64, 10, dtype="<f4")
    summary = TensorSummary((64, 10), "float32", "cpu", 2560, 0.0, 1.0, 0.1, 0.3, 3.2, 7)
    values = [Value(name, summary, Picture((64, 10), data.tobytes(), (64, 10))) for name in "io"]
    stack.show_sections([("", values[:1], ""), ("", values[1:], "")])
    left, right = stack.shown_cards()
    top_left, top_right = (card.mapTo(stack, card.rect().topLeft()) for card in (left, right))
    assert top_left.y() == top_right.y() and top_left.x() + left.width() <= top_right.x()
    assert top_right.x() + right.width() <= stack.viewport().width()


def test_without_a_value_says_why(qtbot) -> None:
    card = ValueCard()
    qtbot.addWidget(card)
    card.show_value(None, "This input needs no gradient")
    assert _text(card, "value_label") == ""
    assert card.accessibleName() == "This input needs no gradient"
    assert card.picture.isVisibleTo(card)
