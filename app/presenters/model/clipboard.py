"""Blocks in the system's clipboard: for other windows of this program, and as text."""

from __future__ import annotations

import msgspec
from PySide6.QtCore import QMimeData
from PySide6.QtGui import QGuiApplication

from engine.project import catalogue
from engine.project.document import Model

MIME = "application/x-tensorlab-blocks+json"


def blocks_to_clipboard(piece: Model) -> None:
    data = QMimeData()
    data.setData(MIME, msgspec.json.encode(piece))
    data.setText("\n".join(f"{block.name}: {block.kind}" for block in piece.blocks))
    QGuiApplication.clipboard().setMimeData(data)


def blocks_from_clipboard() -> Model | None:
    """The blocks in the clipboard that this version knows; None if there are none."""
    data = QGuiApplication.clipboard().mimeData()
    if not data.hasFormat(MIME):
        return None
    try:
        piece = msgspec.json.decode(data.data(MIME).data(), type=Model)
    except msgspec.MsgspecError:  # from a version with other fields
        return None
    known = tuple(block for block in piece.blocks if block.kind in catalogue.kinds())
    return Model(known, piece.wires) if known else None
