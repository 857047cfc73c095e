"""The storage of one tensor: its cells, the tensor's strides, and the readers of a cell."""

from __future__ import annotations

from html import escape

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import (
    QFormLayout,
    QLabel,
    QListWidget,
    QListWidgetItem,
    QWidget,
)

from engine.protocol import LocationSnapshot, StorageSnapshot
from widgets import make, theme
from widgets.memory.layout_sums import (
    Index,
    cell_of,
    element_name,
    has_element,
    index_of_position,
    sum_terms,
    sum_text,
)
from widgets.memory.storage_strip import EMPTY_TEXT, StorageStrip
from widgets.memory.strip_picture import BY_POSITION, dimension_color
from widgets.memory.written import written_words
from widgets.recording_note import RecordingNote
from widgets.text import format_bytes, format_shape
from widgets.theme import GRID, mono_font

MAX_WRAP = 512
_TARGET = Qt.ItemDataRole.UserRole


_NUMPY_TIP = (
    "An element of a NumPy array over the same bytes. Only tensors can be shown:"
    " torch.from_numpy(array) makes a tensor over these bytes."
)


class StorageView(QWidget):
    """Shows a `StorageSnapshot` and, for a chosen cell, a `LocationSnapshot`.

    After each cell of the console, which may have changed the tensor, the presenter asks for the
    cells of `wanted()`.
    """

    window_requested = Signal(object, int)
    """(first cell, count): visible cells that are not known yet. None for the first cell means the
    cell of the tensor's first element."""
    element_selected = Signal(tuple)
    """The index of the element that the chosen cell shows, or of another one that reads it."""
    cell_selected = Signal(int)
    """The number of a chosen cell, also of one that no element reads."""
    reader_activated = Signal(str, tuple)
    """(expression, index) of an element of another tensor that reads the same cell."""
    selection_cleared = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("storage_view")
        self._snapshot: StorageSnapshot | None = None
        self._index: Index | None = None
        self._facts = _label("storage_facts", "Strides and offset are counted in elements.")
        self._order = _label(
            "storage_contiguity",
            "A tensor is contiguous when its elements lie in its storage row by row. view() needs"
            " strides that fit; .contiguous() makes a copy in that order.",
        )
        self._strides = _label(
            "storage_strides",
            "The stride of a dimension is the number of cells from one element to the next along"
            " it. Each is drawn as an arc over the cells, from the chosen element.",
        )
        tip = "Where an element lies: offset + index · stride, summed."
        self._sum = _label("storage_sum", tip, wrap=False)
        self._sum.setFont(mono_font(13))
        self.strip = StorageStrip()
        self.recording = RecordingNote("storage", "it is not known what wrote to a tensor.")
        self._color = make.combo("storage_color_by", "Colour cells by")
        self._color.setToolTip(
            "A cell's colour shows the index of its element along a dimension, or the number of"
            " its element, counted row by row (later is darker)."
        )
        self._wrap = make.spin("storage_wrap", "Cells in a row", high=MAX_WRAP)
        self._wrap.setToolTip(
            "Cells in a row of the picture. The storage itself is one long line; auto breaks it"
            " where a stride ends, if that fits."
        )
        self._wrap.setSpecialValueText("auto")
        self._wrap.valueChanged.connect(self.strip.set_wrap)
        self._color.activated.connect(self._on_color)
        self.readers = QListWidget()
        make.named(self.readers, "storage_readers", "Elements that read the chosen cell")
        self.readers.setToolTip(
            "Every element of every tensor that reads the chosen cell, also inside modules, lists"
            " and dicts, and of NumPy arrays: writing through one of them changes all. Press"
            " Enter or double-click to go to one."
        )
        self.readers.setFont(mono_font(10))
        self.readers.setWordWrap(True)
        self.readers.itemActivated.connect(self._on_reader)
        self._readers_title = _label("storage_readers_title", "", "heading", wrap=False)
        self._lay_out()
        self.strip.window_requested.connect(self.window_requested)
        self.strip.cell_chosen.connect(self._on_cell)
        self.strip.cell_cleared.connect(self._on_cleared)
        theme.notifier.changed.connect(self._show_texts)
        self.show_storage(None)

    def _lay_out(self) -> None:
        left = make.page((self.strip, 1), self._sum, gap=GRID // 2)
        options = QFormLayout()
        options.setSpacing(GRID // 2)
        options.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        options.addRow("Colour by", self._color)
        options.addRow("Cells per row", self._wrap)
        parts = (self._readers_title, (self.readers, 1), options)
        right = make.page(*parts, gap=GRID // 2, margins=(GRID, 0, 0, 0))
        splitter = make.splitter(left, right, shares=(1,), sizes=(720, 200))
        words = (self._facts, self._order, self._strides)
        make.column(self.recording, *words, (splitter, 1), on=self, gap=GRID // 2, margins=GRID)

    # -- the snapshots ---------------------------------------------------------------------------

    def show_storage(self, snapshot: StorageSnapshot | None, empty_text: str = EMPTY_TEXT) -> None:
        """Show a window of a storage; without one, `empty_text`."""
        before = self._snapshot
        self._snapshot = snapshot
        other = before is None or snapshot is None or before.expression != snapshot.expression
        reshaped = before is not None and snapshot is not None and before.shape != snapshot.shape
        if other or reshaped:
            self._fill_colors()
            self.show_location(None)
            self._index = None
        self.strip.show_storage(snapshot, empty_text)
        if self._index is not None:
            self.show_element(self._index)
        self._show_texts()

    def show_element(self, index: Index | None) -> None:
        """Highlight the cell of an element, and show the sum that gives its number."""
        snapshot = self._snapshot
        if index is None or snapshot is None or not snapshot.cells:
            self._index = None
            self.strip.show_cell(None, None)
            self.show_location(None)
        elif has_element(snapshot, index):
            self._index = index
            self.strip.show_cell(cell_of(snapshot, index), index)
        self._show_texts()

    @property
    def element(self) -> Index | None:
        """The element whose cell is highlighted."""
        return self._index

    def show_cell(self, cell: int) -> None:
        """Highlight a cell that no element reads."""
        self._index = None
        self.strip.show_cell(cell, None)
        self._show_texts()

    def show_location(self, location: LocationSnapshot | None) -> None:
        """List all elements that read the chosen cell."""
        self.readers.clear()
        if location is None:
            self._readers_title.setText("Read by")
            self.readers.addItem(_plain_item("Choose a cell or an element to see what reads it."))
            return
        self._readers_title.setText(f"Cell {location.cell} is read by")
        for reader in location.readers:
            for index in reader.elements:
                name = element_name(reader.expression, index)
                item = QListWidgetItem(name)
                if reader.kind == "numpy":  # no view shows arrays, so there is no link to one
                    item.setText(f"{name} (NumPy)")
                    item.setToolTip(_NUMPY_TIP)
                else:
                    item.setData(_TARGET, (reader.expression, index))
                self.readers.addItem(item)
            if reader.more:
                self.readers.addItem(_plain_item(f"{reader.expression}: and more"))
        if not location.readers:
            self.readers.addItem(_plain_item("No element reads it: a gap."))
        if location.note:
            self.readers.addItem(_plain_item(location.note))

    def wanted(self) -> tuple[int | None, int]:
        """(first cell, count) for the next `ReadStorageCommand`."""
        return self.strip.wanted()

    def text(self, name: str) -> str:
        """One of the lines of text (facts, contiguity, sum) without its markup."""
        snapshot = self._snapshot
        if snapshot is None:
            return ""
        if name == "sum":
            if snapshot.cells is None:
                return ""
            if self._index is None:
                if self.strip.cell is not None:
                    return f"cell {self.strip.cell}: a gap, no element of {snapshot.expression}"
                return f"Click a cell, or choose an element of {snapshot.expression}"
            name_of = element_name(snapshot.expression, self._index)
            return f"{name_of} → {sum_text(snapshot, self._index)}"
        if name == "contiguity":
            told = snapshot.contiguity
            if told is None:
                return snapshot.note
            copied = f" .contiguous() would copy {format_bytes(told.copy_bytes)}."
            note = f" {snapshot.note}" if snapshot.note else ""
            return told.text + (copied if told.copy_bytes else "") + note
        return _facts(snapshot)

    # -- gestures --------------------------------------------------------------------------------

    def _on_cell(self, cell: int) -> None:
        snapshot = self._snapshot
        if snapshot is None:
            return
        at = cell - snapshot.first
        position = snapshot.positions[at] if 0 <= at < len(snapshot.positions) else -1
        self._index = index_of_position(snapshot.shape, position) if position >= 0 else None
        self.strip.show_cell(cell, self._index)
        self._show_texts()
        self.cell_selected.emit(cell)
        if self._index is not None:
            self.element_selected.emit(self._index)

    def _on_cleared(self) -> None:
        self.show_element(None)
        self.selection_cleared.emit()

    def _on_reader(self, item: QListWidgetItem) -> None:
        target = item.data(_TARGET)
        if target is not None:
            self.reader_activated.emit(target[0], tuple(target[1]))

    def _on_color(self, row: int) -> None:
        self.strip.color_by(self._color.itemData(row))

    # -- texts -----------------------------------------------------------------------------------

    def _fill_colors(self) -> None:
        """Offer the dimensions to colour by. With two or more, the outermost is the default."""
        shape = self._snapshot.shape if self._snapshot else ()
        long = [dim for dim, n in enumerate(shape) if n > 1]
        with QSignalBlocker(self._color):
            self._color.clear()
            for dim in range(len(shape)):
                self._color.addItem(f"dim {dim}", dim)
            self._color.addItem("position", BY_POSITION)
            self._color.setCurrentIndex(long[0] if len(long) > 1 else len(shape))
        self.strip.color_by(self._color.currentData())

    def _show_texts(self) -> None:
        snapshot = self._snapshot
        there = snapshot is not None and bool(snapshot.cells)
        for field in (self._color, self._wrap):
            field.setEnabled(there)
        self._facts.setText(self.text("facts"))
        self._order.setText(self.text("contiguity"))
        told = snapshot.contiguity if snapshot else None
        role = "success" if told is not None and told.is_contiguous else ""
        make.set_role(self._order, role)
        self._strides.setText(_strides_html(snapshot) if snapshot is not None and there else "")
        self._show_sum()
        self.strip.setAccessibleDescription(self.text("sum"))

    def _show_sum(self) -> None:
        snapshot, index = self._snapshot, self._index
        if snapshot is None or index is None or not snapshot.cells:
            self._sum.setText(f"<span style='font-size:10pt'>{escape(self.text('sum'))}</span>")
            return
        terms = (
            f"<span style='color:{dimension_color(dim).name()}'>{term}</span>"
            for dim, term in enumerate(sum_terms(snapshot, index))
        )
        parts = (f"offset {snapshot.offset}", *terms)
        name = escape(element_name(snapshot.expression, index))
        self._sum.setText(f"{name} → {' + '.join(parts)} = <b>{cell_of(snapshot, index)}</b>")


def _facts(snapshot: StorageSnapshot) -> str:
    parts = [f"{snapshot.expression}: {format_shape(snapshot.shape)} {snapshot.dtype}"]
    if snapshot.cells is not None:
        strides = ", ".join(map(str, snapshot.strides)) + (
            "," if len(snapshot.strides) == 1 else ""
        )
        parts += [
            f"strides ({strides})",
            f"offset {snapshot.offset}",
            f"storage {snapshot.cells:,} cells, {format_bytes(snapshot.storage_bytes)}",
        ]
    if snapshot.version is not None:
        parts.append(f"version {snapshot.version}")
    if snapshot.written_by is not None:
        parts.append(f"last written by {written_words(snapshot.written_by)}")
    return " · ".join(parts)


def _strides_html(snapshot: StorageSnapshot) -> str:
    """The strides as HTML, each in the colour of its arc."""
    entries = []
    for dim, (size, stride) in enumerate(zip(snapshot.shape, snapshot.strides, strict=True)):
        step = f"stride {stride} ({format_bytes(stride * snapshot.element_bytes)})"
        if stride == 0:
            step = "stride 0: all read one cell"
        color = dimension_color(dim).name()
        entries.append(f"<b style='color:{color}'>⌒ dim {dim}</b> {size} × {step}")
    return " &nbsp; ".join(entries) or "No dimensions: one element, one cell."


def _label(name: str, tip: str, role: str = "", wrap: bool = True) -> QLabel:
    label = make.label("", role, name, tip=tip, wrap=wrap)
    label.setMinimumWidth(1)  # a long line is cut off instead of widening the window
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return label


def _plain_item(text: str) -> QListWidgetItem:
    item = QListWidgetItem(text)
    item.setFlags(Qt.ItemFlag.NoItemFlags)
    return item
