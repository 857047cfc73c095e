"""The selected blocks, shared by all views of the window."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal


class Selection(QObject):
    """The ids of the selected blocks. Setting the same blocks again emits nothing, so a view may
    report the selection that it was just shown."""

    changed = Signal(tuple)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._blocks: tuple[str, ...] = ()

    @property
    def blocks(self) -> tuple[str, ...]:
        return self._blocks

    def set(self, blocks: tuple[str, ...]) -> None:
        if blocks != self._blocks:
            self._blocks = blocks
            self.changed.emit(blocks)
