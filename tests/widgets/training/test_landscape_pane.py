"""The landscape as its points come: picture, words, progress."""

from __future__ import annotations

from math import inf

import pytest

from engine.protocol import LandscapeSnapshot
from tests.labels import said
from tests.pictures import assert_same_picture
from widgets import theme
from widgets.training.landscape_pane import LandscapePane

ALONG = (-1.0, -0.5, 0.0, 0.5, 1.0)


@pytest.fixture
def pane(qtbot) -> LandscapePane:
    pane = LandscapePane()
    qtbot.addWidget(pane)
    pane.resize(640, 480)
    pane.show()
    return pane


def plane(first: int, count: int) -> LandscapeSnapshot:
    losses = [0.1 + x * x + 2 * y * y for x in ALONG for y in ALONG]
    return LandscapeSnapshot(
        along=ALONG,
        is_plane=True,
        first=first,
        losses=tuple(losses[first : first + count]),
        total=25,
        samples=64,
    )


def test_points_are_added_until_the_last(pane: LandscapePane) -> None:
    pane.begin()
    assert not pane.compute.isEnabled() and pane.stop.isVisible()
    assert not pane.show_points(plane(0, 10))
    assert pane._progress.value() == 10 and pane._progress.maximum() == 25
    assert pane.show_points(plane(10, 15))
    assert pane.compute.isEnabled() and not pane.stop.isVisible()
    words = said(pane, "landscape_words")
    assert words == (
        "25 points, each the mean loss of 64 samples: from 0.1 to 3.1, 0.1 at the weights."
    )
    pane.plane.point_at((0, 3))
    told = said(pane, "landscape_pointed")
    assert told == "first direction × -1, second × 0.5: loss 1.6"


def test_losses_that_are_not_finite_are_counted_and_have_no_place(pane: LandscapePane) -> None:
    pane.begin()
    found = LandscapeSnapshot(
        along=ALONG, is_plane=False, first=0, losses=(inf, 2.0, 1.0, 2.0, inf), total=5, samples=8
    )
    assert pane.show_points(found)
    assert "2 points have no finite loss" in said(pane, "landscape_words")
    assert (
        pane.line.isVisible() and len(pane.line._parts(pane.line.lines[0], pane.line.axes())) == 1
    )
    pane.tell_outdated()
    assert "compute again" in said(pane, "landscape_words")
    pane.clear()
    assert not pane.line.isVisible() and not said(pane, "landscape_words")


@pytest.mark.parametrize("name", ["light", "dark"])
def test_it_looks_as_it_did(pane: LandscapePane, name: str, qapp) -> None:
    theme.apply(qapp, {"light": theme.LIGHT, "dark": theme.DARK}[name])
    pane.begin()
    pane.show_points(plane(0, 25))
    assert_same_picture(pane, f"landscape_{name}")
