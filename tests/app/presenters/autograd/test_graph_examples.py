"""The presenter of the graph examples: the code runs, its root is read, and then the lesson."""

from __future__ import annotations

from typing import Any, cast

import pytest
from PySide6.QtCore import QObject, Signal

from app.presenters.autograd.graph_examples import GraphExamplesPresenter
from engine.project.examples import graph_examples
from engine.protocol import BackwardSnapshot, ErrorReport, ExampleSnapshot, RunExampleCommand

EXAMPLE, OTHER = list(graph_examples().values())[:2]


class Steps(QObject):
    """Stands for the tab Step through and its bar of roots."""

    example_chosen = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.roots = self
        self.chosen: list[str] = []
        self.told: list[str] = []
        self.show_problem = self.show_lesson = self.told.append


@pytest.fixture
def desk(bench, link):
    link.get_ready()
    view = Steps()
    presenter = GraphExamplesPresenter(bench, cast(Any, view), bench.window)
    presenter.graph_wanted.connect(lambda root, variables: view.chosen.append(root))
    return view


def finish(link, error: ErrorReport | None = None) -> None:
    link.answer(ExampleSnapshot(variables=(), error=error))


def step(bench) -> None:
    bench.store.take(BackwardSnapshot(revision=1, position=0, step=None, gradients=()))


def test_an_example_runs_and_is_explained_once_its_graph_is_there(desk, bench, link) -> None:
    desk.example_chosen.emit(EXAMPLE)
    (command,) = link.sent
    assert isinstance(command, RunExampleCommand) and command.source == EXAMPLE.code
    assert desk.chosen == []
    step(bench)  # of another pass
    finish(link)
    assert desk.chosen == [EXAMPLE.root] and desk.told == []
    step(bench)
    step(bench)
    assert desk.told == [EXAMPLE.tip] and desk.chosen == [EXAMPLE.root]


def test_an_example_that_fails_says_why_and_reads_nothing(desk, bench, link) -> None:
    desk.example_chosen.emit(EXAMPLE)
    finish(link, ErrorReport("NameError", "No.", "Run it again."))
    step(bench)
    assert desk.chosen == [] and len(desk.told) == 1 and "No." in desk.told[0]


@pytest.mark.parametrize("ran", [False, True])
def test_an_example_goes_with_its_engine(desk, bench, link, ran) -> None:
    desk.example_chosen.emit(EXAMPLE)
    if ran:
        finish(link)
    link.ended.emit()
    finish(link)
    step(bench)
    assert desk.told == [] and desk.chosen == [EXAMPLE.root] * ran


def test_another_example_takes_the_place_of_the_first(desk, bench, link) -> None:
    desk.example_chosen.emit(EXAMPLE)
    finish(link)
    desk.example_chosen.emit(OTHER)
    step(bench)
    finish(link)
    step(bench)
    assert desk.told == [OTHER.tip] and desk.chosen == [EXAMPLE.root, OTHER.root]
