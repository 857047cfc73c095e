"""A field over a block's title, in which the block is renamed."""

from __future__ import annotations

from collections.abc import Container

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent
from PySide6.QtWidgets import QLineEdit

from engine.project.names import name_problem
from widgets import make, theme
from widgets.diagram.view import DiagramView

from .items import BlockItem

_MIN_WIDTH_PX, _HEIGHT_PX = 160, 28


class NameEditor(QLineEdit):
    """Enter or the loss of focus renames the block; Esc keeps its name.

    While the text is not a valid name, the field is outlined in the error colour, its tooltip says
    why, and Enter keeps it open.
    """

    renamed = Signal(str, str)
    """(block id, name)."""

    def __init__(self, view: DiagramView) -> None:
        super().__init__(view)
        make.named(self, "block_name_editor", "New name of the block")
        self._view = view
        self._block_id = self._name = ""
        self.textChanged.connect(self._check)
        view.view_changed.connect(self._on_view_changed)
        self.hide()

    def edit(self, item: BlockItem) -> None:
        """Show the block's name, selected, over its title."""
        self._block_id, self._name = item.block.id, item.block.name
        box = self._view.mapFromScene(item.rect()).boundingRect()
        self.setGeometry(box.left(), box.top(), max(box.width(), _MIN_WIDTH_PX), _HEIGHT_PX)
        self.setText(self._name)
        self.selectAll()
        self.show()
        self.setFocus()

    def keep_to(self, block_ids: Container[str]) -> None:
        """Close if the block is no longer among these."""
        if self._block_id not in block_ids:
            self._finish(rename=False)

    def _check(self, text: str) -> None:
        problem = name_problem(text.strip(), frozenset()) or ""
        self.setToolTip(problem)
        self.setStyleSheet(f"border: 1px solid {theme.current().error};" if problem else "")

    def _finish(self, rename: bool) -> None:
        if self.isHidden():
            return
        name, block_id = self.text().strip(), self._block_id
        self.hide()  # first: hiding takes the focus away, which would rename again
        if rename and not self.toolTip() and name != self._name:
            self.renamed.emit(block_id, name)

    def _on_view_changed(self) -> None:
        self._finish(rename=True)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self._finish(rename=False)
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            if not self.toolTip():
                self._finish(rename=True)
        else:
            super().keyPressEvent(event)
            return
        if self.isHidden():
            self._view.setFocus()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        if event.reason() != Qt.FocusReason.PopupFocusReason:
            self._finish(rename=True)
