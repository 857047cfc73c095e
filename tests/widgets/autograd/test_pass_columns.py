"""Forward, graph and backward side by side, or both passes as tabs where there is less room."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QApplication, QTabWidget, QWidget

from tests.widgets.backward.autograd_snapshots import GRAPH, NAMES, backward
from widgets.autograd.autograd_view import AutogradView
from widgets.autograd.pass_columns import PassColumns

WIDE, NARROW = (1400, 700), (950, 700)


@pytest.fixture
def view(qtbot) -> AutogradView:
    made = AutogradView()
    qtbot.addWidget(made)
    made.resize(*WIDE)
    made.show()
    qtbot.waitExposed(made)
    return made


@pytest.fixture
def columns(view: AutogradView) -> PassColumns:
    return view.columns


def resize(view: AutogradView, size: tuple[int, int]) -> None:
    view.resize(*size)
    QApplication.processEvents()


def tabs(view: AutogradView) -> QTabWidget:
    found = view.findChild(QTabWidget, "pass_tabs")
    assert found is not None
    return found


def test_a_narrow_window_has_the_passes_as_tabs(view, columns) -> None:
    assert not columns.in_tabs and columns.count() == 3
    assert view.forward.isVisible() and view.backward.isVisible()
    resize(view, NARROW)
    assert columns.in_tabs and columns.count() == 2
    bar = tabs(view)
    assert [bar.tabText(at) for at in range(2)] == ["Forward", "Backward"]
    assert [bar.tabToolTip(at) for at in range(2)] == [
        "The forward pass, block by block",
        "The backward pass, node by node",
    ]
    resize(view, WIDE)
    assert columns.indexOf(view.forward) == 0 and tabs(view).count() == 1
    assert view.forward.isVisible() and view.backward.isVisible()


def test_the_tab_in_front_is_the_pass_that_runs(view) -> None:
    resize(view, NARROW)
    assert view.forward.isVisible() and not view.backward.isVisible()
    resize(view, WIDE)
    view.show_graph(GRAPH, NAMES)
    view.show_backward(backward(3))
    resize(view, NARROW)
    assert view.backward.isVisible() and not view.forward.isVisible()


def test_a_pass_is_brought_up(view, columns) -> None:
    columns.bring_up(view.forward)  # nothing is behind anything
    resize(view, NARROW)
    columns.bring_up(view.backward)
    assert view.backward.isVisible()
    columns.bring_up(view.forward)
    assert view.forward.isVisible()


def test_a_graph_without_blocks_has_no_forward_pass(view, columns) -> None:
    columns.show_forward(False)
    assert not view.forward.isVisible()
    resize(view, NARROW)
    assert not tabs(view).isTabVisible(0) and view.backward.isVisible()
    columns.show_forward(True)
    assert tabs(view).isTabVisible(0)
    columns.show_forward(False)
    resize(view, WIDE)
    assert not view.forward.isVisible()
    columns.show_forward(True)
    assert view.forward.isVisible()


def test_each_way_keeps_its_widths(view, columns, qtbot) -> None:
    columns.setSizes([300, 600, 480])
    three = columns.sizes()
    resize(view, NARROW)
    columns.setSizes([500, 440])
    two = columns.sizes()
    resize(view, WIDE)
    assert columns.sizes() == three
    resize(view, NARROW)
    assert columns.sizes() == two
    states = columns.states()
    assert set(states) == {"two", "three"}
    other = AutogradView()
    qtbot.addWidget(other)
    other.columns.restore(states)
    other.show()
    resize(other, NARROW)
    assert other.columns.sizes() == two
    resize(other, WIDE)
    assert other.columns.sizes() == three


def test_the_graph_takes_what_the_passes_leave(view, columns) -> None:
    before = columns.sizes()
    resize(view, (WIDE[0] + 200, WIDE[1]))
    after = columns.sizes()
    assert after[0] == before[0] and after[2] == before[2] and after[1] == before[1] + 200


def test_the_columns_can_always_be_as_narrow_as_two(view, columns) -> None:
    least = columns.minimumSizeHint().width()
    side = max(pane.minimumSizeHint().width() for pane in (view.forward, view.backward))
    graph = columns.widget(1).minimumSizeHint().width()
    assert least == graph + columns.handleWidth() + side
    resize(view, NARROW)
    assert columns.minimumSizeHint().width() == least


def test_the_focus_stays_where_it_was(view) -> None:
    held = view.findChild(QWidget, "forward_blocks")
    assert held is not None
    for size in (NARROW, WIDE):
        held.setFocus()
        resize(view, size)
        assert held.hasFocus()
