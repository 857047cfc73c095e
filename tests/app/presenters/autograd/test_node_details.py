"""The presenter of the page Node: whose details it asks for, and when it clears the page."""

from __future__ import annotations

from typing import Any, cast

import pytest
from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QLabel, QTabWidget, QWidget

from app.presenters.autograd.node_details import NodeDetailsPresenter
from engine.project import edits
from engine.project.document import replace
from engine.protocol import (
    BackwardSnapshot,
    ForwardSnapshot,
    GraphSnapshot,
    NodeDetailCommand,
    NodeDetailSnapshot,
)
from tests.widgets.backward.autograd_snapshots import backward


class Steps(QObject):
    """Stands for the tab Step through."""

    node_selected = Signal(int)


class Desk:
    def __init__(self, bench, qtbot) -> None:
        self.bench, self.steps, self.tabs = bench, Steps(), QTabWidget()
        qtbot.addWidget(self.tabs)
        self.tabs.addTab(QWidget(), "Gradients")
        self.presenter = NodeDetailsPresenter(bench, cast(Any, self.steps), self.tabs, bench.window)
        self.page = self.presenter.page

    def begin(self, *plan: int) -> None:
        self.bench.store.take(GraphSnapshot(revision=1, nodes=(), edges=(), plan=plan))
        begun = BackwardSnapshot(revision=1, position=0, step=None, gradients=())
        self.bench.store.take(begun)

    def note(self) -> str:
        return self.page.findChild(QLabel, "node_note").text()


@pytest.fixture
def desk(bench, link, qtbot) -> Desk:
    link.get_ready()
    return Desk(bench, qtbot)


def asked(link) -> list[int]:
    return [command.node for command in link.sent if isinstance(command, NodeDetailCommand)]


def test_the_node_that_ran_or_was_chosen_is_asked_for_once_its_page_is_in_front(desk, link) -> None:
    assert desk.tabs.tabText(1) == "Node" and desk.tabs.tabToolTip(1)
    desk.begin(7, 3)
    assert asked(link) == []
    desk.tabs.setCurrentWidget(desk.page)
    assert asked(link) == [7]
    desk.steps.node_selected.emit(3)
    assert asked(link) == [7, 3]
    step = replace(backward(1), revision=1)
    desk.bench.store.take(step)
    assert asked(link) == [7, 3, step.step.node]
    desk.tabs.setCurrentIndex(0)
    desk.steps.node_selected.emit(7)
    assert len(asked(link)) == 3


def test_without_a_plan_the_first_node_is_asked_for_and_without_a_pass_none(desk, link) -> None:
    desk.tabs.setCurrentWidget(desk.page)
    desk.steps.node_selected.emit(3)
    assert asked(link) == []
    desk.begin()
    assert asked(link) == [0]


def test_the_answer_is_shown_or_why_there_is_none(desk, link) -> None:
    desk.begin(7)
    desk.tabs.setCurrentWidget(desk.page)
    link.answer(NodeDetailSnapshot(revision=1, node=7, name="MulBackward0", sequence=4))
    assert desk.page.node == 7
    made_by = desk.page.findChild(QLabel, "node_made_by").text()
    assert made_by == "#7 MulBackward0 · sequence number 4"
    desk.steps.node_selected.emit(3)
    link.fail("It is gone.", "Read the graph again.")
    assert desk.page.node is None and "It is gone." in desk.note()


@pytest.mark.parametrize("end", ["forward", "graph", "edit", "engine"])
def test_whatever_ends_the_pass_clears_the_page(desk, bench, link, end) -> None:
    desk.begin(7)
    desk.tabs.setCurrentWidget(desk.page)
    link.answer(NodeDetailSnapshot(revision=1, node=7, name="MulBackward0", sequence=4))
    desk.steps.node_selected.emit(7)
    late = len(link.sent)
    if end == "forward":
        bench.store.take(ForwardSnapshot(revision=1, order=(), position=0, activations=()))
    elif end == "graph":
        bench.store.take(GraphSnapshot(revision=1, nodes=(), edges=(), plan=()))
    elif end == "edit":
        bench.store.set_project(edits.add_block(bench.project, "nn.Linear", 0, 0)[0])
    else:
        link.ended.emit()
    assert desk.page.node is None
    link.answer(NodeDetailSnapshot(revision=1, node=7, name="MulBackward0", sequence=4), to=late)
    assert desk.page.node is None
    count = len(asked(link))
    desk.tabs.setCurrentIndex(0)
    desk.tabs.setCurrentWidget(desk.page)
    assert len(asked(link)) == count
