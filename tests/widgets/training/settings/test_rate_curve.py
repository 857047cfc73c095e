"""The learning rate over the run, drawn before it."""

from __future__ import annotations

from PySide6.QtCore import QRectF

from engine.protocol import RatesSnapshot
from tests.pictures import assert_same_picture
from widgets.training.settings.rate_curve import HEIGHT, RateCurve

RATES = RatesSnapshot(steps=(1, 2, 3, 4, 5), rates=(0.0, 0.05, 0.1, 0.05, 0.0), total_steps=5)


def test_the_curve_is_drawn_from_0_to_its_highest_rate(qtbot) -> None:
    curve = RateCurve()
    qtbot.addWidget(curve)
    curve.resize(280, HEIGHT)
    curve.show_rates(RATES)
    assert curve.words == "lr 0 to 0.1 over 5 steps"
    area = QRectF(0, 0, 100, 50)
    assert curve.curve(area) == [(0, 50), (25, 25), (50, 0), (75, 25), (100, 50)]
    curve.show()
    qtbot.waitExposed(curve)
    assert_same_picture(curve, "train_rates")


def test_a_part_of_a_long_run_is_told_as_such_and_words_replace_a_curve(qtbot) -> None:
    curve = RateCurve()
    qtbot.addWidget(curve)
    curve.show_rates(RatesSnapshot(steps=(1, 5), rates=(0.1, 0.1), total_steps=9))
    assert curve.words == "lr 0.1 to 0.1 in the first 5 of 9 steps"
    curve.show_words("No rate is known.")
    assert curve.curve(QRectF(0, 0, 1, 1)) == []
    assert curve.accessibleDescription() == "No rate is known."
