"""The card that asks for the arguments of a class: one line, `Net(width=64)`."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtWidgets import QFrame, QWidget

from widgets import make
from widgets.theme import GRID

_WIDTH = 420


class ArgumentsCard(QFrame):
    """Shown until the user presses Esc or clicks beside it, or the owner hides it.
    `entered(expression)`: the line as the user has completed it."""

    entered = Signal(str)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setObjectName("arguments_card")
        self.setProperty("role", "card")
        self.setFixedWidth(_WIDTH)
        self._title = make.label("", "heading", "arguments_title")
        self.field = make.field(
            "arguments_field",
            "Arguments",
            "Python: it is computed among the names of the file.",
            mono=True,
            entered=self._enter,
        )
        self._problem = make.paragraph("arguments_problem", "error")
        use = make.button("arguments_use", "Work on it", slot=self._enter, primary=True)
        use.setToolTip("Make the module, and let all workspaces work on it.")
        foot = make.row(make.STRETCH, use)
        make.column(self._title, self.field, self._problem, foot, on=self, margins=2 * GRID)

    def ask(self, name: str, required: tuple[str, ...], at: QPoint) -> None:
        """Ask for the required arguments of the class `name`, with the card's top right corner at
        a point of the screen."""
        self._title.setText(f"{name} needs arguments")
        self.field.setText(f"{name}({', '.join(f'{each}=' for each in required)})")
        self.tell("")
        self.move(at.x() - self.width(), at.y())
        self.show()
        self.field.setFocus()
        self.field.setCursorPosition(self.field.text().index("=") + 1)

    def tell(self, problem: str) -> None:
        """Say why nothing came of the line."""
        make.tell(self._problem, problem)
        self.adjustSize()

    def _enter(self) -> None:
        self.entered.emit(self.field.text().strip())
