"""The tabs of the Tensors workspace: what each asks of the engine about the selected tensor."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from app.presenters.questions import Questions
from app.workbench import Workbench
from engine.protocol import (
    AliasesCommand,
    AliasesSnapshot,
    Command,
    ErrorReport,
    LocateCommand,
    LocationSnapshot,
    ReadStorageCommand,
    StorageSnapshot,
    Variable,
)
from widgets.memory.alias_map import AliasMapView
from widgets.memory.storage_view import StorageView
from widgets.operations.operation_view import OperationView
from widgets.shapes.shape_view import ShapeView
from widgets.values.values_view import ValuesView

Index = tuple[int, ...]

_GONE = (
    "The engine has ended, and the tensors of this line with it. Run the project's cells again, or"
    " make new ones: then the line is explained again."
)


class Room(QObject):
    """One view and its questions. All rooms are told what is selected; only the one in sight is
    asked to `refresh`, after each cell and whenever something else is selected.

    Signals: `run_requested(source)`, and `selected(expression, index or None)` of the reader's
    choice of a tensor and an element.
    """

    run_requested = Signal(str)
    selected = Signal(str, object)

    def __init__(self, bench: Workbench, view: QWidget, parent: QObject) -> None:
        super().__init__(parent)
        self.view = view
        self._bench = bench
        self.expression = ""
        self.element: Index | None = None
        self._questions = Questions(bench, self)

    def show_variables(self, variables: Sequence[Variable]) -> None:
        """The console's variables as they are now."""

    def show_tensor(self, expression: str) -> None:
        self.expression = expression
        self.element = None

    def show_element(self, index: Index | None) -> None:
        self.element = index

    def forget(self) -> None:
        """The engine has ended, and the variables with it."""

    def start_anew(self) -> None:
        """Another project: nothing has been asked yet."""

    def refresh(self) -> None:
        """Ask for what the view shows, as it is now."""

    def _fail(self, error: ErrorReport) -> None:
        self._bench.window.say(_words(error))

    def _choose(self, index: Index | None) -> None:
        self.selected.emit(self.expression, index)


class ValuesRoom(Room):
    def __init__(self, bench: Workbench, view: ValuesView, parent: QObject) -> None:
        super().__init__(bench, view, parent)
        self._view = view
        self._shown = ""
        view.asked.connect(self._ask)
        view.run_requested.connect(self.run_requested)
        view.element_selected.connect(self._choose)

    def show_element(self, index: Index | None) -> None:
        super().show_element(index)
        self._view.show_element(index)

    def refresh(self) -> None:
        if self._shown == self.expression:
            self._view.refresh()
        else:
            self._shown = self.expression
            self._view.show_tensor(self.expression)
            self._view.show_element(self.element)

    def _ask(self, command: Command) -> None:
        self._questions.ask(
            command, self._view.show_snapshot, lambda error: self._view.show_error(command, error)
        )


class StorageRoom(Room):
    def __init__(self, bench: Workbench, view: StorageView, parent: QObject) -> None:
        super().__init__(bench, view, parent)
        self._view = view
        view.window_requested.connect(self._read)
        view.element_selected.connect(self._choose)
        view.selection_cleared.connect(lambda: self._choose(None))
        view.cell_selected.connect(lambda cell: self._locate(cell=cell))
        view.reader_activated.connect(self.selected)

    def show_tensor(self, expression: str) -> None:
        super().show_tensor(expression)
        if not expression:
            self._view.show_storage(None)

    def show_element(self, index: Index | None) -> None:
        super().show_element(index)
        self._view.show_element(index)
        if index is not None:
            self._locate(index=index)

    def refresh(self) -> None:
        if self.expression:
            self._read(*self._view.wanted())

    def _read(self, first: int | None, count: int) -> None:
        command = ReadStorageCommand(expression=self.expression, first=first, count=count)
        self._questions.ask(command, self._show, self._fail)

    def _show(self, snapshot: StorageSnapshot) -> None:
        self._view.show_storage(snapshot)
        if self.element is not None:
            self.show_element(self.element)

    def _fail(self, error: ErrorReport) -> None:
        self._view.show_storage(None, _words(error))

    def _locate(self, index: Index | None = None, cell: int | None = None) -> None:
        command = LocateCommand(expression=self.expression, index=index, cell=cell)
        self._questions.ask(command, self._show_location, lambda _: self._view.show_location(None))

    def _show_location(self, location: LocationSnapshot) -> None:
        if location.expression == self.expression:
            self._view.show_location(location)


class AliasRoom(Room):
    def __init__(self, bench: Workbench, view: AliasMapView, parent: QObject) -> None:
        super().__init__(bench, view, parent)
        self._view = view
        view.tensor_selected.connect(lambda name: self.selected.emit(name, None))

    def show_tensor(self, expression: str) -> None:
        super().show_tensor(expression)
        if not expression:
            self._view.show_aliases(AliasesSnapshot(storages=(), tensors=()))
        self._view.show_selected(expression)

    def refresh(self) -> None:
        self._questions.ask(AliasesCommand(), self._show, self._fail)

    def _show(self, snapshot: AliasesSnapshot) -> None:
        self._view.show_aliases(snapshot)
        self._view.show_selected(self.expression)


class OperationRoom(Room):
    def __init__(self, bench: Workbench, view: OperationView, parent: QObject) -> None:
        super().__init__(bench, view, parent)
        self._view = view
        view.asked.connect(self._ask)
        view.run_requested.connect(self.run_requested)

    def show_variables(self, variables: Sequence[Variable]) -> None:
        self._view.show_variables(variables)

    def show_tensor(self, expression: str) -> None:
        super().show_tensor(expression)
        self._view.show_expression(expression)

    def forget(self) -> None:
        self._questions.drop()
        self._view.forget(_GONE)

    def start_anew(self) -> None:
        self._questions.drop()
        self._view.start_anew()

    def refresh(self) -> None:
        self._view.refresh()

    def _ask(self, command: Command) -> None:
        self._questions.ask(command, self._view.show_snapshot, self._view.show_error)


class ShapeRoom(Room):
    """Broadcasting, reductions, products, indexing: the views say themselves what they ask."""

    def __init__(self, bench: Workbench, view: ShapeView, parent: QObject) -> None:
        super().__init__(bench, view, parent)
        self._view = view
        view.asked.connect(self._ask)
        view.run_requested.connect(self.run_requested)
        view.element_selected.connect(self.selected)

    def show_variables(self, variables: Sequence[Variable]) -> None:
        self._view.show_names([v.name for v in variables if v.kind == "tensor"])

    def show_tensor(self, expression: str) -> None:
        super().show_tensor(expression)
        if expression:
            self._view.show_expression(expression)

    def forget(self) -> None:
        self._questions.drop()
        self._view.forget(_GONE)

    def start_anew(self) -> None:
        self._questions.drop()
        self._view.forget("")

    def refresh(self) -> None:
        self._view.refresh()

    def _ask(self, command: Command) -> None:
        self._questions.ask(command, self._view.show_snapshot, self._view.show_error)


def _words(error: ErrorReport) -> str:
    return f"{error.message} {error.hint}".strip()
