"""The numbers in a tensor: a table, pictures of it, its statistics, and one element in bits."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QWidget

from engine.protocol import (
    BitsCommand,
    BitsSnapshot,
    Command,
    DimCut,
    ErrorReport,
    LinesCommand,
    LinesSnapshot,
    ReadValuesCommand,
    Snapshot,
    StatisticsCommand,
    StatisticsSnapshot,
    ValuesSnapshot,
)
from widgets import make
from widgets.theme import GRID
from widgets.values.bit_view import BitView
from widgets.values.cut import (
    Index,
    assignment,
    cell_element,
    element_cell,
    element_text,
    free_dims,
    literal_for,
    picture_element,
)
from widgets.values.line_view import MAX_LINES
from widgets.values.number_grid import Window
from widgets.values.picture_grid import Cell
from widgets.values.slice_bar import SliceBar
from widgets.values.statistics_line import StatisticsLine
from widgets.values.value_tabs import ValueTabs

EMPTY_TEXT = "Choose a tensor in the list of variables, or make one with the form Create."


class ValuesView(QWidget):
    """Shows one tensor under a slice.

    It asks the engine: the presenter sends each command of `asked`, and passes its answer to
    `show_snapshot` or `show_error`. The next window of cells is asked for once the last has been
    answered, so that scrolling does not outrun the engine. A hidden view asks for nothing.
    """

    asked = Signal(object)
    """A Command to send."""
    run_requested = Signal(str)
    """A line of Python that changes an element."""
    element_selected = Signal(tuple)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("values_view")
        self._expression = ""
        self._slice = self._slice_shown = ""
        self._element: Index | None = None
        self._shown: ValuesSnapshot | None = None
        self._dims: tuple[DimCut, ...] = ()
        self._asked: ReadValuesCommand | None = None
        self._more_wanted = False
        self._slice_entered = False  # the user entered a slice that has not been answered yet
        self._stale = self._look_due = False

        self.slice_bar = SliceBar()
        self.tabs = tabs = ValueTabs()
        self.table, self.heat_map, self.images = tabs.table, tabs.heat_map, tabs.images
        self.histogram, self.line = tabs.histogram, tabs.line
        self.statistics = StatisticsLine()
        self.bits = BitView()
        self._readout = make.text("values_readout", mono=9, width="own")
        self._readout.setToolTip(
            "The selected element, and the tensor's version: torch counts every in-place write"
        )
        self._note = make.label("", "muted", "values_note", wrap=True)
        self._problem = make.label("", "error", "values_problem", wrap=True)
        for label in (self._note, self._problem):
            label.setTextFormat(Qt.TextFormat.PlainText)
        self._lay_out()
        self._connect()
        self.show_tensor("")

    def _lay_out(self) -> None:
        words = (self._problem, self.statistics, self._readout, self.bits)
        parts = (self.slice_bar, self._note, (self.tabs, 1), *words)
        make.column(*parts, on=self, gap=GRID // 2, margins=GRID)

    def _connect(self) -> None:
        self.slice_bar.slice_changed.connect(self._change_slice)
        self.table.window_changed.connect(self._ask_for_window)
        self.table.cell_selected.connect(
            lambda row, column: self._choose(cell_element(self._dims, row, column))
        )
        self.table.cell_edited.connect(self._assign)
        self.table.edit_refused.connect(self._show_problem)
        self.heat_map.set_cell_names(self._cell_name)
        self.heat_map.cell_chosen.connect(lambda cell: self._choose(self._picture_element(cell)))
        self.line.element_chosen.connect(
            lambda row, column: self._choose(cell_element(self._dims, row, column))
        )
        self.line.more_wanted.connect(lambda: self._trace(restart=False))
        self.tabs.currentChanged.connect(self._show_tab)
        self.statistics.more_wanted.connect(lambda: self._count(restart=False))

    # -- the tensor ------------------------------------------------------------------------------

    def show_tensor(self, expression: str, empty_text: str = EMPTY_TEXT) -> None:
        """Show another tensor from its first element; with an empty expression, `empty_text`."""
        self._expression = expression
        self._slice = self._slice_shown = ""
        self._element = self._shown = self._asked = None
        self._dims = ()
        self._more_wanted = self._slice_entered = self._look_due = False
        self._show_parts(bool(expression))
        waiting = "Reading …" if expression else empty_text
        self.tabs.show_empty(waiting)
        self.histogram.show_histogram(None, waiting)
        self.statistics.show_statistics(None)
        self.bits.show_bits(None)
        self._show_problem("")
        self._show_words()
        self.refresh()

    def refresh(self) -> None:
        """Read the visible parts again, after a cell that may have changed the tensor."""
        self._stale = not self.isVisible()
        if not self._expression or self._stale:
            return
        self._asked = None  # a lost engine does not answer
        self._ask()
        self._look_through()
        self._ask_for_bits()

    def show_element(self, element: Index | None) -> None:
        """Highlight an element, without emitting."""
        if element == self._element:
            return
        self._element = element
        self._light_up()
        self._show_words()
        self._ask_for_bits()

    def element(self) -> Index | None:
        return self._element

    # -- answers ---------------------------------------------------------------------------------

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Show an answer, unless it is about another tensor, slice or window than is shown now."""
        if isinstance(snapshot, ValuesSnapshot):
            self._show_values(snapshot)
        elif isinstance(snapshot, StatisticsSnapshot):
            self._show_statistics(snapshot)
        elif isinstance(snapshot, LinesSnapshot):
            self._show_lines(snapshot)
        elif isinstance(snapshot, BitsSnapshot):
            self._show_bits(snapshot)

    def _show_values(self, values: ValuesSnapshot) -> None:
        asked = self._asked
        if asked is None or _cells_of(values) != _cells_of(asked):
            return  # about another tensor or window
        more_wanted = self._more_wanted
        fits = self._shown is not None and values.dims == self._dims
        self._shown, self._dims, self._slice_shown = values, values.dims, values.slice
        self._show_parts(True)
        # A refused slice stays in the field, with its error, until another slice is entered.
        if values.slice == self._slice and (self._slice_entered or not fits):
            self._slice_entered = False
            self.slice_bar.show_dims(values.expression, values.dims)
        if not fits:
            self.tabs.show_size(values)
        if values.cells or not values.picture:
            self.table.show_cells(values.row_start, values.column_start, values.cells)
        # The table has asked for cells as it got its size, before it got these.
        self._asked, self._more_wanted = None, more_wanted
        self._ask_for_window(self.table.cells_in_sight())
        editable = values.edit != "" and not values.note.startswith("unreadable")
        self.table.set_editing(self._check if editable else None)
        self.tabs.show_pictures(values)
        self._light_up()
        self._show_words()
        if self._more_wanted:
            self._ask()
        if self._look_due:
            self._look_now()

    def _show_statistics(self, found: StatisticsSnapshot) -> None:
        if (found.expression, found.slice) != (self._expression, self._slice):
            return
        self.histogram.show_histogram(found.histogram, found.note)
        self.statistics.show_statistics(found if self.isVisible() else None)

    def _show_lines(self, found: LinesSnapshot) -> None:
        if (found.expression, found.slice) == (self._expression, self._slice):
            self.line.show_lines(found)

    def _show_bits(self, bits: BitsSnapshot) -> None:
        if (bits.expression, bits.index) == (self._expression, self._element):
            self.bits.show_bits(bits)

    def show_error(self, command: Command, error: ErrorReport) -> None:
        """Show why `command` failed. A slice that no longer fits the tensor is removed."""
        if isinstance(command, BitsCommand):
            self.bits.show_bits(None)
        elif (asked := self._asked) is not None and command is asked:
            self._asked = None
            if self._slice != asked.slice:  # the user has entered another slice since
                self._ask()
                return
            self._slice_entered = False
            words = f"{error.message} {error.hint}".strip()
            if self._slice != self._slice_shown:  # a slice just typed: keep the last valid one
                self._slice = self._slice_shown
                self.slice_bar.show_error(words)
                self._look_through()
            elif self._slice:
                self._change_slice("")
            else:
                self._shown, self._dims = None, ()
                self._show_parts(False)
                self.tabs.show_empty(words)

    # -- asking ----------------------------------------------------------------------------------

    def _change_slice(self, text: str) -> None:
        self._slice, self._slice_entered = text, True
        self._ask()
        self._look_through()

    def _look_through(self) -> None:
        """Ask for statistics and lines, which read all elements, after the visible cells."""
        self.statistics.start()
        self._look_due = True
        if self._asked is None:
            self._look_now()

    def _look_now(self) -> None:
        self._look_due = False
        self._count(restart=True)
        self._trace(restart=True)

    def _show_tab(self) -> None:
        self._ask()
        self._trace(restart=True)

    def _ask_for_window(self, window: Window) -> None:
        in_sight = self._shown is not None and self.tabs.in_sight(self.table)
        if in_sight and not self._is_known(window):
            self._ask()

    def _is_known(self, window: Window) -> bool:
        """Whether all cells of a window are known."""
        row, rows, column, columns = window
        corners = ((row, column), (row + rows - 1, column + columns - 1))
        return not rows or not columns or all(self.table.text_at(*at) is not None for at in corners)

    def _ask(self) -> None:
        """Ask for the visible cells: now, or after the answer that is awaited."""
        if not self._expression or not self.isVisible():
            return
        if self._asked is not None:
            self._more_wanted = True
            return
        self._more_wanted = False
        row, rows, column, columns = 0, 0, 0, 0
        picture = self.tabs.picture_in_sight
        if not picture:
            row, rows, column, columns = self.table.cells_in_sight()
            if self._shown is None or self._slice != self._slice_shown:
                # The size of the cut is not known yet: ask for as many cells as may be visible.
                rows, columns = max(rows, 40), max(columns, 24)
        self._asked = command = ReadValuesCommand(
            expression=self._expression,
            slice=self._slice,
            row_start=row,
            row_count=rows,
            column_start=column,
            column_count=columns,
            picture=picture,
        )
        self.asked.emit(command)

    def _count(self, restart: bool) -> None:
        if self._expression and self.isVisible():
            self._send(
                StatisticsCommand(expression=self._expression, slice=self._slice, restart=restart)
            )

    def _trace(self, restart: bool) -> None:
        """Ask for the lines, if they are visible."""
        in_sight = self.tabs.in_sight(self.line) and self.isVisible()
        if self._expression and in_sight:
            self._send(
                LinesCommand(
                    expression=self._expression, slice=self._slice, lines=MAX_LINES, restart=restart
                )
            )

    def _ask_for_bits(self) -> None:
        if self._element is None or not self._expression:
            self.bits.show_bits(None)
        elif self.isVisible():
            self._send(BitsCommand(expression=self._expression, index=self._element))

    def _send(self, command: Command) -> None:
        self.asked.emit(command)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._stale:
            self.refresh()

    # -- showing ---------------------------------------------------------------------------------

    def _show_parts(self, visible: bool) -> None:
        """Show or hide the widgets that are about the tensor."""
        for part in (self.slice_bar, self.statistics, self._readout, self.bits):
            part.setVisible(visible)

    def _light_up(self) -> None:
        cell = None if self._element is None else element_cell(self._dims, self._element)
        if self._shown is not None and cell != self.table.selected():
            self.table.select(cell)

    def _show_words(self) -> None:
        shown = self._shown
        make.tell(self._note, "" if shown is None else shown.note)
        words = []
        if shown is not None:
            if self._element is not None:
                words.append(self._element_words(self._element))
            if shown.version is not None:
                words.append(f"version {shown.version}")
            if shown.edit == "":
                words.append("read only")
        self._readout.setText("  ·  ".join(words))

    def _element_words(self, element: Index) -> str:
        name = element_text(self._expression, element)
        cell = element_cell(self._dims, element)
        text = None if cell is None else self.table.text_at(*cell)
        return f"{name} = {text}" if text else name

    def _show_problem(self, text: str) -> None:
        make.tell(self._problem, text)

    # -- choosing and editing --------------------------------------------------------------------

    def _choose(self, element: Index) -> None:
        self._show_problem("")
        self.show_element(element)
        self.element_selected.emit(element)

    def _check(self, text: str) -> str:
        assert self._shown is not None
        return literal_for(self._shown.dtype, text)

    def _assign(self, row: int, column: int, literal: str) -> None:
        self._show_problem("")
        assert self._shown is not None
        element = cell_element(self._dims, row, column)
        under_no_grad = self._shown.edit == "no_grad"
        self.run_requested.emit(assignment(self._expression, element, literal, under_no_grad))

    def _picture_element(self, cell: Cell) -> Index:
        assert self._shown is not None
        return picture_element(self._dims, self._shown.picture_step, cell)

    def _cell_name(self, cell: Cell) -> str:
        if self._shown is None or not free_dims(self._dims):
            return self._expression
        return element_text(self._expression, self._picture_element(cell))


def _cells_of(message: ReadValuesCommand | ValuesSnapshot) -> tuple[object, ...]:
    return message.expression, message.slice, message.row_start, message.column_start
