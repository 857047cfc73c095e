"""The mistakes' presenter: what a run shows, and which node of which graph is then gone to."""

from __future__ import annotations

import pytest

from app.presenters.autograd.mistakes import MistakesPresenter, node_of
from engine.project.document import Project, replace
from engine.protocol import (
    ErrorReport,
    ExampleSnapshot,
    OutputSnapshot,
    RunExampleCommand,
    Variable,
    VariablesSnapshot,
    WhyNoGradientCommand,
    WhyNoGradientSnapshot,
)
from tests.widgets.backward.autograd_snapshots import GRAPH, backward
from widgets.autograd.mistakes_view import MistakesView

Y_GRAPH = replace(GRAPH, root="y")
MADE = (Variable("n", "number", "int"), Variable("t", "tensor", "Tensor"))
FAILED = ExampleSnapshot(variables=MADE, error=ErrorReport("RuntimeError", "It broke."))


class Desk:
    def __init__(self, bench, qtbot) -> None:
        self.bench = bench
        self.view = MistakesView()
        qtbot.addWidget(self.view)
        self.presenter = MistakesPresenter(bench, self.view, bench.window)
        self.graphs: list[str] = []
        self.examples: list[tuple] = []
        self.nodes: list[tuple[int, str]] = []
        self.presenter.example_graph_requested.connect(lambda *of: self.examples.append(of))
        self.presenter.graph_requested.connect(self.graphs.append)
        self.presenter.node_requested.connect(lambda *node: self.nodes.append(node))

    def take(self, *snapshots) -> None:
        for snapshot in snapshots:
            self.bench.store.take(replace(snapshot, revision=self.bench.store.revision))

    @property
    def made(self) -> bool:
        """Whether the mistake counts as made: its graph can be asked for."""
        return self.view._graph.isEnabled()

    @property
    def error(self) -> str:
        return self.view._error.text()

    @property
    def answer(self) -> str:
        return self.view._answer.text()


@pytest.fixture
def desk(bench, link, qtbot) -> Desk:
    link.get_ready()
    return Desk(bench, qtbot)


def test_a_mistake_runs_apart_shows_its_error_and_can_be_seen_on_the_graph(desk, link):
    code = desk.view.code.code()
    desk.view.code.run_requested.emit(code)
    assert link.sent == [RunExampleCommand(source=code, tab="mistakes", id=1, revision=1)]
    link.answer(OutputSnapshot(stream="stdout", text="7\n"))
    assert not desk.made
    link.answer(FAILED)
    assert desk.made and desk.error == "RuntimeError: It broke."
    assert desk.view._printed.text() == "7"
    desk.view._graph.click()
    assert desk.examples == [(desk.view.mistake.root, MADE, "mistakes")] and desk.graphs == []


def test_the_correction_says_how_it_ended_and_leaves_the_mistake_alone(desk, link):
    desk.view.instead.run_requested.emit(desk.view.instead.code())
    link.answer(ExampleSnapshot(variables=MADE))
    assert desk.view._ran.text() == "It ran without an error."
    assert not desk.made and desk.error == ""
    desk.view.instead.run_requested.emit(desk.view.instead.code())
    link.answer(FAILED)
    assert desk.view._ran.text() == "RuntimeError: It broke."


def test_the_tensors_that_can_be_asked_about_are_offered(desk, link, monkeypatch):
    shown: list = []
    monkeypatch.setattr(desk.view.name, "show_names", shown.append)
    monkeypatch.setattr(desk.view.root, "show_names", shown.append)
    of_console = VariablesSnapshot(variables=(Variable("u", "tensor", "Tensor"),))
    desk.take(of_console)
    assert shown == [["u"], ["u"]]
    desk.view.code.run_requested.emit(desk.view.code.code())
    link.answer(FAILED)
    desk.take(of_console)
    assert shown[2:] == [["t"], ["t"]]


@pytest.mark.parametrize(
    ("wanted", "node"),
    [
        (2, 2), (5, 5), (6, None), ("ReluBackward0", 1), ("linear1.weight", 5),
        ("AccumulateGrad", 3), ("relu", None),
    ],
)  # fmt: skip
def test_a_node_by_its_number_its_name_or_its_leaf(desk, wanted, node):
    assert node_of(Y_GRAPH, wanted) == node
    desk.view.graph_requested.emit("y", wanted, "Look here.")
    assert len(desk.examples) == 1 and desk.nodes == []
    desk.take(Y_GRAPH)
    assert desk.nodes == []  # not before its pass stands on it
    desk.take(backward(0))
    assert desk.nodes == ([] if node is None else [(node, "Look here.")])
    desk.take(backward(1))
    assert len(desk.nodes) == (node is not None)


def test_a_leaf_goes_before_a_node_of_the_same_name():
    named = replace(GRAPH.nodes[1], name="w")
    leaf = replace(GRAPH.nodes[5], label="w")
    labelled = replace(GRAPH.nodes[2], label="w", name="AddBackward0")  # no leaf
    graph = replace(GRAPH, nodes=(GRAPH.nodes[0], named, labelled, *GRAPH.nodes[3:5], leaf))
    assert node_of(graph, "w") == 5


def test_the_graph_of_another_root_is_not_the_one(desk):
    desk.view.graph_requested.emit("z", 1, "Look here.")
    desk.take(Y_GRAPH, backward(0))
    assert desk.nodes == []


def test_why_a_gradient_is_missing_is_asked_and_answered(desk, link):
    desk.view.why_requested.emit("w", "y")
    assert link.sent == [WhyNoGradientCommand(name="w", root="y", id=1, revision=1)]
    told = WhyNoGradientSnapshot(reason="cut", text="It was detached.", hint="Do not.", node=1)
    link.answer(told)
    assert desk.answer == "It was detached." and not desk.view.where.isHidden()
    desk.view.where.click()
    assert desk.graphs == ["y"] and desk.examples == []  # where the graph on screen came from
    desk.view.why_requested.emit("v", "")
    link.fail("There is no v.")
    assert desk.answer == "There is no v." and desk.view.where.isHidden()


def test_why_is_asked_of_what_ran_last_here_or_of_the_graph_on_screen(desk, link):
    def tab_asked() -> str:
        desk.view.why_requested.emit("w", "y")
        return link.sent[-1].example

    desk.view.code.run_requested.emit(desk.view.code.code())
    link.answer(FAILED)
    assert tab_asked() == "mistakes"
    link.answer(WhyNoGradientSnapshot(reason="cut", text="Cut.", hint="Do not.", node=1))
    desk.view.where.click()
    assert desk.examples == [("y", MADE, "mistakes")]
    desk.take(Y_GRAPH, backward(0))  # the one that was asked for
    assert tab_asked() == "mistakes"
    desk.take(Y_GRAPH)  # another
    assert tab_asked() == ""


@pytest.mark.parametrize("end", ["project", "engine"])
def test_what_a_mistake_made_goes_with_its_variables(desk, link, bench, end):
    desk.view.why_requested.emit("w", "y")
    desk.view.code.run_requested.emit(desk.view.code.code())
    link.answer(FAILED)
    desk.view.graph_requested.emit("y", 1, "Look here.")
    desk.view.code.run_requested.emit(desk.view.code.code())
    if end == "project":
        bench.files.new(Project(name="Other"))
    else:
        link.close()
    assert not desk.made and desk.error == ""
    desk.take(Y_GRAPH, backward(0))
    bench.link._receive(replace(FAILED, reply_to=3))
    assert not desk.made and desk.nodes == []
    told = WhyNoGradientSnapshot(reason="cut", text="It was detached.", hint="Do not.")
    bench.link._receive(replace(told, reply_to=1))
    assert desk.answer == ""
