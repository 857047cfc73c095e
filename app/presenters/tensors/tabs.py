"""The tabs of the Tensors workspace: what each one asks the engine about the selected tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from app.presenters.questions import Questions, in_words
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
V = TypeVar("V", bound=QWidget)
L = TypeVar("L", OperationView, ShapeView)

_ENGINE_ENDED = (
    "The engine has ended, and the tensors of this line with it. Run the project's cells again, or"
    " make new ones: then the line is explained again."
)


class Tab(QObject, Generic[V]):
    """One view and its questions. All tabs are told the selection. Only the tab in front is
    refreshed, after each cell and each change of the selection.

    Signals: `run_requested(source)`: run Python in the console; `selected(expression, index or
    None)`: the user has chosen a tensor or an element; `cell_selected(cell)`: a cell of its storage
    that no element of it reads.
    """

    run_requested = Signal(str)
    selected = Signal(str, object)
    cell_selected = Signal(int)

    def __init__(self, bench: Workbench, view: V, parent: QObject) -> None:
        super().__init__(parent)
        self.view = view
        self._bench = bench
        self.expression = ""
        self.element: Index | None = None
        self._questions = Questions(bench)

    def show_variables(self, variables: Sequence[Variable]) -> None:
        """Show the current variables of the console."""

    def show_tensor(self, expression: str) -> None:
        self.expression = expression
        self.element = None

    def show_element(self, index: Index | None) -> None:
        self.element = index

    def forget(self) -> None:
        """Clear the view: the engine has ended, and its variables with it."""

    def start_anew(self) -> None:
        """Clear the view's inputs too: another project was opened."""

    def refresh(self) -> None:
        """Ask the engine for the current state of what the view shows."""

    def _choose(self, index: Index | None) -> None:
        self.selected.emit(self.expression, index)


class ValuesTab(Tab[ValuesView]):
    def __init__(self, bench: Workbench, view: ValuesView, parent: QObject) -> None:
        super().__init__(bench, view, parent)
        self._shown = ""
        view.asked.connect(self._ask)
        view.run_requested.connect(self.run_requested)
        view.element_selected.connect(self._choose)

    def show_element(self, index: Index | None) -> None:
        super().show_element(index)
        self.view.show_element(index)

    def refresh(self) -> None:
        if self._shown == self.expression:
            self.view.refresh()
        else:
            self._shown = self.expression
            self.view.show_tensor(self.expression)
            self.view.show_element(self.element)

    def _ask(self, command: Command) -> None:
        view = self.view
        self._questions.ask(
            command, view.show_snapshot, lambda error: view.show_error(command, error)
        )


class StorageTab(Tab[StorageView]):
    def __init__(self, bench: Workbench, view: StorageView, parent: QObject) -> None:
        super().__init__(bench, view, parent)
        view.window_requested.connect(self._read)
        view.element_selected.connect(self._choose)
        view.selection_cleared.connect(lambda: self._choose(None))
        view.cell_selected.connect(self._choose_cell)
        view.reader_activated.connect(self.selected)

    def show_tensor(self, expression: str) -> None:
        super().show_tensor(expression)
        if not expression:
            self.view.show_storage(None)

    def show_element(self, index: Index | None) -> None:
        super().show_element(index)
        self.view.show_element(index)
        if index is not None:
            self._locate(index=index)

    def show_cell(self, cell: int) -> None:
        """Show a cell, and which elements read it."""
        self.view.show_cell(cell)
        self._locate(cell=cell)

    def _choose_cell(self, cell: int) -> None:
        self._locate(cell=cell)
        if self.view.element is None:
            self.cell_selected.emit(cell)

    def refresh(self) -> None:
        if self.expression:
            self._read(*self.view.wanted())

    def _read(self, first: int | None, count: int) -> None:
        command = ReadStorageCommand(expression=self.expression, first=first, count=count)
        self._questions.ask(command, self._show, self._fail)

    def _show(self, snapshot: StorageSnapshot) -> None:
        self.view.show_storage(snapshot)
        if self.element is not None:
            self.show_element(self.element)

    def _fail(self, error: ErrorReport) -> None:
        self.view.show_storage(None, in_words(error))

    def _locate(self, index: Index | None = None, cell: int | None = None) -> None:
        command = LocateCommand(expression=self.expression, index=index, cell=cell)
        self._questions.ask(command, self._show_location, lambda _: self.view.show_location(None))

    def _show_location(self, location: LocationSnapshot) -> None:
        if location.expression == self.expression:
            self.view.show_location(location)


class AliasTab(Tab[AliasMapView]):
    def __init__(self, bench: Workbench, view: AliasMapView, parent: QObject) -> None:
        super().__init__(bench, view, parent)
        view.tensor_selected.connect(lambda name: self.selected.emit(name, None))

    def show_tensor(self, expression: str) -> None:
        super().show_tensor(expression)
        if not expression:
            self.view.show_aliases(AliasesSnapshot(storages=(), tensors=()))
        self.view.show_selected(expression)

    def refresh(self) -> None:
        self._questions.ask(
            AliasesCommand(), self._show, lambda error: self._bench.say(in_words(error))
        )

    def _show(self, snapshot: AliasesSnapshot) -> None:
        self.view.show_aliases(snapshot)
        self.view.show_selected(self.expression)


class _LineTab(Tab[L]):
    """A tab with a Python line and a picture of its result. The view makes the commands."""

    def __init__(self, bench: Workbench, view: L, parent: QObject) -> None:
        super().__init__(bench, view, parent)
        view.asked.connect(self._ask)
        view.run_requested.connect(self.run_requested)

    def forget(self) -> None:
        self._questions.drop()
        self.view.forget(_ENGINE_ENDED)

    def refresh(self) -> None:
        self.view.refresh()

    def _ask(self, command: Command) -> None:
        if self.view.isVisible():  # else it is refreshed as it comes to the front
            self._questions.ask(command, self.view.show_snapshot, self.view.show_error)


class OperationTab(_LineTab[OperationView]):
    def show_variables(self, variables: Sequence[Variable]) -> None:
        self.view.show_variables(variables)

    def show_tensor(self, expression: str) -> None:
        super().show_tensor(expression)
        self.view.show_expression(expression)

    def start_anew(self) -> None:
        self._questions.drop()
        self.view.start_anew()


class ShapeTab(_LineTab[ShapeView]):
    """Broadcasting, reductions, products and indexing."""

    def __init__(self, bench: Workbench, view: ShapeView, parent: QObject) -> None:
        super().__init__(bench, view, parent)
        self._shapes: dict[str, Index | None] = {}
        view.element_selected.connect(self.selected)

    def show_variables(self, variables: Sequence[Variable]) -> None:
        self._shapes = {v.name: v.shape for v in variables if v.kind == "tensor"}
        self.view.show_names(list(self._shapes))

    def show_tensor(self, expression: str) -> None:
        super().show_tensor(expression)
        if expression:
            self.view.show_expression(expression, self._shapes.get(expression))

    def start_anew(self) -> None:
        self._questions.drop()
        self.view.forget("")
