"""The button whose menu keeps a copy of the subject, and compares it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from engine.project.subject import Subject, title
from widgets import make


class CompareButton(QWidget):
    """`keep_requested()`: keep a copy of the subject as it is. `compare_requested(subject)`:
    compare with this subject; None is the copy that is kept."""

    keep_requested = Signal()
    compare_requested = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._kept = ""
        self._others: tuple[Subject, ...] = ()
        self.button = make.tool_button(
            "structure_compare",
            "mdi6.compare-horizontal",
            "Compare the subject with a copy kept before, or with another module: structure,"
            " parameters, and outputs for the same input.",
            text="Compare",
        )
        self.menu = make.menu(self.button, accessible="Compare", tips=True)
        self.menu.aboutToShow.connect(self.fill)
        make.row(self.button, on=self, gap=0)

    def show_kept(self, kept: str) -> None:
        """The title of the subject whose copy is kept; "" without one."""
        self._kept = kept

    def show_others(self, others: Sequence[Subject]) -> None:
        """The subjects to compare with."""
        self._others = tuple(others)

    def fill(self) -> None:
        """Fill the menu."""
        menu = self.menu
        menu.clear()
        make.action(
            menu,
            "Keep as “before”",
            self.keep_requested.emit,
            name="compare_keep",
            tip="Keep a copy of the module as it is now, in memory, until another one is kept or"
            " the engine ends.",
        )
        before = make.action(
            menu,
            f"Compare with {self._kept}, as kept" if self._kept else "Compare with what was kept",
            partial(self.compare_requested.emit, None),
            name="compare_before",
            tip="What has changed since the copy was kept."
            if self._kept
            else "Nothing is kept yet.",
        )
        before.setEnabled(bool(self._kept))
        menu.addSection("Compare with")
        for other in self._others:
            make.action(menu, title(other), partial(self.compare_requested.emit, other))
        if not self._others:
            none = make.action(menu, "There is no other module", lambda: None)
            none.setEnabled(False)
