"""The Tensors workspace: all views show the same selected tensor and element."""

from __future__ import annotations

import re

from PySide6.QtCore import QObject

from app.presenters.tensors.console import ConsolePresenter
from app.presenters.tensors.running import RunningPresenter
from app.presenters.tensors.tabs import (
    AliasTab,
    Index,
    OperationTab,
    ShapeTab,
    StorageTab,
    Tab,
    ValuesTab,
)
from app.selection.finding import expression_of
from app.selection.references import Element, Reference, StorageCell
from app.window.tensors_page import TensorsPage
from app.workbench import Workbench
from engine.protocol import (
    ReadVariablesCommand,
    ReadySnapshot,
    Variable,
    VariablesSnapshot,
)

VARIABLES, VALUES, STORAGE = "variables", "values", "storage"
_NAME = re.compile(r"\w*")


class TensorsPresenter(QObject):
    """Connects the views of the Tensors workspace to the engine: they show one tensor and one
    element. After each cell of the console, the visible view is refreshed."""

    def __init__(
        self, bench: Workbench, page: TensorsPage, console: ConsolePresenter, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._bench, self.page, self.console = bench, page, console
        self._variables: dict[str, Variable] = {}
        self.expression = ""
        self.element: Index | None = None
        self._storage = StorageTab(bench, page.storage, self)
        shapes = (page.broadcast, page.reduction, page.product, page.pick)
        self._tabs: tuple[Tab, ...] = (
            ValuesTab(bench, page.values, self),
            self._storage,
            AliasTab(bench, page.aliases, self),
            OperationTab(bench, page.operation, self),
            *(ShapeTab(bench, view, self) for view in shapes),
        )
        for tab in self._tabs:
            tab.run_requested.connect(page.console.submit)
            tab.selected.connect(self._choose)
            tab.cell_selected.connect(self._choose_cell)
        page.variables.variable_selected.connect(lambda name: self._choose(name, view=VARIABLES))
        page.variables.run_requested.connect(page.console.submit)
        page.create_form.run_requested.connect(page.console.submit)
        page.bar.expression_entered.connect(self._choose)
        page.bar.element_cleared.connect(lambda: self._choose(self.expression))
        page.tabs.currentChanged.connect(self._refresh)
        bench.store.on(VariablesSnapshot, self._show_variables)
        bench.link.became_ready.connect(self._on_new_engine)
        bench.link.ended.connect(self._on_engine_ended)
        bench.files.opened.connect(self._on_opened)
        bench.selection.changed.connect(self._follow)
        bench.selection.views[page.variables] = VARIABLES
        bench.selection.views[page.values] = VALUES
        bench.selection.views[page.storage] = STORAGE
        RunningPresenter(bench, page.variables, self)
        self._show_devices()
        if bench.link.state == "ready":
            bench.send(ReadVariablesCommand())

    def select(self, expression: str, element: Index | None = None) -> None:
        """Select a tensor, and one of its elements, in every view."""
        if expression != self.expression:
            self.expression = expression
            for tab in self._tabs:
                tab.show_tensor(expression)
            self.page.variables.select(expression)
            self._refresh()
        self.element = element
        for tab in self._tabs:
            tab.show_element(element)
        self._show_bar()

    # -- selection -------------------------------------------------------------------------------

    def _choose(self, expression: str, element: Index | None = None, view: str = VALUES) -> None:
        """The user has chosen a tensor, or one of its elements."""
        self.select(expression, element)
        if expression:
            self._bench.selection.choose(Element(expression, element), view)

    def _choose_cell(self, cell: int) -> None:
        self._bench.selection.choose(StorageCell(self.expression, cell), STORAGE)

    def _follow(self, reference: Reference | None) -> None:
        """Select the tensor that another view has chosen, unless the user works here."""
        if self.page.isVisible():
            return
        expression = expression_of(reference, self._bench.known)
        if expression:
            self._select_of(expression, reference)

    def show_values(self, reference: Reference) -> None:
        """Show the values of the tensor that a reference leads to."""
        self.page.tabs.setCurrentWidget(self.page.values)
        self._select_of(expression_of(reference, self._bench.known), reference)

    def show_storage(self, reference: Reference) -> None:
        """Show the storage of the tensor that a reference leads to."""
        self.page.tabs.setCurrentWidget(self.page.storage)
        self._select_of(expression_of(reference, self._bench.known), reference)

    def _select_of(self, expression: str, reference: Reference | None) -> None:
        """Select the tensor, and the element, that a reference leads to."""
        match reference:
            case Element(_, index) if index is not None:
                self.select(expression, index)
            case StorageCell(_, cell):
                self.select(expression)
                self._storage.show_cell(cell)
            case _:
                self.select(expression)

    # -- what the reader wants -------------------------------------------------------------------

    def type_python(self) -> None:
        self.page.console_dock.show()
        self.page.console.setFocus()

    def submit(self, source: str) -> None:
        """Run Python in the console, as if the user had typed it there."""
        self.page.console.submit(source)

    def create(self) -> None:
        self.page.create_dock.show()
        self.page.create_form.factory_box.setFocus()

    def show(self) -> None:
        self.page.bar.expression.setFocus()
        self.page.bar.expression.selectAll()

    def run_again(self) -> None:
        self.console.run_again()

    # -- what is to be shown ---------------------------------------------------------------------

    def _on_engine_ended(self) -> None:
        self._show_variables(VariablesSnapshot(variables=()))
        for tab in self._tabs:
            tab.forget()

    def _on_new_engine(self) -> None:
        self._show_devices()
        self._refresh()  # a typed shape or number needs no variable

    def _on_opened(self) -> None:
        self._show_variables(VariablesSnapshot(variables=()))  # the engine sends the new ones
        for tab in self._tabs:
            tab.start_anew()

    def _show_devices(self) -> None:
        ready = self._bench.newest(ReadySnapshot)
        if ready is not None:
            self.page.create_form.set_devices(tuple(device.name for device in ready.devices))

    def _show_variables(self, snapshot: VariablesSnapshot) -> None:
        self.page.variables.show_variables(snapshot)
        self.page.create_form.show_variables(snapshot)
        before = self._variables
        self._variables = {variable.name: variable for variable in snapshot.variables}
        for tab in self._tabs:
            tab.show_variables(snapshot.variables)
        tensors = [v.name for v in snapshot.variables if v.kind == "tensor"]
        new = [name for name in tensors if name not in before]
        wanted = self.expression
        if new:  # show what the cell has made
            wanted = new[-1]
        elif _NAME.findall(wanted)[0] not in {"canvas", "lab", *self._variables}:
            wanted = tensors[-1] if tensors else ""
        if wanted != self.expression:
            self.select(wanted)
        else:
            self._keep_element()
            self._show_bar()
            self._refresh()

    def _keep_element(self) -> None:
        """Drop the selected element once the tensor's shape has no such element."""
        variable = self._variables.get(self.expression)
        if variable is None or variable.shape is None or self.element is None:
            return
        shape, element = variable.shape, self.element
        if len(shape) != len(element) or any(i >= n for i, n in zip(element, shape, strict=True)):
            self.select(self.expression)

    def _show_bar(self) -> None:
        self.page.bar.show_tensor(self.expression, self._variables.get(self.expression))
        self.page.bar.show_element(self.element)

    def _refresh(self) -> None:
        in_sight = self.page.tabs.currentWidget()
        for tab in self._tabs:
            if tab.view is in_sight:
                tab.refresh()
