"""The Model workspace's page: the canvas amid its panels."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QByteArray, Qt
from PySide6.QtWidgets import QDockWidget, QLabel, QMainWindow, QScrollArea, QVBoxLayout, QWidget

from engine.project import catalogue
from engine.protocol import Problem
from widgets.canvas.model_canvas import ModelCanvas
from widgets.model.code_view import CodeView
from widgets.model.palette import BlockPalette
from widgets.model.problems import ProblemList
from widgets.model.properties import BlockProperties
from widgets.theme import GRID

_DOCK_VERSION = 1


class ModelPage(QMainWindow):
    """A QMainWindow within the window, for its docks."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("model_page")
        self.setWindowFlags(Qt.WindowType.Widget)
        self.setDockNestingEnabled(True)
        self.canvas = ModelCanvas()
        self.block_palette = BlockPalette(catalogue.kinds().values())
        self.properties = BlockProperties()
        self.code = CodeView()
        self.problems = ProblemList()
        self.setCentralWidget(self.canvas)
        self.setFocusProxy(self.canvas)

        left, right = Qt.DockWidgetArea.LeftDockWidgetArea, Qt.DockWidgetArea.RightDockWidgetArea
        self.palette_dock = self._dock("Blocks", self.block_palette, left)
        self.properties_dock = self._dock("Properties", self.properties, right)
        self.code_dock = self._dock("Code", self.code, right)
        self.problems_dock = self._dock("Problems", self._problem_panel(), right)
        self.tabifyDockWidget(self.code_dock, self.problems_dock)
        self.code_dock.raise_()
        horizontal, vertical = Qt.Orientation.Horizontal, Qt.Orientation.Vertical
        self.resizeDocks([self.palette_dock, self.properties_dock], [260, 380], horizontal)
        self.resizeDocks([self.properties_dock, self.code_dock], [380, 420], vertical)

    def docks(self) -> tuple[QDockWidget, ...]:
        return self.palette_dock, self.properties_dock, self.code_dock, self.problems_dock

    def show_problems(self, problems: Sequence[Problem]) -> None:
        self.problems.show_problems(problems)
        self._no_problems.setVisible(not problems)
        title = f"Problems ({len(problems)})" if problems else "Problems"
        self.problems_dock.setWindowTitle(title)

    def dock_state(self) -> QByteArray:
        return self.saveState(_DOCK_VERSION)

    def restore_docks(self, state: QByteArray) -> None:
        if not state.isEmpty():
            self.restoreState(state, _DOCK_VERSION)

    def _dock(self, title: str, widget: QWidget, area: Qt.DockWidgetArea) -> QDockWidget:
        dock = QDockWidget(title, self)
        dock.setObjectName(f"{title.lower()}_dock")
        dock.setWidget(widget)
        self.addDockWidget(area, dock)
        dock.toggleViewAction().setToolTip(f"Show or hide the panel “{title}”.")
        return dock

    def _problem_panel(self) -> QScrollArea:
        self._no_problems = QLabel("No problems: what is wrong with the model is listed here.")
        self._no_problems.setObjectName("no_problems")
        self._no_problems.setProperty("role", "muted")
        self._no_problems.setWordWrap(True)
        body = QWidget()
        layout = QVBoxLayout(body)
        layout.setContentsMargins(GRID, GRID, GRID, GRID)
        layout.addWidget(self._no_problems)
        layout.addWidget(self.problems)
        layout.addStretch(1)
        area = QScrollArea()
        area.setObjectName("problems_panel")
        area.setWidgetResizable(True)
        area.setFrameShape(QScrollArea.Shape.NoFrame)
        area.setWidget(body)
        return area
