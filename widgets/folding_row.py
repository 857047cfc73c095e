"""A row of widgets that stays one row: what does not fit goes into a menu at its end."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from PySide6.QtCore import QEvent, QSize
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QAbstractButton, QWidget

from widgets import make
from widgets.theme import GRID


class FoldingRow(QWidget):
    """`parts` side by side. Where the row is too narrow for all, buttons of `folds` are in the menu
    `more` instead, the first of them first. `words` says what they are."""

    def __init__(
        self, name: str, words: str, parts: Sequence[QWidget], folds: Sequence[QAbstractButton]
    ) -> None:
        super().__init__()
        self._parts, self._folds = parts, folds
        self._left_out: set[QWidget] = set()
        self.more = make.tool_button(
            name, "mdi6.dots-horizontal", f"{words} that do not fit in the row", accessible=words
        )
        self._menu = make.menu(self.more, accessible=words, tips=True)
        self._menu.aboutToShow.connect(self._fill)
        make.row(*parts, self.more, make.STRETCH, on=self)
        self._fold()

    def offer(self, part: QWidget, offered: bool) -> None:
        """Show a part, in the row or in its menu, or leave it out."""
        (self._left_out.discard if offered else self._left_out.add)(part)
        self.updateGeometry()
        self._fold()

    def offers(self, part: QWidget) -> bool:
        return part not in self._left_out

    def _fill(self) -> None:
        """What the menu has are the folded buttons as they are now."""
        self._menu.clear()
        for button in self._folds:
            if button.isHidden() and self.offers(button):
                action = make.action(self._menu, button.text(), button.click, tip=button.toolTip())
                action.setIcon(button.icon())
                action.setEnabled(button.isEnabled())
                action.setCheckable(button.isCheckable())
                action.setChecked(button.isChecked())

    # -- its width -------------------------------------------------------------------------------

    def minimumSizeHint(self) -> QSize:
        """Room for what never folds."""
        return QSize(self._width_without(self._folds), super().minimumSizeHint().height())

    def sizeHint(self) -> QSize:
        return QSize(self._width_without(()), super().sizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fold()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:  # a button has another text
            self._fold()
        return super().event(event)

    def _fold(self) -> None:
        offered = [button for button in self._folds if self.offers(button)]
        count = 0
        while count < len(offered) and self._width_without(offered[:count]) > self.width():
            count += 1
        for part in self._parts:
            part.setHidden(part in offered[:count] or not self.offers(part))
        self.more.setHidden(not count)

    def _width_without(self, folded: Collection[QWidget]) -> int:
        shown = [part for part in self._parts if part not in folded and self.offers(part)]
        if folded:
            shown.append(self.more)
        return sum(part.sizeHint().width() + GRID for part in shown) - GRID
