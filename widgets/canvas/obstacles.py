"""Boxes on the canvas, found by where they are.

Plain numbers in a grid of cells: a wire passes few blocks, so few are looked at, and the first
window needs no numpy.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from itertools import product

from PySide6.QtCore import QRectF

CELL = 256.0
"""The side of a cell in scene pixels: a block covers few cells."""

Box = tuple[float, float, float, float]
"""Left, top, right, bottom in scene pixels."""


class Obstacles:
    """Boxes that wires and labels keep clear of. A box's number is the count of those before it."""

    def __init__(self, rects: Iterable[QRectF] = ()) -> None:
        self.boxes: list[Box] = []
        self._cells: dict[tuple[int, int], list[int]] = defaultdict(list)
        for rect in rects:
            self.add(rect)

    def add(self, rect: QRectF) -> None:
        box, number = box_of(rect), len(self.boxes)
        self.boxes.append(box)
        columns, rows = _span(*box)
        for column in columns:
            for row in rows:
                self._cells[column, row].append(number)

    def near(self, rect: QRectF, without: Collection[int] = ()) -> list[Box]:
        """The boxes that overlap or touch a rect, but for those of the numbers `without`."""
        left, top, right, bottom = area = box_of(rect)
        columns, rows = _span(*area)
        if len(columns) * len(rows) > len(self._cells):
            numbers: Iterable[int] = range(len(self.boxes))
        else:
            cells = product(columns, rows)
            numbers = {n for cell in cells if cell in self._cells for n in self._cells[cell]}
        boxes = (self.boxes[number] for number in numbers if number not in without)
        across = [box for box in boxes if box[0] <= right and box[2] >= left]
        return [box for box in across if box[1] <= bottom and box[3] >= top]


def box_of(rect: QRectF) -> Box:
    return rect.getCoords()  # type: ignore[return-value]


def _span(left: float, top: float, right: float, bottom: float) -> tuple[range, range]:
    """The columns and the rows of the cells that a box covers."""
    columns = range(int(left // CELL), int(right // CELL) + 1)
    return columns, range(int(top // CELL), int(bottom // CELL) + 1)
