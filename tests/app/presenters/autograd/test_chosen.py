"""Step through and the selection: what is chosen on its graph, its table and its code, what is lit
there, and how the presenters of the page lead to each other."""

from __future__ import annotations

from typing import Any

import pytest

from app.presenters.autograd import page as pages
from app.presenters.autograd.chosen import CODE, GRADIENTS, GRAPH, ChosenPresenter
from app.presenters.autograd.rules import RulesPresenter
from app.presenters.cells import CellsPresenter
from app.selection.references import Blocks, Element, Line, Module, Node, Parameter
from app.window.autograd_page import AutogradPage
from engine.project import edits
from engine.project.document import replace
from engine.project.examples import graph_examples, mistakes
from engine.protocol import (
    ExampleSnapshot,
    GraphSnapshot,
    RunExampleCommand,
    SourceLine,
    StartBackwardCommand,
    StartTraceCommand,
)
from tests.widgets.backward import autograd_snapshots
from tests.widgets.backward.autograd_snapshots import backward, forward
from widgets.autograd.autograd_view import AutogradView

AT = SourceLine("<cell 1>", 2, "y = net(x)")


def graph_of(bench: Any, **changes: Any) -> GraphSnapshot:
    """The small graph, with a line for its second node."""
    nodes = list(autograd_snapshots.GRAPH.nodes)
    nodes[1] = replace(nodes[1], source=AT)
    return replace(
        autograd_snapshots.GRAPH, nodes=tuple(nodes), revision=bench.store.revision, **changes
    )


class Desk:
    def __init__(self, bench: Any, qtbot: Any) -> None:
        project = bench.project
        for kind in ("Input", "nn.Linear", "nn.ReLU"):
            project, _ = edits.add_block(project, kind, 0, 0)
        bench.store.set_project(project)
        self.bench = bench
        self.view = AutogradView()
        qtbot.addWidget(self.view)
        self.shown: list[Any] = []
        self.view.graph.show_chosen = lambda nodes, box: self.shown.append(("graph", nodes, box))
        self.view.code.show_chosen = lambda lines: self.shown.append(("code", lines))
        self.view.backward.table.show_chosen = lambda name: self.shown.append(("table", name))
        self.presenter = ChosenPresenter(bench, self.view, bench.window)

    def take(self, *snapshots: Any) -> None:
        for snapshot in snapshots:
            self.bench.store.take(replace(snapshot, revision=self.bench.store.revision))
        self.shown.clear()

    def lit(self, kind: str) -> Any:
        return [told[1:] for told in self.shown if told[0] == kind][-1]


@pytest.fixture
def desk(bench, link, qtbot) -> Desk:
    link.get_ready()
    return Desk(bench, qtbot)


def test_each_view_is_known_to_the_selection(desk, bench) -> None:
    view = desk.view
    views = bench.selection.views
    assert (views[view.graph], views[view.backward.table], views[view.code]) == (
        GRAPH, GRADIENTS, CODE,
    )  # fmt: skip


def test_what_is_chosen_in_a_view_becomes_the_selection(desk, bench) -> None:
    chosen: list[tuple[Any, str]] = []
    choose = bench.selection.choose
    bench.selection.choose = lambda reference, view="", **more: (
        chosen.append((reference, view)), choose(reference, view, **more)
    )  # fmt: skip
    block = bench.project.model.blocks[1]
    desk.view.forward.blocks.chosen.emit("loss")  # it is no block of the canvas
    desk.view.forward.blocks.chosen.emit(block.id)
    desk.view.node_selected.emit(1)  # there is no graph
    desk.view.graph.module_selected.emit("linear1")
    assert chosen == [(Blocks((block.id,)), GRAPH)]
    desk.take(graph_of(bench, reply_to=5, subject_path=""))
    desk.view.node_selected.emit(1)
    desk.view.graph.module_selected.emit("linear1")
    desk.view.backward.table.inspect_requested.emit("gradient", "4")  # a node
    desk.view.backward.table.inspect_requested.emit("gradient", "linear1.weight")
    desk.view.code.line_chosen.emit("<cell 1>", 2)
    assert chosen[1:] == [
        (Node(1, 5), GRAPH), (Module("linear1"), GRAPH),
        (Parameter("linear1.weight"), GRADIENTS), (Line("<cell 1>", 2), CODE),
    ]  # fmt: skip
    desk.take(graph_of(bench, subject_path="Net"))
    desk.view.graph.module_selected.emit("Other.fc")  # outside of the subject
    desk.view.backward.table.inspect_requested.emit("parameter", "linear1.bias")
    assert chosen[5:] == [(Parameter("linear1.bias"), GRADIENTS)]


def test_what_is_chosen_elsewhere_is_lit_on_graph_code_and_table(desk, bench) -> None:
    desk.take(forward(4), graph_of(bench, subject_path=""), backward(1))
    bench.selection.choose(Line("<cell 1>", 2), "elsewhere")
    assert desk.lit("graph") == ((1,), "") and desk.lit("code") == ([("<cell 1>", 2)],)
    assert desk.lit("table") == (None,)
    names = [gradient.name for gradient in backward(1).gradients]
    bench.selection.choose(Parameter(names[0]), "elsewhere")
    assert desk.lit("table") == (names[0],)
    bench.selection.choose(Module("linear1"), "elsewhere")
    assert desk.lit("graph")[1] == "linear1"


def test_a_graph_and_a_pass_that_come_later_light_what_is_chosen(desk, bench) -> None:
    names = [gradient.name for gradient in backward(1).gradients]
    bench.selection.choose(Parameter(names[0]), "elsewhere")
    desk.shown.clear()
    bench.store.take(graph_of(bench, subject_path=""))
    assert [told[0] for told in desk.shown] == ["graph", "code"] and desk.lit("graph")[0]
    desk.shown.clear()
    bench.store.take(replace(backward(1), revision=bench.store.revision))
    assert desk.shown == [("table", names[0])]


def test_what_is_chosen_is_brought_into_view(desk, bench) -> None:
    done: list[Any] = []
    desk.view.graph.bring_up_chosen = lambda: done.append("graph")
    desk.view.code.reveal_chosen = lambda: done.append("code")
    desk.view.backward.table.choose = done.append
    desk.take(graph_of(bench, subject_path=""), backward(1))
    bench.selection.choose(Line("<cell 1>", 2), "elsewhere")
    desk.shown.clear()
    desk.presenter.show_nodes()
    assert desk.lit("graph") == ((1,), "") and done == ["graph"]
    desk.presenter.show_lines()
    name = backward(1).gradients[0].name
    desk.presenter.show_gradient(Parameter(name))
    desk.presenter.show_gradient(Element("nothing"))
    assert done == ["graph", "code", name]


# -- the presenters of the page --------------------------------------------------------------------


@pytest.fixture
def page(bench, link, qtbot) -> AutogradPage:
    link.get_ready()
    page = AutogradPage()
    qtbot.addWidget(page)
    page.ran = []  # pyright: ignore[reportAttributeAccessIssue]
    cells = CellsPresenter(bench, bench.window)
    page.made = pages.present(  # pyright: ignore[reportAttributeAccessIssue]
        bench, page, cells, lambda: page.made.passes, page.ran.append, bench.window
    )
    return page


def asked(link: Any, kind: type) -> list[Any]:
    return [command for command in link.sent if isinstance(command, kind)]


def test_the_presenters_that_others_talk_to_are_those_of_the_page(page, bench, link) -> None:
    made = page.made
    made.passes.show_graph_of("y")
    assert asked(link, StartBackwardCommand)[-1].root == "y"
    made.trace.trace_rule(4)
    assert asked(link, StartTraceCommand)[-1].node == 4
    bench.selection.choose(Element("y"))
    made.chosen.show_nodes()


def test_a_node_of_the_trace_is_shown_on_the_graph(page, bench) -> None:
    bench.store.take(graph_of(bench))
    page.setCurrentWidget(page.trace)
    page.made.trace.node_requested.emit(2)
    assert page.currentWidget() is page.steps and page.steps.graph.selected == 2


def test_a_graph_that_the_trace_wants_is_read_and_its_failure_told_there(page, link) -> None:
    page.made.trace.graph_wanted.emit("y")
    assert asked(link, StartBackwardCommand)[-1].root == "y"
    told: list[str] = []
    page.made.passes.graph_failed.connect(told.append)
    link.fail("y has no graph.")
    assert told == ["y has no graph."]


def test_a_rule_is_stepped_through_in_the_trace(page, bench, link) -> None:
    rules = bench.window.findChild(RulesPresenter)
    rules.trace_requested.emit(3)
    assert page.currentWidget() is page.trace
    assert asked(link, StartTraceCommand)[-1].node == 3
    shown: list[Any] = []
    page.trace.trace_code = lambda source, example=False: shown.append((source, example))
    rules.code_requested.emit("f(x)")
    page.derivatives.trace_requested.emit("g(x)")
    page.derivatives.example_trace_requested.emit("h(x)")
    assert shown == [("f(x)", False), ("g(x)", False), ("h(x)", True)]


def test_python_of_the_derivatives_runs_in_the_console(page) -> None:
    page.derivatives.run_requested.emit("y = f(x)")
    assert page.ran == ["y = f(x)"]


def test_an_example_of_each_tab_has_its_graph_read_from_there(page, bench, link) -> None:
    example = next(iter(graph_examples().values()))
    page.steps.roots.example_chosen.emit(example)
    assert asked(link, RunExampleCommand)[-1].tab == "steps"
    link.answer(ExampleSnapshot(variables=(), error=None))
    command = asked(link, StartBackwardCommand)[-1]
    assert (command.root, command.example) == (example.root, "steps")
    page.made.trace.example_graph_wanted.emit("z", (), "trace")
    command = asked(link, StartBackwardCommand)[-1]
    assert (command.root, command.example) == ("z", "trace")


def test_the_graph_of_a_mistake_is_read_beside_the_one_on_screen(page, bench, link) -> None:
    mistake = next(iter(mistakes().values()))
    page.mistakes.choose(mistake.key)
    page.mistakes.where_requested.emit("y", 1, "Look here.")
    assert asked(link, StartBackwardCommand)[-1].root == "y"
    bench.store.take(graph_of(bench, root="y"))
    bench.store.take(replace(backward(0), revision=bench.store.revision))
    assert page.currentWidget() is page.steps and page.steps.graph.selected == 1


def test_an_example_of_another_project_is_explained_no_more(page, bench, link) -> None:
    told: list[str] = []
    page.steps.show_lesson = told.append
    example = next(iter(graph_examples().values()))
    page.steps.roots.example_chosen.emit(example)
    link.answer(ExampleSnapshot(variables=(), error=None))
    bench.files.opened.emit()
    bench.store.take(replace(backward(0), revision=bench.store.revision))
    assert not any(told)
