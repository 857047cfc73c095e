"""The table of gradients: what is left out is said, and cannot be chosen."""

from __future__ import annotations

from engine.protocol import ParameterGradient
from widgets.autograd.gradient_table import GradientTable


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
