"""What a header says of its columns."""

from __future__ import annotations

from PySide6.QtCore import Qt

from widgets.columns import Column, header_data

COLUMNS = (Column("name", "What it is called.", str), Column("size", "In bytes.", str, right=True))


def told(section: int, role: Qt.ItemDataRole, orientation=Qt.Orientation.Horizontal) -> object:
    return header_data(COLUMNS, section, orientation, role)


def test_a_header_tells_title_and_hint() -> None:
    display, tip = Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole
    assert [told(section, display) for section in (0, 1)] == ["name", "size"]
    assert [told(section, tip) for section in (0, 1)] == ["What it is called.", "In bytes."]
    assert told(0, display, Qt.Orientation.Vertical) is None


def test_the_title_of_a_column_of_text_stands_left() -> None:
    aligned = Qt.ItemDataRole.TextAlignmentRole
    assert told(0, aligned) == Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
    assert told(1, aligned) is None and told(0, Qt.ItemDataRole.FontRole) is None
