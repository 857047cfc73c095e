"""The picture of a graph, laid out at once: the tests' worker is the window's own thread."""

from __future__ import annotations

import pytest

from widgets.graph.pane import GraphPane
from widgets.layout.nested_layout import layout_nested


@pytest.fixture
def pane(qtbot) -> GraphPane:
    pane = GraphPane()
    view = pane.view
    view.layout_requested.connect(
        lambda v, d, s: view.show_layout(v, layout_nested(v.outline, d, s))
    )
    qtbot.addWidget(pane)
    pane.resize(900, 840)
    pane.show()
    qtbot.waitExposed(pane)
    return pane
