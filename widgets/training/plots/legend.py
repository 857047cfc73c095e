"""The words over the lines of a live plot: its caption, and the legend with the newest numbers."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLabel

from widgets import make
from widgets.training.plots.plot_canvas import color_of
from widgets.training.plots.series import Overlay, Series

_NAMES: tuple[Callable[[Series], str], ...] = (
    lambda line: line.title,
    lambda line: line.title.split()[-1],
    lambda line: "",
)
"""How a legend names a series, from wide plots to narrow ones."""
BOLDER = 1.05
"""How much wider the bold numbers are."""


class WrappedWords(QLabel):
    """Words that wrap. They keep the number of rows that they once needed until the width changes,
    so that a plot does not move up and down as its numbers change.

    It asks for a height of its own. With Qt's height for a width, a page that scrolls would give
    its plots all the height that they can use.
    """

    def __init__(self, name: str, tip: str = "") -> None:
        super().__init__()
        self._rows_px = 0
        make.named(self, name, tip=tip)
        self.setWordWrap(True)

    def hasHeightForWidth(self) -> bool:
        return False

    def sizeHint(self) -> QSize:
        self._rows_px = max(self._rows_px, self.heightForWidth(max(self.width(), 1)))
        return QSize(0, self._rows_px)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.start_again()

    def start_again(self) -> None:
        """Forget how many rows were needed."""
        self._rows_px = 0
        self.updateGeometry()


class Legend(WrappedWords):
    """`text` formats the values."""

    def __init__(self, series: Sequence[Series], text: Callable[[float], str]) -> None:
        super().__init__("plot_legend", _tip(series))
        self._series, self._text = series, text
        self.setTextFormat(Qt.TextFormat.RichText)
        self.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)

    def show_series(self, series: Sequence[Series]) -> None:
        """Say the values of these series."""
        self._series = tuple(series)
        self.setToolTip(_tip(series))
        self.start_again()

    def show_values(
        self, values: Mapping[str, float | None], others: Sequence[tuple[Overlay, float]] = ()
    ) -> None:
        """Show a value for each series; None for one without points. The names are short where
        long ones need two rows. `others` are the curves of other runs."""
        known = [
            (line, self._text(value) if np.isfinite(value) else "not finite")
            for line in self._series
            if (value := values[line.key]) is not None
        ]
        behind = [
            _rich("┅", color_of(other.color), other.title, self._text(value))
            for other, value in others
        ]
        metrics, room = self.fontMetrics(), self.width() / BOLDER
        parts: list[str] = []
        for name_of in _NAMES:
            plain = [f"● {name_of(line)} {number}" for line, number in known]
            parts = [
                _rich("●", color_of(line.color), name_of(line), number) for line, number in known
            ]
            row = ["   ".join(plain)] if name_of is _NAMES[0] else plain
            if all(metrics.horizontalAdvance(words) <= room for words in row):
                break
        self.setText("&nbsp;&nbsp; ".join([*parts, *behind]) or "&nbsp;")


def _tip(series: Sequence[Series]) -> str:
    return "\n".join(line.tip or line.title for line in series)


def _rich(mark: str, color: str, name: str, number: str) -> str:
    """Rich text about a line that does not wrap."""
    name = html.escape(name)
    number = number.replace(" ", "&nbsp;").replace("/", "/&#8288;")  # a word joiner
    words = "&nbsp;".join([*name.split(), f"<b>{number}</b>"])
    return f'<span style="color:{color}">{mark}</span>&nbsp;{words}'
