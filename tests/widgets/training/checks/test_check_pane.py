"""The pane of the checks before training, and the curve of its range test."""

from __future__ import annotations

import math

import pytest

from engine.protocol import Check, CheckSnapshot, RateCurve
from tests.pictures import assert_same_picture
from widgets import theme
from widgets.training.checks.check_pane import TITLES, CheckPane

RATES = tuple(10 ** (-6 + 0.07 * i) for i in range(90))
SMOOTH = tuple(2.3 - 1.6 / (1 + math.exp(-(i - 55) / 5)) + max(0, i - 75) ** 2 / 60
               for i in range(90))  # fmt: skip
CURVE = RateCurve(
    RATES, tuple(s + 0.1 * math.sin(7 * i) for i, s in enumerate(SMOOTH)), SMOOTH, 0.01
)
CHECKS = (
    Check("inputs", "good", "The inputs have a usual scale.", "mean 0.3, deviation 0.38"),
    Check(
        "leaks",
        "warning",
        "Samples of the validation part are in the training part too.",
        "5 of 33 validation samples, 4 with the same target",
        "Remove repeated samples before the split.",
    ),
    Check("labels", "error", "3 labels are no class of the prediction.", "labels from 0 to 10"),
    Check("modes", "note", "The model gives something else in eval mode than in training."),
    Check("rates", "good", "A learning rate of 0.01 suits this model and data."),
)


@pytest.fixture
def pane(qtbot) -> CheckPane:
    pane = CheckPane()
    qtbot.addWidget(pane)
    return pane


def fill(pane: CheckPane) -> None:
    pane.begin()
    for done, check in enumerate(CHECKS, 1):
        curve = CURVE if check.kind == "rates" else RateCurve()
        pane.show_check(CheckSnapshot(check=check, done=done, total=len(CHECKS), curve=curve))


def test_checks_are_added_as_they_end_and_counted(pane: CheckPane) -> None:
    assert pane.isHidden()
    pane.begin()
    assert not pane.isHidden() and not pane.stop.isHidden()
    pane.show_check(CheckSnapshot(check=CHECKS[0], done=1, total=5))
    assert (pane._progress.text(), len(pane.rows)) == ("1 of 5", 1)
    fill(pane)
    assert [row.check for row in pane.rows] == list(CHECKS)
    assert pane._progress.text() == "2 of 5 need a look"
    assert pane.stop.isHidden()
    assert all(row.accessibleName() == TITLES[row.check.kind] for row in pane.rows)
    pane.begin()
    assert pane.rows == [] and not pane.stop.isHidden()
    assert pane.curve.isHidden() and pane.use.isHidden()


def test_the_suggested_rate_can_be_used(pane: CheckPane, qtbot) -> None:
    fill(pane)
    assert pane.use.text() == "Use 0.01" and not pane.use.isHidden()
    with qtbot.waitSignal(pane.rate_wanted) as asked:
        pane.use.click()
    assert asked.args == [0.01]


def test_without_a_suggestion_there_is_no_button(pane: CheckPane) -> None:
    pane.begin()
    pane.show_check(CheckSnapshot(check=CHECKS[-1], done=8, total=8))
    assert pane.use.isHidden() and pane.curve.isHidden()
    assert pane._progress.text() == "All is well"


def test_stop_is_asked_for(pane: CheckPane, qtbot) -> None:
    pane.begin()
    with qtbot.waitSignal(pane.stop_requested):
        pane.stop.click()
    pane.end("Stopped.")
    assert pane._progress.text() == "Stopped."


@pytest.mark.parametrize("name", ["light", "dark"])
def test_pictures(pane: CheckPane, qapp, name: str) -> None:
    theme.apply(qapp, {"light": theme.LIGHT, "dark": theme.DARK}[name])
    fill(pane)
    pane.resize(460, 640)
    assert_same_picture(pane, f"checks_{name}")
