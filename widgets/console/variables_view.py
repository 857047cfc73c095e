"""The list of the console's variables."""

from __future__ import annotations

from PySide6.QtCore import (
    QItemSelectionModel,
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    QRectF,
    QSortFilterProxyModel,
    Qt,
    Signal,
)
from PySide6.QtGui import QGuiApplication, QKeyEvent, QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHeaderView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from engine.protocol import Variable, VariablesSnapshot
from widgets import make, theme
from widgets.console.variables_model import (
    COLUMNS,
    DTYPE,
    MEMORY,
    NAME,
    SHAPE,
    VALUE,
    VARIABLE_ROLE,
    VariablesModel,
)
from widgets.memory.storage_color import paint_storage_chip, storage_color

ROW_HEIGHT = 24
_WIDTHS = (44, 64, 64, 60, 36, 56, 120, 72, 56)
_WIDEST = 240
MEASURED_ROWS = 100
"""How many rows are measured to find how wide a column must be; those in sight always are."""


class VariablesView(QWidget):
    """Lists the variables. `variable_selected(name)` is emitted when the user selects one.
    `run_requested(source)` asks to run Python (the menu's `del x`), and `graph_requested(name)` to
    show the autograd graph of a tensor. Variables that share memory with the selected one are
    tinted in its colour. The selection stays, by name, when another list is shown."""

    variable_selected = Signal(str)
    run_requested = Signal(str)
    graph_requested = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("variables")
        self._selected = ""
        self._following = False
        self.model = VariablesModel(self)
        self._filter = _Filter(self)
        self._filter.setSourceModel(self.model)
        self.filter_edit = make.field("variables_filter", "Filter variables")
        self.filter_edit.setPlaceholderText("Filter by name, shape, dtype…")
        self.filter_edit.setToolTip("Show only the variables whose row holds this text.")
        self.filter_edit.setClearButtonEnabled(True)
        self.filter_edit.textChanged.connect(self._filter_by)
        self.table = _Table()
        self.table.setModel(self._filter)
        self.table.delete_requested.connect(self._delete_selected)
        self.table.customContextMenuRequested.connect(self._open_menu)
        self.table.selectionModel().currentRowChanged.connect(self._on_current)
        header = self.table.horizontalHeader()
        for column, width in enumerate(_WIDTHS):
            header.resizeSection(column, width)
        self._chips = _Chip(self)
        self._rows = _Row(self)
        self.table.setItemDelegate(self._rows)
        self.table.setItemDelegateForColumn(MEMORY, self._chips)
        self.empty = make.empty(
            "No variables yet. Create a tensor below, or type Python.", "variables_empty"
        )
        self._held = make.label("", "heading", "variables_held")
        self._held.hide()
        self._left_out = make.label("", "muted", "variables_left_out")
        self._left_out.hide()
        half = theme.GRID // 2
        parts = (self._held, self.filter_edit, (self.empty, 1), (self.table, 1), self._left_out)
        make.column(*parts, on=self, gap=half, margins=(0, half, 0, 0))
        theme.notifier.changed.connect(self.table.viewport().update)
        self.show_variables(VariablesSnapshot(variables=()))

    def show_variables(self, snapshot: VariablesSnapshot) -> None:
        """Show the list, without a column of values if none has one. If the selected variable is
        not in it, none is selected."""
        self._following = True
        self.model.set_variables(snapshot.variables)
        self._following = False
        has_values = any(COLUMNS[VALUE].text(variable) for variable in snapshot.variables)
        self.table.setColumnHidden(VALUE, not has_values)
        for column in (NAME, SHAPE, DTYPE, VALUE):
            self._make_room_for(column)
        if not any(variable.name == self._selected for variable in snapshot.variables):
            self._selected = ""
        self.select(self._selected)
        some = bool(snapshot.variables)
        self.empty.setVisible(not some)
        self.table.setVisible(some)
        self.filter_edit.setVisible(some)
        self._left_out.setVisible(snapshot.left_out > 0)
        self._left_out.setText(f"{snapshot.left_out:,} more are not listed.")

    def show_held(self, words: str) -> None:
        """Say where the code is held whose variables are listed; "" if none is held."""
        make.tell(self._held, words)

    def select(self, name: str) -> None:
        """Select `name` without emitting; an empty name selects none."""
        self._selected = name
        self._following = True
        row = next((i for i, v in enumerate(self.model.variables) if v.name == name), -1)
        index = self._filter.mapFromSource(self.model.index(row, NAME)) if row >= 0 else None
        selection = self.table.selectionModel()
        if index is None or not index.isValid():
            selection.clear()
        else:
            selection.setCurrentIndex(
                index,
                QItemSelectionModel.SelectionFlag.ClearAndSelect
                | QItemSelectionModel.SelectionFlag.Rows,
            )
        self._following = False
        self.table.viewport().update()

    @property
    def selected(self) -> str:
        """The name of the selected variable; empty without one."""
        return self._selected

    def variable(self, name: str) -> Variable | None:
        return next((v for v in self.model.variables if v.name == name), None)

    def shares_with_selected(self, variable: Variable) -> bool:
        """Whether this is another variable than the selected one, on the same storage."""
        chosen = self.variable(self._selected)
        return (
            chosen is not None
            and chosen.storage is not None
            and chosen.storage == variable.storage
            and chosen.name != variable.name
        )

    def _on_current(self, current: QModelIndex) -> None:
        if self._following or not current.isValid():
            return
        self._selected = current.data(VARIABLE_ROLE).name
        self.table.viewport().update()
        self.variable_selected.emit(self._selected)

    def _make_room_for(self, column: int) -> None:
        """Widen a column if its texts are cut off, up to _WIDEST. It never becomes narrower."""
        header = self.table.horizontalHeader()
        wanted = min(self.table.sizeHintForColumn(column), _WIDEST)
        header.resizeSection(column, max(header.sectionSize(column), wanted))

    def _filter_by(self, text: str) -> None:
        self._following = True
        self._filter.setFilterFixedString(text)
        self._following = False
        self.select(self._selected)

    def _delete_selected(self) -> None:
        if self._selected:
            self.run_requested.emit(f"del {self._selected}")

    def _open_menu(self, at: QPoint) -> None:
        index = self.table.indexAt(at)
        if not index.isValid():
            return
        variable: Variable = index.data(VARIABLE_ROLE)
        name = variable.name
        menu = make.context_menu(self)
        menu.addAction("Copy name", lambda: QGuiApplication.clipboard().setText(name))
        graph = menu.addAction("Show its autograd graph", lambda: self.graph_requested.emit(name))
        graph.setEnabled(variable.grad_fn is not None)
        menu.addAction(f"Delete: del {name}", lambda: self.run_requested.emit(f"del {name}"))
        make.pop_up(menu, self.table.viewport().mapToGlobal(at))


class _Table(QTableView):
    delete_requested = Signal()

    def __init__(self) -> None:
        super().__init__()
        make.named(self, "variables_table", "Variables of the console")
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(ROW_HEIGHT)
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.horizontalHeader().setHighlightSections(False)
        # Texts are measured after each cell, of no more rows than these: all of 2,000 took 0.4 s.
        self.horizontalHeader().setResizeContentsPrecision(MEASURED_ROWS)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Delete:
            self.delete_requested.emit()
        else:
            super().keyPressEvent(event)


class _Filter(QSortFilterProxyModel):
    """Passes the rows that contain the text in any column, whatever the case of letters."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setFilterKeyColumn(-1)
        self.setFilterCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)


class _Row(QStyledItemDelegate):
    """Paints the tint under rows that share memory with the selected variable."""

    def __init__(self, view: VariablesView) -> None:
        super().__init__(view)
        self._view = view

    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> None:
        variable: Variable = index.data(VARIABLE_ROLE)
        if self._view.shares_with_selected(variable):
            assert variable.storage is not None
            tint = storage_color(variable.storage)
            tint.setAlpha(46)
            painter.fillRect(option.rect, tint)  # pyright: ignore[reportAttributeAccessIssue]
        super().paint(painter, option, index)


class _Chip(_Row):
    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> None:
        variable: Variable = index.data(VARIABLE_ROLE)
        super().paint(painter, option, index)
        if variable.storage is not None:
            rect = QRectF(option.rect)  # pyright: ignore[reportAttributeAccessIssue]
            paint_storage_chip(painter, rect, variable.storage)

    def displayText(self, value: object, locale: object) -> str:
        return ""  # the number is on the chip


assert len(_WIDTHS) == len(COLUMNS)
