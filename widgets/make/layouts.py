"""Rows, columns and other places for widgets, in one call each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from msgspec import Struct
from PySide6 import QtWidgets  # for classes that the first page lacks: see `controls`
from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QBoxLayout,
    QHBoxLayout,
    QLayout,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from widgets.make.controls import named
from widgets.theme import GRID


class Stretch(Struct, frozen=True):
    """Empty room that takes a share of what is left; with share 0 only what nothing else takes."""

    share: int = 1


STRETCH = Stretch()

Item = QWidget | QLayout
Part = Item | int | Stretch | tuple[Item, int] | tuple[Item, int, Qt.AlignmentFlag]
"""One item of a row or a column: a widget or layout, alone or as (item, stretch, alignment);
pixels; a Stretch."""
Margins = int | tuple[int, int, int, int]
"""All four margins in pixels, or (left, top, right, bottom)."""


def row(
    *parts: Part, on: QWidget | None = None, gap: int = GRID, margins: Margins = 0
) -> QHBoxLayout:
    """Parts side by side, `gap` pixels apart; `on`: as the layout of this widget."""
    return _fill(QHBoxLayout(), parts, on, gap, margins)


def column(
    *parts: Part, on: QWidget | None = None, gap: int = GRID, margins: Margins = 0
) -> QVBoxLayout:
    """Parts under each other, `gap` pixels apart; `on`: as the layout of this widget."""
    return _fill(QVBoxLayout(), parts, on, gap, margins)


B = TypeVar("B", bound=QBoxLayout)


def _fill(layout: B, parts: Sequence[Part], on: QWidget | None, gap: int, margins: Margins) -> B:
    if on is not None:
        on.setLayout(layout)
    set_margins(layout, margins)
    layout.setSpacing(gap)
    for part in parts:
        add(layout, part)
    return layout


def add(layout: QBoxLayout, part: Part) -> None:
    """Add a part to the end of a row or a column."""
    match part:
        case int():
            layout.addSpacing(part)
        case Stretch():
            layout.addStretch(part.share)
        case (QLayout() as inner, share, *_):
            layout.addLayout(inner, share)
        case (QWidget() as widget, share):
            layout.addWidget(widget, share)
        case (QWidget() as widget, share, where):
            layout.addWidget(widget, share, where)
        case QLayout():
            layout.addLayout(part)
        case QWidget():
            layout.addWidget(part)


def clear(layout: QLayout) -> None:
    """Take all widgets out of a layout, and delete them."""
    while (item := layout.takeAt(0)) is not None:
        widget = item.widget()
        if widget is not None:
            widget.hide()
            widget.deleteLater()


def set_margins(layout: QLayout, margins: Margins) -> None:
    layout.setContentsMargins(*([margins] * 4 if isinstance(margins, int) else margins))


def page(*parts: Part, gap: int = GRID, margins: Margins = 0) -> QWidget:
    """A widget with these parts under each other."""
    made = QWidget()
    column(*parts, on=made, gap=gap, margins=margins)
    return made


def grid(
    on: QWidget | None = None,
    *,
    across: int = GRID,
    down: int = GRID,
    margins: Margins = 0,
    stretch: int | None = None,
) -> QtWidgets.QGridLayout:
    """A grid with gaps of `across` and `down` pixels; the column `stretch` takes what is left."""
    made = QtWidgets.QGridLayout()
    if on is not None:
        on.setLayout(made)
    set_margins(made, margins)
    made.setHorizontalSpacing(across)
    made.setVerticalSpacing(down)
    if stretch is not None:
        made.setColumnStretch(stretch, 1)
    return made


def splitter(
    *widgets: QWidget,
    sizes: Sequence[int] = (),
    shares: Sequence[int] = (),
    upright: bool = False,
) -> QtWidgets.QSplitter:
    """Widgets with a bar between that the reader drags, side by side or, `upright`, under each
    other. `sizes` are their first pixels, `shares` how they share what a larger window brings."""
    made = QtWidgets.QSplitter(Qt.Orientation.Vertical if upright else Qt.Orientation.Horizontal)
    for widget in widgets:
        made.addWidget(widget)
    for place, share in enumerate(shares):
        made.setStretchFactor(place, share)
    if sizes:
        made.setSizes(list(sizes))
    made.setChildrenCollapsible(False)
    return made


def scroll(
    inside: QWidget, area: QScrollArea | None = None, *, sideways: bool = False
) -> QScrollArea:
    """Scroll `inside`, which is as wide as its place unless it needs more: up and down, and with
    `sideways` also across. `area` is an area of the caller's own class."""
    made = area or QScrollArea()
    made.setWidgetResizable(True)
    made.setFrameShape(QScrollArea.Shape.NoFrame)
    if not sideways:
        made.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    inside.resize(inside.size())  # else Qt works out a size for it, before the area gives it one
    made.setWidget(inside)
    return made


def tabs(
    name: str,
    pages: Iterable[tuple[QWidget, str, str]] = (),
    accessible: str = "",
    *,
    tabs: QtWidgets.QTabWidget | None = None,
) -> QtWidgets.QTabWidget:
    """Pages of (widget, title, tooltip) behind tabs. `tabs` is a tab widget of the caller's own
    class."""
    made = named(tabs or QtWidgets.QTabWidget(), name, accessible)
    made.setDocumentMode(True)
    for widget, title, tip in pages:
        made.setTabToolTip(made.addTab(widget, title), tip)
    return made
