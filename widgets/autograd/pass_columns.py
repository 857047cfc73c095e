"""Forward, graph and backward as columns; in a narrow window the two passes are tabs."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QByteArray, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QApplication, QSplitter, QTabWidget, QWidget

from widgets.autograd.forward_view import ForwardView
from widgets.backward.view import BackwardView
from widgets.theme import GRID

_GRAPH_PX = 64 * GRID
"""The least width of the graph beside two passes; below it there are two columns."""
_THREE_PX = 132 * GRID
"""The least width of three columns, however little they show at the moment."""
_FORWARD_PX = 41 * GRID
MODES = ("three", "two")
"""The keys under which the columns' widths are saved."""


class PassColumns(QSplitter):
    """Remembers the widths of the columns, for two columns and for three."""

    def __init__(self, forward: ForwardView, graph: QWidget, backward: BackwardView) -> None:
        super().__init__(Qt.Orientation.Horizontal)
        self.setObjectName("pass_columns")
        self._forward, self._graph, self._backward = forward, graph, backward
        self._states: dict[str, QByteArray] = {}
        self._forward_shown = True
        self._tabs = QTabWidget()
        self._tabs.setObjectName("pass_tabs")
        self._tabs.setDocumentMode(True)
        self._tabs.setTabBarAutoHide(True)
        self._tabs.tabBar().setAccessibleName("Pass")
        self._tabs.addTab(backward, "Backward")
        self._tabs.setTabToolTip(0, "The backward pass, node by node")
        self.addWidget(forward)
        self.addWidget(graph)
        self.addWidget(self._tabs)
        self.setChildrenCollapsible(False)
        self.setStretchFactor(1, 1)
        self._set_first_sizes()

    @property
    def in_tabs(self) -> bool:
        """Whether the passes share one column."""
        return self._tabs.count() == 2

    def show_forward(self, shown: bool) -> None:
        """Show the forward pass, or leave its room to the graph: a graph of the console has none
        of the model's blocks."""
        self._forward_shown = shown
        place = self._tabs.indexOf(self._forward)
        if place >= 0:
            self._tabs.setTabVisible(place, shown)
        else:
            self._forward.setVisible(shown)

    def bring_up(self, view: ForwardView | BackwardView) -> None:
        """Bring this pass to the front, if the passes are tabs."""
        if self._tabs.indexOf(view) >= 0:
            self._tabs.setCurrentWidget(view)

    def states(self) -> Mapping[str, QByteArray]:
        """The widths of the columns, to be saved for the next start."""
        return {**self._states, self._mode(): self.saveState()}

    def restore(self, states: Mapping[str, QByteArray]) -> None:
        """Restore the widths that `states` returned."""
        self._states.update({mode: state for mode, state in states.items() if state})
        if self._mode() in self._states:
            self.restoreState(self._states[self._mode()])

    def minimumSizeHint(self) -> QSize:
        """The least width of two columns: the window can always be that narrow."""
        hint = super().minimumSizeHint()
        passes = (self._forward, self._backward)
        side = max(view.minimumSizeHint().width() for view in passes)
        hint.setWidth(self._graph.minimumSizeHint().width() + self.handleWidth() + side)
        return hint

    def resizeEvent(self, event: QResizeEvent) -> None:
        passes = (self._forward, self._backward)
        needed = _GRAPH_PX + sum(view.minimumSizeHint().width() for view in passes)
        too_narrow = self.width() < max(needed, _THREE_PX)
        if too_narrow != self.in_tabs:
            self._arrange(too_narrow)
        super().resizeEvent(event)

    def _set_first_sizes(self) -> None:
        passes = [self._backward.full_width()]
        if not self.in_tabs:
            passes.insert(0, _FORWARD_PX)
        passes.insert(-1, max(_GRAPH_PX, self.width() - sum(passes)))
        self.setSizes(passes)

    def _mode(self) -> str:
        return "two" if self.in_tabs else "three"

    def _arrange(self, in_tabs: bool) -> None:
        self._states[self._mode()] = self.saveState()
        focus = QApplication.focusWidget()
        if in_tabs:
            front = 1 if self._backward.has_pass else 0
            self._tabs.insertTab(0, self._forward, "Forward")
            self._tabs.setTabToolTip(0, "The forward pass, block by block")
            self._tabs.setCurrentIndex(front)
        else:
            self.insertWidget(0, self._forward)
        self.show_forward(self._forward_shown)
        self._set_first_sizes()
        if self._mode() in self._states:
            self.restoreState(self._states[self._mode()])
        if focus is not None and self.isAncestorOf(focus):
            focus.setFocus(Qt.FocusReason.OtherFocusReason)
