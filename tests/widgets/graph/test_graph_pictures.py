"""The picture of a graph looks as it did when a person last looked at it."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QToolButton

from engine.protocol import BackwardSnapshot
from tests.pictures import assert_same_picture
from tests.widgets.graph.nested_graph import NESTED
from widgets import theme
from widgets.graph.pane import GraphPane

THEMES = {"light": theme.LIGHT, "dark": theme.DARK}


@pytest.fixture(params=THEMES)
def themed(request, qapp, pane) -> tuple[GraphPane, str]:
    """NESTED with all its boxes open, four nodes into backward; and the theme's name."""
    theme.apply(qapp, THEMES[request.param])
    pane.resize(800, 840)
    view = pane.view
    view.setFocus()  # away from the search field, whose caret blinks
    view.show_graph(NESTED)
    view.show_backward(BackwardSnapshot(position=4, step=None, gradients=()))
    view.fit()
    return pane, request.param


def test_open_boxes_a_cut_a_stale_node_and_a_breakpoint(themed, qapp) -> None:
    pane, name = themed
    pane.view.show_breakpoints({"#5"})
    pane.view.select(3)
    qapp.processEvents()
    assert_same_picture(pane, f"graph_open_{name}")


def test_closed_boxes_part_of_which_has_run_and_hits_inside(themed, qapp) -> None:
    pane, name = themed
    pane.view.set_open(frozenset({"body"}))
    pane.view.fit()
    pane.view.search("weight")
    qapp.processEvents()
    assert_same_picture(pane, f"graph_closed_{name}")


def test_corners_in_the_way_of_the_data_and_the_paths_of_a_node(themed, qapp) -> None:
    pane, name = themed
    pane.view.select(2)
    for switch in ("graph_style", "graph_direction", "graph_paths"):
        button = pane.findChild(QToolButton, switch)
        assert button is not None
        button.click()
    pane.view.fit()
    qapp.processEvents()
    assert_same_picture(pane, f"graph_paths_{name}")
