"""The Model workspace's page: the canvas with panels around it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QScrollArea

from app.window.docked_page import DockedPage
from engine.project import catalogue
from engine.project.document import Model
from engine.project.problems import Problem
from widgets import make
from widgets.canvas.model_canvas import ModelCanvas
from widgets.model.code_view import CodeView
from widgets.model.palette import BlockPalette
from widgets.model.problems import ProblemList
from widgets.model.properties import BlockProperties
from widgets.theme import GRID

_CANVAS_MIN_PX = 50 * GRID


class ModelPage(DockedPage):
    """`problems_moved()`: the panel Problems came in front of its neighbours, or left."""

    problems_moved = Signal()

    def __init__(self) -> None:
        super().__init__("model_page")
        self.canvas = ModelCanvas()
        self.block_palette = BlockPalette(catalogue.kinds().values())
        self.properties = BlockProperties()
        self.code = CodeView()
        self.problems = ProblemList()
        self.canvas.setMinimumWidth(_CANVAS_MIN_PX)  # in a small window the panels shrink first
        self.setCentralWidget(self.canvas)
        self.setFocusProxy(self.canvas)

        left, right = Qt.DockWidgetArea.LeftDockWidgetArea, Qt.DockWidgetArea.RightDockWidgetArea
        for name, icon, words, area in (
            ("fold_left", "mdi6.dock-left", "Show or hide the blocks (Ctrl+[)", left),
            ("fold_right", "mdi6.dock-right", "Show or hide properties and code (Ctrl+])", right),
        ):
            self.canvas.zoom_bar.add(name, icon, words, partial(self.fold, area))
        self.palette_dock = self._dock("Blocks", self.block_palette, left)
        self.properties_dock = self._dock("Properties", self.properties, right)
        self.code_dock = self._dock("Code", self.code, right)
        self.problems_dock = self._dock("Problems", self._problem_panel(), right)
        self.tabifyDockWidget(self.code_dock, self.problems_dock)
        self.code_dock.raise_()
        self.problems_dock.visibilityChanged.connect(self._list_problems_once)
        horizontal, vertical = Qt.Orientation.Horizontal, Qt.Orientation.Vertical
        widths = [self.block_palette.sizeHint().width(), self.code.sizeHint().width()]
        self.resizeDocks([self.palette_dock, self.code_dock], widths, horizontal)
        self.resizeDocks([self.properties_dock, self.code_dock], [360, 440], vertical)

    def show_problems(self, problems: Sequence[Problem], model: Model) -> None:
        self.problems.show_problems(problems, model)
        self._no_problems.setVisible(not problems)
        title = f"Problems ({len(problems)})" if problems else "Problems"
        self.problems_dock.setWindowTitle(title)

    def _list_problems_once(self, in_front: bool) -> None:
        self.properties.lists_all = not in_front
        self.problems_moved.emit()

    def _problem_panel(self) -> QScrollArea:
        words = "No problems. What is wrong with the model is listed here."
        self._no_problems = make.label(words, "muted", "no_problems", wrap=True)
        parts = (self._no_problems, self.problems, make.STRETCH)
        area = make.scroll(make.page(*parts, gap=-1, margins=GRID), sideways=True)
        return make.named(area, "problems_panel")
