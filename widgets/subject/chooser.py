"""The button that names the subject, and the menu that offers others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QWidget

from engine.project.subject import CanvasSubject, Subject, title
from widgets import make

_TIP = (
    "The subject: the module that Model, Autograd, Train and Export work on. It is the canvas's"
    " model, a module of the console, or one of a Python file."
)


@dataclass(frozen=True)
class Offer:
    """A subject that can be chosen: `detail` says what it is ("Net, a class")."""

    subject: Subject
    detail: str


@dataclass(frozen=True)
class Group:
    """Offers under a heading: "Console", or the path of a file."""

    heading: str
    offers: tuple[Offer, ...]


class SubjectChooser(QWidget):
    """Shows the subject's title. `chosen(Subject)`: the user picked one. `open_requested()`: the
    user wants to open a Python file."""

    chosen = Signal(object)
    open_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._groups: tuple[Group, ...] = ()
        self._subject: Subject = CanvasSubject()
        self.button = make.tool_button("subject", "mdi6.cube-outline", _TIP, text="Canvas")
        self._menu = make.menu(self.button, accessible="Subjects", tips=True)
        self._menu.aboutToShow.connect(self._fill)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.button)
        self.show_subject(self._subject)

    def show_subject(self, subject: Subject) -> None:
        self._subject = subject
        text = title(subject)
        self.button.setText(f"Subject: {text}")
        self.button.setAccessibleName(f"Subject: {text}")

    def show_offers(self, groups: Sequence[Group]) -> None:
        """What the menu offers besides the canvas, from now on."""
        self._groups = tuple(groups)

    def _fill(self) -> None:
        menu = self._menu
        menu.clear()
        canvas = Offer(CanvasSubject(), "The model of blocks on the canvas.")
        self._add("Canvas", canvas)
        for group in self._groups:
            menu.addSection(group.heading)
            for offer in group.offers:
                self._add(title(offer.subject).rpartition(": ")[2], offer)
        if not any(group.offers for group in self._groups):
            menu.addSection("Make a module in the console, or open a Python file that has one.")
        menu.addSeparator()
        make.action(
            menu,
            "Open a Python file …",
            self.open_requested.emit,
            name="subject_open",
            tip="Run a file as a module, and choose among the modules that it holds or defines.",
        )

    def _add(self, text: str, offer: Offer) -> None:
        action = make.action(
            self._menu, text, lambda: self.chosen.emit(offer.subject), tip=offer.detail
        )
        action.setCheckable(True)
        action.setChecked(offer.subject == self._subject)
