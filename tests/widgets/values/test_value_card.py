from __future__ import annotations

import numpy as np
from PySide6.QtWidgets import QLabel

from engine.protocol import Picture, TensorSummary, Value
from widgets.values.value_card import ValueCard


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
    assert _text(card, "value_kind") == "64 × 10 · float32 · cpu · 2.5 KiB"
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
    assert _text(card, "value_text") == "2.5"
    assert _text(card, "value_std") == "–"
    assert _text(card, "value_bad") == ""
    assert not card.picture.isVisibleTo(card)


def test_without_a_value_says_why(qtbot) -> None:
    card = ValueCard()
    qtbot.addWidget(card)
    card.show_value(None, "This input needs no gradient")
    assert _text(card, "value_label") == ""
    assert card.accessibleName() == "This input needs no gradient"
    assert card.picture.isVisibleTo(card)
