"""Where the user's code is held: the line in its source, and how it goes on."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QWidget

from engine.protocol import HeldSnapshot
from widgets import make, theme
from widgets.model.code_editor import CodeEditor


class HeldPane(QFrame):
    """Shown only while code is held. Buttons emit `continue_requested`, `line_requested` (to the
    next line), `step_requested` (to the next optimizer step) and `stop_requested`."""

    continue_requested = Signal()
    line_requested = Signal()
    step_requested = Signal()
    stop_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("held_pane")
        self.title = make.label("", "heading", "held_title")
        self.continues = make.tool_button(
            "held_continue",
            "mdi6.play",
            "Let the code go on, to the next breakpoint (F8).",
            self.continue_requested,
            text="Continue",
            accessible="Continue",
        )
        self.line = make.tool_button(
            "held_line",
            "mdi6.arrow-down-bold-outline",
            "Run to the next line, over calls (Shift+F9).",
            self.line_requested,
            text="Next line",
            accessible="Next line",
        )
        self.step = make.tool_button(
            "held_step",
            "mdi6.skip-next",
            "Run to the end of the next optimizer step (F9).",
            self.step_requested,
            accessible="Next optimizer step",
        )
        self.stop = make.tool_button(
            "held_stop",
            "mdi6.stop",
            "Stop the code here: a KeyboardInterrupt is raised in it (Shift+F5).",
            self.stop_requested,
            accessible="Stop",
            ink="error",
        )
        self.editor = CodeEditor(
            "held_code",
            "The code that is held",
            "The code that is held, before its marked line. Python typed in the console runs here.",
        )
        half = theme.GRID // 2
        # The buttons have a line of their own: beside a long title, a narrow console would have no
        # room for what it says.
        words = make.row(self.title, margins=(theme.GRID, 2, half, 0))
        buttons = (self.continues, self.line, self.step, self.stop)
        bar = make.row(*buttons, make.STRETCH, gap=2, margins=(half, 0, half, 2))
        make.column(words, bar, (self.editor, 1), on=self, gap=0)
        self.hide()

    def show_held(self, held: HeldSnapshot | None) -> None:
        """Show where code is held; hide the pane if none is."""
        self.setVisible(held is not None)
        if held is None:
            return
        make.tell(self.title, held.where)
        if self.editor.toPlainText() != held.source:
            self.editor.setPlainText(held.source)
        self.editor.highlight((held.line,), scroll=True)
