"""The ways to see the elements of a tensor: as numbers, colours, images, a histogram, lines."""

from __future__ import annotations

from PySide6.QtWidgets import QTabWidget, QWidget

from engine.protocol import ValuesSnapshot
from widgets import make
from widgets.text import format_number
from widgets.values.cut import column_label, cut_shape, row_label
from widgets.values.histogram_view import HistogramView
from widgets.values.image_grid import ImageGrid
from widgets.values.line_view import LineView
from widgets.values.number_table import NumberTable
from widgets.values.picture_view import PictureView

_SHORT_DIGITS = 5
_PRETTY_FLOATS = ("float", "bfloat", "q")


class ValueTabs(QTabWidget):
    """A tab for each view. Its methods set all views alike; the owner fills each view."""

    def __init__(self) -> None:
        super().__init__()
        self.table = NumberTable()
        self.heat_map = PictureView()
        self.images = ImageGrid()
        self.histogram = HistogramView()
        self.line = LineView()
        images = "The last two dimensions as images, three channels as colour"
        pages = (
            (self.table, "Table", "Every element as a number"),
            (self.heat_map, "Heat map", "Every element as a colour"),
            (self.images, "Images", images),
            (self.histogram, "Histogram", "The number of elements in each range of values"),
            (self.line, "Line", "Each row over the last dimension"),
        )
        make.tabs("values_tabs", pages, "Ways to see the elements", tabs=self)

    def in_sight(self, *views: QWidget) -> bool:
        """Whether the current tab is one of these views."""
        return self.currentWidget() in views

    @property
    def picture_in_sight(self) -> bool:
        return self.in_sight(self.heat_map, self.images)

    def show_empty(self, text: str) -> None:
        """Show `text` in place of the numbers. The histogram stays."""
        self.table.show_empty(text)
        for view in (self.heat_map, self.images):
            view.show_picture(None, empty_text=text)
        self.line.show_lines(None, text)

    def show_size(self, values: ValuesSnapshot) -> None:
        """Set the size of the table; it then asks for its visible cells."""
        dims = values.dims
        shape = cut_shape(dims)
        if values.note and not values.cells and not values.edit and values.rows * values.columns:
            self.table.show_empty(values.note)
            return
        short = values.dtype.startswith(_PRETTY_FLOATS)
        self.table.set_shortening(_shortened if short else str)
        self.table.show_size(
            values.rows,
            values.columns,
            lambda row: row_label(dims, row),
            lambda column: column_label(dims, column),
            block=shape[-2] if len(shape) > 2 else 0,
        )

    def show_pictures(self, values: ValuesSnapshot) -> None:
        """Show the picture of a snapshot. Without one, say why, if the current tab is a picture."""
        if values.picture is not None or self.picture_in_sight:
            why = values.note or "There are no numbers to paint"
            self.heat_map.show_picture(values.picture, why)
            self.images.show_picture(values.picture, why)


def _shortened(text: str) -> str:
    """A float with few digits, for a cell of the table; the readout has all digits."""
    return format_number(float(text), _SHORT_DIGITS) if text else ""
