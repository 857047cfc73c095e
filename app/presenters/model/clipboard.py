"""Blocks in the system's clipboard: for other windows of this program, and as text."""

from __future__ import annotations

from PySide6.QtCore import QMimeData
from PySide6.QtGui import QGuiApplication

from engine.project import files
from engine.project.document import Model, Project

MIME = "application/x-tensorlab-blocks+json"


def blocks_to_clipboard(piece: Model) -> None:
    """Put a project file with these blocks only into the clipboard."""
    data = QMimeData()
    data.setData(MIME, files.dumps(Project(model=piece)).encode())
    data.setText("\n".join(f"{block.name}: {block.kind}" for block in piece.blocks))
    QGuiApplication.clipboard().setMimeData(data)


def blocks_from_clipboard() -> Model | None:
    """The blocks in the clipboard; None if there are none.

    They are checked as those of a file are. Raises `files.FileProblem` if they come from a version
    with other blocks, or are damaged.
    """
    data = QGuiApplication.clipboard().mimeData()
    if not data.hasFormat(MIME):
        return None
    piece = files.loads(bytes(data.data(MIME).data())).model
    return piece if piece.blocks else None
