"""Words in a panel that may be narrow."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel


def words_label(name: str, role: str = "") -> QLabel:
    """Plain text that wraps and can be selected. However long its words, it widens nothing."""
    label = QLabel()
    label.setObjectName(name)
    label.setWordWrap(True)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    label.setMinimumWidth(1)
    if role:
        label.setProperty("role", role)
    return label


def set_role(label: QLabel, role: str) -> None:
    """Give it another role of the theme's."""
    label.setProperty("role", role)
    label.style().unpolish(label)
    label.style().polish(label)
