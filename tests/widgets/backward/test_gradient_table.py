"""The table of gradients: what is left out is said, and cannot be chosen."""

from __future__ import annotations

from typing import get_args

from PySide6.QtCore import Qt

from engine.protocol import MissingReason, ParameterGradient, TensorSummary
from widgets import theme
from widgets.backward.gradient_table import MISSING, GradientTable


def test_what_is_left_out_is_said(qtbot) -> None:
    table = GradientTable()
    qtbot.addWidget(table)
    asked: list[tuple[str, str]] = []
    table.inspect_requested.connect(lambda of, name: asked.append((of, name)))
    gradients = [ParameterGradient(name=f"w{i}", shape=(2,), gradient=None) for i in range(3)]
    table.show_gradients(gradients, more=1_234)
    assert table.rowCount() == 4
    assert table.item(3, 1).text() == "and 1,234 more, not shown"
    table.setCurrentCell(1, 1)
    table.setCurrentCell(3, 1)
    assert asked == [("parameter", "w1")]
    table.show_gradients(gradients)
    assert table.rowCount() == 3


def test_passing_by_with_tab_chooses_no_row_and_an_arrow_the_first(qtbot):
    table = GradientTable()
    qtbot.addWidget(table)
    table.show_gradients([ParameterGradient(name=n, shape=(2,), gradient=None) for n in "ab"])
    asked: list[tuple[str, str]] = []
    table.inspect_requested.connect(lambda of, name: asked.append((of, name)))
    with qtbot.waitExposed(table):
        table.show()
    table.activateWindow()
    table.setFocus(Qt.FocusReason.TabFocusReason)
    qtbot.waitUntil(table.hasFocus)
    assert asked == [] and table.currentRow() == -1
    qtbot.keyClick(table, Qt.Key.Key_Down)
    assert asked == [("parameter", "a")]
    qtbot.keyClick(table, Qt.Key.Key_Down)
    assert asked[-1] == ("parameter", "b")


def test_columns_are_as_wide_as_the_longest_name(qtbot):
    table = GradientTable()
    qtbot.addWidget(table)
    table.show_gradients([ParameterGradient("w", (2,), None)])
    narrow = table.columnWidth(1)
    table.show_gradients([ParameterGradient("transformer.layers.0.attention.weight", (2,), None)])
    assert table.columnWidth(1) > narrow


def test_fewer_gradients_and_another_theme_ask_for_nothing(qtbot, qapp):
    table = GradientTable()
    qtbot.addWidget(table)
    theme.apply(qapp, theme.DARK)  # before anything is shown
    assert table.rowCount() == 0
    table.show_gradients([ParameterGradient(n, (2,), None) for n in "abc"])
    table.setCurrentCell(2, 1)
    asked: list[tuple[str, str]] = []
    table.inspect_requested.connect(lambda of, name: asked.append((of, name)))
    table.show_gradients([ParameterGradient(n, (2,), None) for n in "ab"])
    theme.apply(qapp, theme.LIGHT)
    assert asked == [] and table.rowCount() == 2


def test_a_row_says_why_it_gets_no_gradient(qtbot):
    table = GradientTable()
    qtbot.addWidget(table)
    old = TensorSummary(shape=(2,), dtype="float32", device="cpu", size_bytes=8, norm=2.0)
    rows = [
        ParameterGradient("w", (2,), None),
        ParameterGradient("frozen", (2,), None, missing="not_required"),
        ParameterGradient("unused", (2,), old, missing="no_path"),
    ]
    table.show_gradients(rows)
    texts = [(table.item(row, 0).text(), table.item(row, 3).text()) for row in range(3)]
    assert texts == [("○", "–"), ("✕", "frozen"), ("✕", "2 from before (not used)")]
    assert "requires_grad is False" in table.item(1, 3).toolTip()
    reasons = set(get_args(MissingReason)) - {"has_gradient", "integer", "not_leaf"}
    assert reasons == set(MISSING)  # a row is a leaf, or keeps its gradient, and is floating
