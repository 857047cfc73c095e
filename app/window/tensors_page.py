"""The Tensors workspace's page: tabs for one tensor, with variables and console around them."""

from __future__ import annotations

from PySide6.QtCore import Qt

from app.window.docked_page import DockedPage
from widgets import make
from widgets.console.console_view import ConsoleView
from widgets.console.history import History
from widgets.console.variables_view import VariablesView
from widgets.memory.alias_map import AliasMapView
from widgets.memory.storage_view import StorageView
from widgets.operations.create_form import CreateForm
from widgets.operations.operation_view import OperationView
from widgets.shapes.broadcast_view import BroadcastView
from widgets.shapes.pick_view import PickView
from widgets.shapes.product_view import ProductView
from widgets.shapes.reduction_view import ReductionView
from widgets.values.tensor_bar import TensorBar
from widgets.values.values_view import ValuesView


class TensorsPage(DockedPage):
    """`history` is the console's, with earlier sessions."""

    def __init__(self, history: History | None = None) -> None:
        super().__init__("tensors_page")
        self.variables = VariablesView()
        self.create_form = CreateForm()
        self.console = ConsoleView(history)
        self.bar = TensorBar()
        self.values = ValuesView()
        self.storage = StorageView()
        self.aliases = AliasMapView()
        self.operation = OperationView()
        self.broadcast = BroadcastView()
        self.reduction = ReductionView()
        self.product = ProductView()
        self.pick = PickView()
        self._make_middle()
        self._make_docks()
        self.setFocusProxy(self.console)

    def _make_middle(self) -> None:
        tabs = (
            (self.values, "Values", "Its elements as numbers and pictures, to read and to edit"),
            (
                self.storage,
                "Storage",
                "Its storage, cell by cell, and which tensors read each cell",
            ),
            (self.aliases, "Aliases", "All tensors, grouped by the storage that they share"),
            (self.operation, "Operation", "What an operation returns, a view or a copy, and why"),
            (self.broadcast, "Broadcast", "How different shapes are broadcast to one shape"),
            (
                self.reduction,
                "Reduce",
                "Which elements sum, mean, max and others reduce to each result",
            ),
            (
                self.product,
                "Multiply",
                "Which row and column give each element: matmul, bmm, dot, einsum",
            ),
            (self.pick, "Index", "Which elements an index picks: slices, masks, gather"),
        )
        rows = ((view, title, f"{tip}.") for view, title, tip in tabs)
        self.tabs = make.tabs("tensor_tabs", rows)
        self.setCentralWidget(make.page(self.bar, (self.tabs, 1), gap=0))

    def _make_docks(self) -> None:
        left, bottom = Qt.DockWidgetArea.LeftDockWidgetArea, Qt.DockWidgetArea.BottomDockWidgetArea
        self.setCorner(Qt.Corner.BottomLeftCorner, left)
        self.variables_dock = self._dock("Variables", self.variables, left)
        self.create_dock = self._dock("Create", self.create_form, left)
        self.console_dock = self._dock("Console", self.console, bottom)
        self.resizeDocks([self.variables_dock], [384], Qt.Orientation.Horizontal)
        left_column = [self.variables_dock, self.create_dock]
        self.resizeDocks(left_column, [368, 464], Qt.Orientation.Vertical)
        self.resizeDocks([self.console_dock], [264], Qt.Orientation.Vertical)
