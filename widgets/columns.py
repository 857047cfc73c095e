"""The columns of a model of rows, and what its header says of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt


@dataclass(frozen=True)
class Column:
    """`text` makes the text of a cell from the model's row; `right` aligns it to the right."""

    title: str
    hint: str
    text: Callable[..., str]
    right: bool = False


def header_data(
    columns: Sequence[Column], section: int, orientation: Qt.Orientation, role: int
) -> object:
    """The `headerData` of a model: the titles of its columns and their tooltips."""
    if orientation == Qt.Orientation.Vertical:
        return None
    column = columns[section]
    if role == Qt.ItemDataRole.DisplayRole:
        return column.title
    if role == Qt.ItemDataRole.ToolTipRole:
        return column.hint
    if role == Qt.ItemDataRole.TextAlignmentRole and not column.right:
        return Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
    return None
