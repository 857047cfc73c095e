"""The style sheet: each kind of control in its states, in both themes."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QProgressBar, QSlider, QTextEdit, QWidget

from tests.pictures import assert_same_picture
from widgets import make, theme
from widgets.table import ReadTable


def sheet() -> QWidget:
    """Each control once as it is, and once disabled."""
    halves = []
    for enabled in (True, False):
        table = ReadTable("table", "A table", (("name", ""), ("value", "")))
        table.setRowCount(2)
        table.selectRow(0)
        progress, slider = QProgressBar(), QSlider(Qt.Orientation.Horizontal)
        progress.setValue(40)
        slider.setValue(40)
        written = QTextEdit("written")
        written.setFixedHeight(48)
        pressed = make.tool_button("pressed", text="Pressed", toggled=bool)
        pressed.setChecked(True)
        parts = (
            make.button("plain", "Plain"),
            make.button("main", "Main", primary=True),
            make.tool_button("tool", text="Tool", framed=True),
            pressed,
            make.field("field", "Field", placeholder="nothing yet"),
            make.combo("combo", "Choice", choices=(("first", 1),)),
            make.spin("spin", "Number", high=9),
            make.check("off", "Off"),
            make.check("on", "On", checked=True),
            progress,
            slider,
            written,
            table,
            *(make.label(role, role) for role in ("title", "heading", "muted", "error")),
        )
        half = make.page(*parts, gap=theme.GRID // 2)
        half.setEnabled(enabled)
        halves.append(half)
    widget = QWidget()
    make.row(*((half, 1) for half in halves), on=widget)
    return widget


@pytest.mark.parametrize("colors", [theme.LIGHT, theme.DARK], ids=lambda colors: colors.name)
def test_the_controls_look_as_they_did(qtbot, qapp, colors) -> None:
    theme.apply(qapp, colors)
    widget = sheet()
    qtbot.addWidget(widget)
    widget.resize(420, 640)
    widget.show()
    qapp.processEvents()
    assert_same_picture(widget, f"controls_{colors.name}")
