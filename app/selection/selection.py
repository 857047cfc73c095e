"""The selection: what the user chose last, in whichever view, and what was chosen before it."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from PySide6.QtCore import QObject, Signal

from app.selection.references import Call, Node, Reference

MAX_REMEMBERED = 100


class Selection(QObject):
    """A presenter calls `choose` when the user chooses something in its view, and follows `changed`
    when the user did so in another one. To follow is to light what the reference leads to (see
    `finding`): the view keeps the focus, the tab and, while it has the focus, the place where it
    is. A view that shows nothing of it stays as it is.

    `changed(reference)`: None after nothing is selected. Choosing the same again emits nothing, so
    a view may report what it was just shown. `returned(view, reference)`: the user went back or
    forward to what was chosen in this view.
    """

    changed = Signal(object)
    returned = Signal(str, object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._current: Reference | None = None
        self._chosen: list[tuple[str, Reference]] = []
        self._place = -1
        self.views: WeakKeyDictionary[QObject, str] = WeakKeyDictionary()
        """The widgets in which something can be chosen, and what `choose` calls their views: their
        context menus lead to the other views."""

    @property
    def current(self) -> Reference | None:
        return self._current

    def choose(self, reference: Reference | None, view: str = "", *, step: bool = False) -> None:
        """The user has chosen something in a view. `step`: one of many steps along it, which are
        remembered as one choice."""
        if reference == self._current:
            return
        if reference is not None:
            if step and self._place >= 0 and type(self._chosen[self._place][1]) is type(reference):
                self._place -= 1
            self._remember(view, reference)
        self._set_reference(reference)

    def look_in(self, view: str) -> None:
        """The user goes to another view of what is selected: the way back leads here first."""
        if self._current is not None:
            self._remember(view, self._current)

    def back(self) -> None:
        """Select what was chosen before, or go back to the view in which it was looked at."""
        # Once nothing is selected, the newest choice is the one before.
        self._go(self._place - 1 if self._current is not None else self._place)

    def forward(self) -> None:
        """Undo `back`."""
        self._go(self._place + 1)

    def forget(self) -> None:
        """Select nothing and forget all choices: they are of another project or engine."""
        self._chosen, self._place = [], -1
        self._set_reference(None)

    def end_engine(self) -> None:
        """Forget nodes and calls: the engine that numbered them has ended."""
        self._chosen = [each for each in self._chosen if not isinstance(each[1], Node | Call)]
        self._place = len(self._chosen) - 1
        if isinstance(self._current, Node | Call):
            self._set_reference(None)

    def _remember(self, view: str, reference: Reference) -> None:
        """Add to what `back` leads to; what `forward` led to is dropped."""
        before = self._chosen[: self._place + 1]
        self._chosen = [*before, (view, reference)][-MAX_REMEMBERED:]
        self._place = len(self._chosen) - 1

    def _go(self, place: int) -> None:
        if 0 <= place < len(self._chosen):
            self._place = place
            view, reference = self._chosen[place]
            self._set_reference(reference)
            self.returned.emit(view, reference)

    def _set_reference(self, reference: Reference | None) -> None:
        if reference != self._current:
            self._current = reference
            self.changed.emit(reference)
