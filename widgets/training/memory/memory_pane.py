"""The memory of one step over its operations, with the tensors that hold it."""

from __future__ import annotations

import html

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QStackedWidget, QWidget

from engine.protocol import MemoryBlock, MemoryCurveSnapshot, MemoryOp
from widgets import make, theme
from widgets.charts.stacked_chart import Layer, StackedChart
from widgets.flow_layout import FlowLayout
from widgets.table import ReadTable
from widgets.text import format_bytes
from widgets.theme import GRID
from widgets.training.memory.segment_picture import SegmentPicture
from widgets.training.memory.words import (
    TITLES,
    allocated_text,
    block_name,
    color_of_kind,
    op_text,
    summary,
    unit_of,
)
from widgets.vertical_scroll import VerticalScroll

MAX_ROWS = 100
EMPTY = (
    "Where does the memory of a step go?\n\nMeasure runs two steps on copies of the weights and"
    " follows every storage of the second: weights, gradients, the optimizer's state, what forward"
    " saves for backward, and the rest, after each operation of torch."
)


class MemoryPane(QWidget):
    """`measure_requested()`: follow a step. `op_chosen(op)`: the reader has chosen an operation,
    `block_chosen(block, op)` a storage with the operation that made it (None: none of the step)."""

    measure_requested = Signal()
    op_chosen = Signal(object)
    block_chosen = Signal(object, object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        make.named(self, "step_memory", "Memory of one step")
        self.found: MemoryCurveSnapshot | None = None
        self._living: list[MemoryBlock] = []
        self._place = -1
        self._is_told = False  # true while the code, not the reader, selects
        self.measure = make.button(
            "step_memory_measure", "Measure a step", "mdi6.play", self.measure_requested,
            primary=True,
            tip="Run two steps on copies of the weights and follow every storage of the second."
            " Weights, gradients and random numbers stay as they are. While a run goes on,"
            " pause it first.",
        )  # fmt: skip
        self._words = make.text("step_memory_words", wrap=True, width="own")
        self._legend = make.label(name="step_memory_legend", wrap=True)
        self._legend.setToolTip("\n".join(f"{title}: {tip}" for title, _, tip in TITLES.values()))
        self._pointed = make.text("step_memory_pointed", "muted")
        self.chart = StackedChart(
            "step_memory_chart", "Memory over operations",
            "The bytes that live after each operation of the step. Click an operation to see what"
            " lives there, and to choose its module in all views; arrow keys go from one to the"
            " next, Enter chooses.",
        )  # fmt: skip
        self.chart.pointed.connect(self._point)
        self.chart.chosen.connect(self._choose_op)
        self._at = make.label("", "heading", "step_memory_at")
        self.table = ReadTable(
            "step_memory_table",
            "Storages that live",
            (
                ("held by", "The tensor that holds the storage, or the operation that made it"),
                ("kind", "As in the picture above"),
                ("size", "Bytes of the storage"),
                ("from", "The operation that made it; before: it was there before the step"),
                ("to", "The operation in which it is freed; after: it lives on"),
            ),
        )
        self.table.itemSelectionChanged.connect(self._choose_block)
        storages = make.page(self._at, (self.table, 1), margins=(0, GRID, 0, 0))
        self.segments = SegmentPicture()
        self.segments.pointed.connect(self._point_segment)
        self.segments.chosen.connect(self._choose_allocated)
        self._in_segment = make.text("step_memory_segment", "muted")
        more = make.page(
            self._in_segment, (VerticalScroll(self.segments), 1), margins=(0, GRID, 0, 0)
        )
        self.below = make.tabs(
            "step_memory_tabs",
            (
                (storages, "Storages", "The storages that live after an operation"),
                (
                    more,
                    "Allocator",
                    "What CUDA's caching allocator holds at the peak: its segments, cut into"
                    " blocks, and the storage in each block",
                ),
            ),
            "What holds the memory",
        )
        both = make.splitter(self.chart, self.below, sizes=(300, 200), shares=(3, 2), upright=True)
        head = FlowLayout(GRID, even=False)
        head.addWidget(self.measure)
        body = make.page(self._legend, self._pointed, (both, 1))
        self._pages = QStackedWidget()
        self._pages.addWidget(make.empty(EMPTY, "step_memory_empty"))
        self._pages.addWidget(VerticalScroll(body))  # of a low window it would take the half
        make.column(head, self._words, (self._pages, 1), on=self, margins=(0, GRID, GRID, 0))
        theme.notifier.changed.connect(self._restyle)
        self.say("")

    # -- showing ---------------------------------------------------------------------------------

    def begin(self) -> None:
        self.measure.setEnabled(False)
        self.say("Two steps run on copies of the weights…")

    def show_step(self, found: MemoryCurveSnapshot) -> None:
        self.found = found
        self.measure.setEnabled(True)
        self.say(summary(found))
        self._draw()
        self.segments.show_segments(found.segments, found.segments_in_all)
        self.below.setTabVisible(1, bool(found.segments_in_all))
        self.below.tabBar().setVisible(bool(found.segments_in_all))
        self._point_segment(-1, -1)
        self._pages.setCurrentIndex(1)
        self._show_living(self.chart.marked)
        self._point(-1)

    def _draw(self) -> None:
        found = self.found
        if found is None:
            return
        whole = [sum(each) for each in zip(*found.series.values(), strict=True)]
        unit, name = unit_of(max((*whole, *found.allocated, *found.reserved)))
        layers = [
            Layer(TITLES[kind][0], color_of_kind(kind), [n / unit for n in found.series[kind]])
            for kind in TITLES
        ]
        bands = [
            (place, op.phase)
            for place, op in enumerate(found.ops)
            if not place or found.ops[place - 1].phase != op.phase
        ]
        peak = next(i for i, op in enumerate(found.ops) if op.number == found.peak)
        numbers = [op.number for op in found.ops]
        lines = [[n / unit for n in of] for of in (found.allocated, found.reserved) if of]
        self.chart.show_layers(numbers, layers, ("operation", name), bands, lines, peak)

    def end(self, words: str) -> None:
        """Say why the memory cannot be measured."""
        self.measure.setEnabled(True)
        self.say(words, "error")

    def tell_outdated(self) -> None:
        """What is shown is of other settings."""
        if self.found is not None:
            self.say("Model or settings have changed since: measure again.")

    def clear(self) -> None:
        """Another model has come."""
        self.found = None
        self._pages.setCurrentIndex(0)
        self.say("")

    def say(self, words: str, role: str = "muted") -> None:
        make.tell(self._words, words)
        make.set_role(self._words, role)

    def _restyle(self) -> None:
        self._draw()
        self._point(-1)

    def _point(self, place: int) -> None:
        """Tell the operation under the pointer, else the peak."""
        found = self.found
        if found is None:
            return
        at = place if place >= 0 else self._place
        whole = sum(of[at] for of in found.series.values())
        self._pointed.setText(op_text(found.ops[at], whole))
        parts = []
        for kind, (title, _, _) in TITLES.items():
            color = color_of_kind(kind)
            size = format_bytes(found.series[kind][at]).replace(" ", "&nbsp;")
            parts.append(
                f'<span style="color:{color}">■</span>&nbsp;{html.escape(title)}&nbsp;<b>{size}</b>'
            )
        for line, what, of in (
            ("┅", "allocated", found.allocated),
            ("┈", "reserved", found.reserved),
        ):
            if of:
                size = format_bytes(of[at]).replace(" ", "&nbsp;")
                parts.append(f"{line}&nbsp;CUDA&nbsp;{what}&nbsp;<b>{size}</b>")
        self._legend.setText("&nbsp;&nbsp; ".join(parts))

    def _show_living(self, place: int) -> None:
        """List the largest storages that live after an operation."""
        found = self.found
        assert found is not None
        self._place = place
        number = found.ops[place].number
        living = [b for b in found.blocks if b.born <= number and not -1 < b.died <= number]
        self._living = living[:MAX_ROWS]
        what = "At the peak" if number == found.peak else f"After operation {number:,}"
        more = found.left_out + len(living) - len(self._living)
        self._at.setText(f"{what}{f', the largest; {more:,} more' if more else ''}")
        self._is_told = True
        self.table.setRowCount(0)
        for block in self._living:
            begin = "before" if block.born < 0 else f"{block.born:,}"
            end = "after" if block.died < 0 else f"{block.died:,}"
            name = block_name(block, found)
            row = (name, TITLES[block.kind][0], format_bytes(block.size), begin, end)
            self.table.add_row(row, (name,))
        self._is_told = False

    # -- choosing --------------------------------------------------------------------------------

    def _choose_op(self, place: int) -> None:
        assert self.found is not None
        self._show_living(place)
        self.op_chosen.emit(self.found.ops[place])

    def _point_segment(self, segment: int, block: int) -> None:
        """Tell the block under the pointer."""
        found = self.found
        if found is None or segment < 0:
            self._in_segment.setText("At the peak. Point at a block to see what is in it.")
            return
        of = found.segments[segment]
        self._in_segment.setText(allocated_text(of.blocks[block], of))

    def _choose_allocated(self, segment: int, block: int) -> None:
        assert self.found is not None
        chosen = self.found.segments[segment].blocks[block]
        if chosen.state == "held":
            op = self.found.ops[chosen.op] if chosen.op >= 0 else None
            held = MemoryBlock(chosen.kind, chosen.size, -1, -1, chosen.op, chosen.name)
            self.block_chosen.emit(held, op)

    def _choose_block(self) -> None:
        rows = {index.row() for index in self.table.selectedIndexes()}
        if self._is_told or len(rows) != 1 or self.found is None:
            return
        block = self._living[rows.pop()]
        op: MemoryOp | None = self.found.ops[block.op] if block.op >= 0 else None
        self.block_chosen.emit(block, op)

    def light(self, module: str | None) -> None:
        """Select the first storage that the module made, as another view has chosen it."""
        found = self.found
        if found is None or module is None:
            return
        for row, block in enumerate(self._living):
            made = found.ops[block.op].module if block.op >= 0 else None
            if module and (made == module or block.name.startswith(f"{module}.")):
                self._is_told = True
                self.table.selectRow(row)
                self.table.scrollToItem(self.table.cell(row, 0))
                self._is_told = False
                return
