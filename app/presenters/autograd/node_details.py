"""The tab Node: all that is known of one node of the graph, asked for while the tab is open."""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QTabWidget

from app.presenters.questions import Questions, in_words
from app.workbench import Workbench
from engine.protocol import (
    BackwardSnapshot,
    ForwardSnapshot,
    GraphSnapshot,
    NodeDetailCommand,
)
from widgets.autograd.autograd_view import AutogradView
from widgets.rules.node_page import NODE_TEXT, NodePage


class NodeDetailsPresenter(QObject):
    """Adds the page to `tabs`. The page shows the node that ran last or was chosen; every step asks
    again, because it may change what a node keeps."""

    def __init__(
        self, bench: Workbench, view: AutogradView, tabs: QTabWidget, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._bench, self._tabs = bench, tabs
        self._questions = Questions(bench)
        self._node: int | None = None
        self.page = NodePage()
        tabs.setTabToolTip(tabs.addTab(self.page, "Node"), NODE_TEXT)
        tabs.currentChanged.connect(lambda _: self._ask())
        view.node_selected.connect(self._look_at)
        bench.store.on(BackwardSnapshot, self._follow)
        bench.store.on((GraphSnapshot, ForwardSnapshot), lambda _: self._clear())
        bench.store.revision_changed.connect(self._clear)
        bench.link.ended.connect(self._clear)

    def _look_at(self, node: int) -> None:
        self._node = node
        self._ask()

    def _ask(self) -> None:
        under_way = self._bench.newest(BackwardSnapshot) is not None
        if self._node is None or self._tabs.currentWidget() is not self.page or not under_way:
            return
        command = NodeDetailCommand(node=self._node)
        self._questions.ask(
            command, self.page.show_detail, lambda error: self.page.show_problem(in_words(error))
        )

    def _follow(self, backward: BackwardSnapshot) -> None:
        self._look_at(self._first_node if backward.step is None else backward.step.node)

    @property
    def _first_node(self) -> int:
        graph = self._bench.newest(GraphSnapshot)
        return graph.plan[0] if graph is not None and graph.plan else 0

    def _clear(self, *_: object) -> None:
        self._node = None
        self._questions.drop()
        self.page.clear()
