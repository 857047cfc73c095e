"""Sorting by a click on the header, and copying, for trees and tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QAbstractItemModel, QObject, QSortFilterProxyModel, Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QTableView, QTreeView

from widgets import make, theme
from widgets.theme import GRID


def tree_filter(
    model: QAbstractItemModel, sort_role: int, parent: QObject
) -> QSortFilterProxyModel:
    """Passes the rows of a tree that hold its text in any column, and those around them."""
    made = QSortFilterProxyModel(parent)
    made.setSourceModel(model)
    made.setRecursiveFilteringEnabled(True)
    made.setFilterKeyColumn(-1)
    made.setSortRole(sort_role)
    made.setFilterCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
    return made


def search_tree(tree: QTreeView, shown: QSortFilterProxyModel, text: str) -> None:
    """Show what holds a text, wherever it is in the tree."""
    shown.setFilterFixedString(text)
    if text:
        tree.expandAll()


def sorting_tree(
    name: str,
    accessible: str,
    model: QAbstractItemModel,
    widths: Sequence[int],
    copy: Callable[[], None],
) -> QTreeView:
    """A tree of rows of one height."""
    tree = make.named(QTreeView(), name, accessible)
    tree.setModel(model)
    tree.setUniformRowHeights(True)
    tree.setAllColumnsShowFocus(True)
    tree.setIndentation(2 * GRID)
    let_sort(tree, widths, copy)
    return tree


def let_sort(view: QTreeView | QTableView, widths: Sequence[int], copy: Callable[[], None]) -> None:
    """The first and the second click on a header sort, up and down; the third click ends that.
    Columns get their first widths, Ctrl+C copies, and there is a context menu."""
    view.setFrameShape(QTreeView.Shape.NoFrame)
    header = view.header() if isinstance(view, QTreeView) else view.horizontalHeader()
    header.setMinimumSectionSize(4 * GRID)
    header.setStretchLastSection(True)
    header.setSortIndicatorClearable(True)
    header.setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
    view.setSortingEnabled(True)
    for column, width in enumerate(widths):
        header.resizeSection(column, width)
    make.shortcut(QKeySequence.StandardKey.Copy, view, copy)
    make.give_menu(view)
    theme.notifier.changed.connect(view.viewport().update)
