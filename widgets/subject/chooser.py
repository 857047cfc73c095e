"""The button that names the subject, the menu that offers others, and what the subject needs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial

from msgspec import Struct
from PySide6.QtCore import QPoint, Signal
from PySide6.QtWidgets import QMenu, QWidget

from engine.project.subject import CanvasSubject, Subject, title
from widgets import make
from widgets.subject.arguments import ArgumentsCard

_TIP = (
    "The subject: the module that Model, Autograd, Train and Export work on. It is the canvas's"
    " model, a module of the console, or one of a Python file."
)

MAX_TITLE = 40


class Offer(Struct, frozen=True):
    """A subject that can be chosen: `detail` says what it is ("Net, a class"). With `required`
    parameters it is a class that needs arguments first. `is_other`: it is seldom worked on, and
    stands in a menu of its own. `also` are subjects that are the same module by another name."""

    subject: Subject
    detail: str
    required: tuple[str, ...] = ()
    is_other: bool = False
    also: tuple[Subject, ...] = ()

    @property
    def text(self) -> str:
        """The subject without its file."""
        return title(self.subject).rpartition(": ")[2] + ("(…)" if self.required else "")


class Group(Struct, frozen=True):
    """Offers under a heading: "Console", or the path of a file. `again` is the text of an entry
    that runs the file again."""

    heading: str
    offers: tuple[Offer, ...]
    again: str = ""


class SubjectChooser(QWidget):
    """Shows the subject's title. `picked(Offer)`: the user picked one. `arguments_entered(text)`:
    the line that `ask_arguments` asks for. `open_requested()`: the user wants to open a Python
    file; `again_requested(path)`: to run it again; `need_pressed()`: to do what `show_need` says.
    """

    picked = Signal(object)
    arguments_entered = Signal(str)
    open_requested = Signal()
    again_requested = Signal(str)
    need_pressed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._groups: tuple[Group, ...] = ()
        self._canvas: tuple[Subject, ...] = ()
        self._subject: Subject = CanvasSubject()
        self.button = make.tool_button("subject", "mdi6.cube-outline", _TIP, text="Canvas")
        self._menu = make.menu(self.button, accessible="Subjects", tips=True)
        self._menu.aboutToShow.connect(self._fill)
        self.need = make.tool_button(
            "subject_need", "mdi6.play", slot=self.need_pressed, text="Run", framed=True
        )
        self.need.hide()
        make.row(self.need, self.button, on=self, gap=0)
        self.show_subject(self._subject)

    @cached_property
    def arguments(self) -> ArgumentsCard:
        """Made when a class first asks for its arguments."""
        card = ArgumentsCard(self)
        card.entered.connect(self.arguments_entered)
        return card

    def limit_height(self, pixels: int) -> None:
        """Be no higher than the titles of the menu bar, whose lines would part otherwise."""
        for button in (self.need, self.button):
            button.setMaximumHeight(pixels)

    def show_subject(self, subject: Subject) -> None:
        self._subject = subject
        text = title(subject)
        shown = text if len(text) <= MAX_TITLE else f"{text[: MAX_TITLE - 1]}…"
        self.button.setText(f"Subject: {shown}")
        self.button.setAccessibleName(f"Subject: {text}")

    def show_offers(self, groups: Sequence[Group], canvas: tuple[Subject, ...] = ()) -> None:
        """Set the entries of the menu besides the canvas. `canvas` are other names of the canvas's
        model."""
        self._groups, self._canvas = tuple(groups), canvas

    def show_need(self, text: str, tip: str = "") -> None:
        """Show a button for what the subject needs first ("Run net.py"); without a text, none."""
        self.need.setText(text)
        self.need.setToolTip(tip)
        self.need.setAccessibleName(text)
        self.need.setVisible(bool(text))

    def open_menu(self) -> None:
        """Open the menu, so that the user picks; returns at once."""
        self._menu.popup(self.button.mapToGlobal(QPoint(0, self.button.height())))

    def ask_arguments(self, offer: Offer) -> None:
        """Ask for the arguments that a class needs."""
        corner = self.button.mapToGlobal(QPoint(self.button.width(), self.button.height()))
        name = offer.text.removesuffix("(…)")
        self.arguments.ask(name, offer.required, corner)

    def _fill(self) -> None:
        menu = self._menu
        for others in menu.findChildren(QMenu):
            others.deleteLater()
        menu.clear()
        canvas = Offer(CanvasSubject(), "The model of blocks on the canvas.", also=self._canvas)
        self._add(menu, "Canvas", canvas)
        for group in self._groups:
            menu.addSection(group.heading)
            others = None
            for offer in sorted(group.offers, key=lambda offer: offer.is_other):
                if offer.is_other and others is None:
                    others = menu.addMenu("Functions of tensors, and modules without parameters")
                    others.setToolTipsVisible(True)
                self._add(others or menu, offer.text, offer)
            if group.again:
                make.action(
                    menu,
                    group.again,
                    partial(self.again_requested.emit, group.heading),
                    tip="Run the whole file again: its modules are made again.",
                )
        if not any(not offer.is_other for group in self._groups for offer in group.offers):
            menu.addSection("Make a module in the console, or open a Python file that has one.")
        menu.addSeparator()
        make.action(
            menu,
            "Open a Python file…",
            self.open_requested.emit,
            name="subject_open",
            tip="Run a file as a module, and choose among the modules that it holds or defines. It"
            " has `lab` without an import: lab.log(name=value) adds to the plots of its loop,"
            " lab.hold() holds it there.",
        )

    def _add(self, menu: QMenu, text: str, offer: Offer) -> None:
        action = make.action(menu, text, partial(self.picked.emit, offer), tip=offer.detail)
        action.setCheckable(True)
        action.setChecked(self._subject in (offer.subject, *offer.also))
