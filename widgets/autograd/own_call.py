"""The strip over a pass that is a backward() of the user's own code."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QWidget

from engine.protocol import BackwardSnapshot, HeldSnapshot
from widgets import make
from widgets.theme import GRID


class OwnCall(QFrame):
    """Says where the code is held, and lets it go on: `continue_requested`, `stop_requested`."""

    continue_requested = Signal()
    stop_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("own_call")
        self._where = make.text("own_call_where", "heading", width="any")
        self.continues = make.button(
            "own_call_continue",
            "Let it go on",
            "mdi6.play",
            self.continue_requested,
            tip="Run the nodes that are left at once, and let the code go on (F8). A node that has"
            " run does not run again.",
        )
        self.stop = make.button(
            "own_call_stop",
            "Stop",
            "mdi6.stop",
            self.stop_requested,
            tip="Stop the code here: a KeyboardInterrupt is raised in it (Shift+F5).",
        )
        margins = (2 * GRID, GRID // 2, 2 * GRID, GRID // 2)
        make.row((self._where, 1), self.continues, self.stop, on=self, margins=margins)
        self._held: HeldSnapshot | None = None
        self._is_over = False
        self._show()

    def show_held(self, held: HeldSnapshot | None) -> None:
        """Show where the code is held in its backward(); hide if it is not."""
        self._held, self._is_over = held, False
        self._show()

    def show_backward(self, snapshot: BackwardSnapshot) -> None:
        """Say so if the pass is at its end."""
        self._is_over = snapshot.next is None
        self._show()

    @property
    def at_end(self) -> bool:
        """Whether the code is held at the end of its backward(): one step more lets it go on."""
        return self._held is not None and self._is_over

    def _show(self) -> None:
        held = self._held
        self.setVisible(held is not None)
        if held is not None:
            end = ": at its end, a step more returns to the code" if self._is_over else ""
            self._where.setText(f"{held.where}{end}")
