"""Vertical lines with words over the curves of a live plot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import pyqtgraph as pg
from PySide6.QtCore import Qt

from widgets import theme
from widgets.training.plots.step_scale import place_of

GROUND = 204
"""How much the words cover of what is behind them, of 255."""
ROW_PX, MOST_ROWS = 18, 6
"""The height of a row of words, and how many rows there are at most."""

Rows = list[list[tuple[float, float]]]
"""The part of the plot's width that each row of words covers: spans (left, right), in pixels."""


class UprightLine(NamedTuple):
    """A line at a step; words that are empty take no place. `color` is that of another run."""

    step: float
    text: str
    color: str = ""


class UprightLines:
    """The lines of one kind: `color` gives their colour in the theme of now, unless they have one
    of their own. Below 0, `z` puts them under the curves."""

    def __init__(
        self, box: pg.ViewBox, color: Callable[[], str], style: Qt.PenStyle, z: int
    ) -> None:
        self._box, self._color, self._style, self._z = box, color, style, z
        self._shown: tuple[UprightLine, ...] = ()
        self.items: list[pg.InfiniteLine] = []

    def show(self, lines: Sequence[UprightLine], log: bool) -> None:
        """Draw these lines in place of all others; with `log` on a logarithmic scale of steps."""
        for item in self.items:
            self._box.removeItem(item)
        self.items, self._shown = [], tuple(lines)
        for line in lines:
            options = {"anchors": [(0, 0), (1, 0)]}  # at the line's right, else at its left
            place = place_of(line.step, log)
            item = pg.InfiniteLine(place, angle=90, label=line.text or None, labelOpts=options)
            if line.text:
                item.label.textItem.document().setDocumentMargin(1)  # rows do not touch
            item.setZValue(self._z)
            self._box.addItem(item, ignoreBounds=True)
            self.items.append(item)
        self.restyle()

    def place_words(self, rows: Rows) -> None:
        """Put the words of each line in the first row where they cover no others, and hide those
        that no row has room for. What they cover is added to `rows`."""
        height, width = max(self._box.height(), ROW_PX), self._box.width()
        first, last = self._box.viewRange()[0]
        for item in self.items:
            if (label := getattr(item, "label", None)) is None:
                continue
            at = (item.x() - first) / (last - first) * width
            wide = label.boundingRect().width()
            span = (at, at + wide) if at < width / 2 else (at - wide, at)
            free = (number for number, row in enumerate(rows) if _is_free(row, span))
            number = next(free, None)
            label.setVisible(number is not None)
            if number is not None:
                rows[number].append(span)
                label.setPosition(1 - (number * ROW_PX + 2) / height)

    def rescale(self, log: bool) -> None:
        for item, line in zip(self.items, self._shown, strict=True):
            item.setPos(place_of(line.step, log))

    def restyle(self) -> None:
        """Set the colours of the theme."""
        colors = theme.current()
        for item, line in zip(self.items, self._shown, strict=True):
            style = Qt.PenStyle.DashLine if line.color else self._style
            style = style if line.text else Qt.PenStyle.DotLine
            item.setPen(pg.mkPen(line.color or self._color(), style=style))
            if (label := getattr(item, "label", None)) is not None:
                label.setColor(line.color or colors.text)
                label.fill = pg.mkBrush(colors.color("surface", alpha=GROUND))


def rows_of(height_px: float) -> Rows:
    """Empty rows: as many as fit, at least one."""
    return [[] for _ in range(max(1, min(MOST_ROWS, int(height_px // ROW_PX))))]


def _is_free(row: list[tuple[float, float]], span: tuple[float, float]) -> bool:
    return all(right < span[0] or left > span[1] for left, right in row)
