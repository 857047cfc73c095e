"""What a label of a view says."""

from __future__ import annotations

from PySide6.QtWidgets import QLabel, QWidget


def said(view: QWidget, name: str) -> str:
    """The text of the label; empty if it cannot be seen in the view."""
    label = view.findChild(QLabel, name)
    assert label is not None
    return label.text() if label.isVisibleTo(view) else ""
