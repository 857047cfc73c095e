"""The passes' presenter: which commands a step sends, which error is told, what an edit ends."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from PySide6.QtWidgets import QLineEdit

from app.presenters.autograd.chosen import ChosenPresenter
from app.presenters.autograd.workspace import AutogradPresenter
from app.selection.references import Blocks, Node
from engine.project import edits
from engine.project.document import Project, replace
from engine.project.subject import ConsoleSubject
from engine.protocol import (
    BackwardSnapshot,
    CompareGradientsCommand,
    ComparisonSnapshot,
    ErrorReport,
    ErrorSnapshot,
    ForwardSnapshot,
    GraphSnapshot,
    HeldSnapshot,
    InspectCommand,
    MoveBackwardCommand,
    MoveForwardCommand,
    Snapshot,
    StartBackwardCommand,
    StartForwardCommand,
    Variable,
    VariablesSnapshot,
)
from tests.app.conftest import SCRIPT
from tests.widgets.backward.autograd_snapshots import GRAPH, backward, forward
from widgets.autograd.autograd_view import AutogradView

LEAF = Variable("w", "tensor", "Tensor", shape=(3,))
ROOT = Variable("y", "tensor", "Tensor", shape=(2, 3), grad_fn="MulBackward0")
LOSS = Variable("loss", "tensor", "Tensor", shape=(), grad_fn="SumBackward0")


class Desk:
    """Input, Linear and ReLU are on the canvas, with the ids that `GRAPH` and `forward` know."""

    def __init__(self, bench, link, qtbot, project: Project | None = None) -> None:
        self.bench, self.link = bench, link
        project = project or bench.project
        for kind in ("Input", "nn.Linear", "nn.ReLU"):
            project, _ = edits.add_block(project, kind, 0, 0)
        bench.store.set_project(project)
        self.view = AutogradView()
        qtbot.addWidget(self.view)
        page = cast(Any, SimpleNamespace(steps=self.view))
        self.passes = AutogradPresenter(bench, page, bench.window)
        ChosenPresenter(bench, self.view, bench.window)

    def take(self, *snapshots: Snapshot) -> None:
        for snapshot in snapshots:
            self.bench.store.take(replace(snapshot, revision=self.bench.store.revision))

    def empty_canvas(self) -> None:
        blocks = [block.id for block in self.bench.project.model.blocks]
        self.bench.store.set_project(edits.remove(self.bench.project, blocks, ()))

    @property
    def problem(self) -> str:
        return self.view._problem.text()

    @property
    def gradient(self) -> QLineEdit:
        return self.view.backward.options.gradient

    def kinds(self) -> list[type]:
        return [type(command) for command in self.link.sent]


@pytest.fixture
def desk(bench, link, qtbot) -> Desk:
    link.get_ready()
    return Desk(bench, link, qtbot)


def test_a_forward_step_begins_a_pass_then_moves_and_stands_at_the_end(desk, link, bench):
    desk.passes.step_forward()
    project = bench.project
    assert link.sent == [
        StartForwardCommand(model=project.model, training=project.training, id=1, revision=2)
    ]
    desk.take(forward(1))
    desk.passes.step_forward()
    assert link.sent[1] == MoveForwardCommand(move="step", id=2, revision=2)
    desk.take(forward(4))
    desk.passes.step_forward()
    assert len(link.sent) == 2
    assert bench.window.said == ["The forward pass is at its end. F11 steps backward."]


def test_the_views_start_and_move_both_passes(desk, link):
    desk.view.forward.start_requested.emit(3)
    desk.view.forward.move_requested.emit("to", "b2")
    desk.view.backward.move_requested.emit("to", 4)
    desk.view.backward.compare_requested.emit()
    start, there, back, compare = link.sent
    assert start.batch == 3
    assert (there.move, there.target) == ("to", "b2")
    assert (back.move, back.target) == ("to", 4)
    assert isinstance(compare, CompareGradientsCommand)


def test_a_backward_step_begins_a_pass_after_a_forward_pass_and_then_moves(desk, link):
    desk.passes.step_backward()
    assert desk.kinds() == [StartForwardCommand, StartBackwardCommand]
    desk.take(forward(4))
    desk.passes.step_backward()
    assert desk.kinds()[2:] == [StartBackwardCommand]
    desk.take(GRAPH, backward(1))
    desk.passes.step_backward()
    assert link.sent[3] == MoveBackwardCommand(move="step", id=4, revision=2)


def test_a_root_of_the_console_needs_no_forward_pass(desk, link):
    desk.passes.show_graph_of("y * 2")
    assert desk.kinds() == [StartBackwardCommand] and link.sent[0].root == "y * 2"


def test_a_step_back_is_of_the_backward_pass_if_there_is_one(desk, link):
    desk.passes.step_back()
    desk.passes.run_back()  # there is none that could run back
    assert link.sent == [MoveForwardCommand(move="back", id=1, revision=2)]
    desk.take(GRAPH, backward(1))
    desk.passes.step_back()
    desk.passes.run_back()
    assert [command.move for command in link.sent[1:]] == ["back", "back_run"]


def test_a_run_begins_a_pass_only_if_there_is_none(desk, link):
    desk.passes.run_backward("out")
    assert desk.kinds() == [StartForwardCommand, StartBackwardCommand, MoveBackwardCommand]
    assert link.sent[2].move == "out"
    desk.take(GRAPH, backward(0))
    desk.passes.run_backward()
    assert desk.kinds()[3:] == [MoveBackwardCommand] and link.sent[3].move == "run"


def test_of_commands_that_need_each_other_the_first_error_alone_is_told(desk, link):
    desk.passes.run_backward()
    for number, message in enumerate(("It has no input.", "No pass.", "No graph."), start=1):
        link.fail(message, to=number)
    assert desk.problem == "It has no input."
    desk.passes.step_back()
    link.fail("There is nothing to undo.")  # needs none of them
    assert desk.problem == "There is nothing to undo."
    desk.take(forward(0))
    assert desk.problem == ""
    desk.passes.run_backward()
    link.fail("It stopped.")  # the pass that it needs has begun
    assert desk.problem == "It stopped."


def test_an_interrupt_and_errors_of_others(desk, link):
    desk.passes.start_forward()
    interrupt = ErrorReport("KeyboardInterrupt", "")
    link.answer(ErrorSnapshot(command="StartForwardCommand", error=interrupt))
    assert desk.problem == "Interrupted. The step that was running is not done: step again."
    other = ErrorSnapshot(command="CheckModelCommand", error=ErrorReport("E", "Other."))
    desk.take(other)
    assert "Other" not in desk.problem
    of_another = ErrorSnapshot(command="StartForwardCommand", error=ErrorReport("E", "Other."))
    link.answer(of_another, to=99)  # the same kind of command, sent by another presenter
    assert "Other" not in desk.problem


def test_a_graph_that_cannot_be_read_is_told_to_those_who_asked(desk, link):
    failed: list[str] = []
    desk.passes.graph_failed.connect(failed.append)
    desk.passes.show_graph_of("y")
    link.fail("y has no graph.")
    assert failed == ["y has no graph."]
    desk.passes.start_forward()
    link.fail("It broke.")
    assert len(failed) == 1


def test_without_an_engine_the_view_says_so(desk, link):
    link.close()
    assert desk.passes.start_forward() == 0
    assert desk.problem.startswith("There is no engine") and link.sent == []


def test_a_value_is_read_with_the_optimizer_of_the_project(desk, bench, link):
    desk.view.inspect_requested.emit("parameter", "linear1.bias")
    setup = bench.project.training
    expected = InspectCommand(
        of="parameter",
        key="linear1.bias",
        optimizer=setup.optimizer,
        optimizer_params=setup.optimizer_params,
    )
    assert replace(link.sent[0], id=0, revision=0) == expected and setup.optimizer


# -- the root ------------------------------------------------------------------------------------


def test_on_an_empty_canvas_the_newest_tensor_is_the_root_until_there_are_blocks(desk, link, bench):
    desk.empty_canvas()
    desk.take(VariablesSnapshot(variables=(LOSS, ROOT, LEAF)))
    desk.passes.start_backward()
    assert desk.kinds() == [StartBackwardCommand]
    assert (link.sent[0].root, link.sent[0].gradient) == ("y", "torch.ones_like(y)")
    bench.store.set_project(edits.add_block(bench.project, "Input", 0, 0)[0])
    desk.passes.start_backward()
    assert desk.kinds()[1:] == [StartForwardCommand, StartBackwardCommand]
    assert (link.sent[2].root, link.sent[2].gradient) == ("", "")


def test_a_root_that_was_chosen_stays(desk, link, bench):
    desk.empty_canvas()
    desk.take(VariablesSnapshot(variables=(ROOT, LOSS)))
    desk.view.roots.choose("y")
    desk.passes.start_backward()
    bench.store.set_project(edits.add_block(bench.project, "Input", 0, 0)[0])
    desk.passes.start_backward()
    assert [command.root for command in link.sent] == ["y", "y", "y"]


def test_variables_that_were_known_before_are_offered(bench, link, qtbot):
    link.get_ready()
    bench.store.take(VariablesSnapshot(variables=(ROOT,)))
    assert Desk(bench, link, qtbot).view.roots.newest == "y"


@pytest.mark.parametrize(
    ("root", "gradient"),
    [
        ("y", "torch.ones_like(y)"),
        ("loss", ""),
        ("loss, y", "None, torch.ones_like(y)"),
        ("loss, loss", ""),
        ("unknown", ""),
    ],
)
def test_a_root_of_many_numbers_is_offered_a_gradient_of_ones(desk, link, root, gradient):
    desk.take(VariablesSnapshot(variables=(ROOT, LOSS)))
    desk.view.roots.choose(root)
    assert desk.gradient.text() == gradient == link.sent[-1].gradient


def test_a_gradient_that_the_reader_wrote_stays_and_one_that_was_offered_does_not(desk):
    desk.take(VariablesSnapshot(variables=(ROOT, LOSS)))
    desk.view.roots.choose("y")
    desk.view.roots.choose("loss")
    assert desk.gradient.text() == ""
    desk.gradient.setText("torch.zeros(2, 3)")
    desk.view.roots.choose("y")
    assert desk.gradient.text() == "torch.zeros(2, 3)"


# -- what ends a pass ----------------------------------------------------------------------------


def test_a_forward_step_ends_the_backward_pass(desk, bench):
    desk.take(forward(4), GRAPH, backward(1), ComparisonSnapshot(max_difference=0, differences={}))
    desk.take(forward(1))
    for kind in (GraphSnapshot, BackwardSnapshot, ComparisonSnapshot):
        assert bench.newest(kind) is None
    assert desk.view.graph.facts is None


def test_an_edit_of_the_model_ends_its_pass_and_says_so(desk, bench):
    desk.take(forward(4), GRAPH, backward(1))
    bench.store.set_project(edits.add_block(bench.project, "nn.ReLU", 0, 0)[0])
    assert desk.problem.startswith("The model or its data has changed")
    assert desk.view.graph.facts is None and bench.newest(ForwardSnapshot) is None
    desk.view.show_problem("")
    bench.store.set_project(edits.add_block(bench.project, "nn.ReLU", 0, 0)[0])
    assert desk.problem == ""  # nothing was under way any more


def test_another_subject_ends_the_pass_of_code(desk, bench):
    """It has a graph, but no forward pass that could be stepped."""
    net, other = ConsoleSubject("net"), ConsoleSubject("other")
    bench.store.set_project(edits.set_subject(bench.project, net))
    desk.take(GRAPH, backward(0))
    assert desk.view.graph.facts is not None
    bench.store.set_project(edits.set_subject(bench.project, other))
    assert desk.problem.startswith("The model or its data has changed")
    assert desk.view.graph.facts is None and not bench.newest(BackwardSnapshot)


def test_an_edit_of_the_model_leaves_the_graph_of_a_tensor_alone(desk, bench):
    desk.take(forward(4), replace(GRAPH, root="y"), backward(1))
    bench.store.set_project(edits.add_block(bench.project, "nn.ReLU", 0, 0)[0])
    assert desk.problem == "" and desk.view.graph.facts is not None
    assert desk.view.forward._snapshot is None


def test_a_pass_that_went_with_its_engine_is_not_ended_again(desk, bench, link):
    desk.take(forward(4))
    link.close()
    bench.store.set_project(edits.add_block(bench.project, "nn.ReLU", 0, 0)[0])
    assert desk.problem == ""


# -- selection -----------------------------------------------------------------------------------


def test_a_block_or_a_node_that_is_chosen_is_selected_on_the_canvas(desk, bench):
    desk.view.node_selected.emit(1)  # of a graph that is gone
    assert bench.selected_blocks == ()
    desk.take(forward(4), GRAPH, backward(0))
    desk.view.forward.blocks.chosen.emit("b2")
    assert bench.selected_blocks == ("b2",)
    desk.view.node_selected.emit(1)
    assert bench.selected_blocks == ("b3",)
    desk.view.node_selected.emit(0)  # the loss is no block of the canvas
    assert bench.selected_blocks == () and bench.selection.current == Node(0, graph=0)


def test_a_block_that_is_selected_is_shown_in_the_list_and_on_the_graph(desk, bench):
    desk.take(forward(4), GRAPH, backward(0))
    rows, graph = desk.view.forward.blocks, desk.view.graph
    bench.selection.choose(Blocks(("b2",)))
    assert (rows.selected_block(), graph.selected) == ("b2", 2)
    assert desk.view.backward.has_pass
    graph.show_selected(4)
    bench.selection.choose(Blocks(("b3", "b2")))
    assert (rows.selected_block(), graph.selected) == ("b2", 4)  # a node of one of them
    bench.selection.choose(Blocks(("b3",)))
    assert (rows.selected_block(), graph.selected) == ("b3", 1)


def test_a_block_that_does_not_run_is_shown_in_no_list(desk, bench):
    bench.selection.choose(Blocks(("b2",)))  # there is no pass yet
    bench.store.set_project(edits.add_block(bench.project, "nn.Tanh", 0, 0)[0])
    desk.take(forward(1), GRAPH, backward(0))
    desk.view.forward.blocks.setCurrentRow(3)
    assert desk.view.graph.selected == 2
    bench.selection.choose(Blocks(("b4",)))
    assert desk.view.forward.blocks.selected_block() == "loss"
    assert desk.view.graph.selected is None


def test_a_graph_is_laid_out_and_drawn(desk, bench):
    assert desk.passes.drawn is None
    desk.take(forward(4), GRAPH)
    assert desk.passes.drawn is bench.newest(GraphSnapshot) is not None


def test_a_pass_that_was_held_before_the_page_was_made_is_shown(bench, link, qtbot):
    link.get_ready()
    held = HeldSnapshot(at="backward", title="cell 1", file="cell 1", line=2)
    desk = Desk(bench, link, qtbot)
    desk.passes.show_held_pass(held)  # nothing of it has come yet
    for snapshot in (GRAPH, backward(1)):
        bench.store.take(replace(snapshot, revision=bench.store.revision))
    shown: list[object] = []
    desk.view.show_graph = lambda graph, names: shown.append(graph)
    desk.view.show_backward = shown.append
    desk.view.own_call.show_held = shown.append
    desk.passes.show_held_pass(held)
    newest = bench.newest(GraphSnapshot), bench.newest(BackwardSnapshot)
    assert shown == [held, *newest]
    assert desk.view.own_call.stop.isVisibleTo(desk.view.own_call)
    link.attach_to(SCRIPT)
    desk.passes.show_own_call(None)
    assert shown[3:] == [None]
    assert not desk.view.own_call.stop.isVisibleTo(desk.view.own_call)


def test_the_graph_of_held_code_is_of_no_example(desk, bench, link):
    desk.passes.show_example("z", (), "steps")
    assert (link.sent[-1].root, link.sent[-1].example) == ("z", "steps")
    bench.store.take(HeldSnapshot(at="backward", title="cell 1", file="cell 1", line=2))
    desk.take(replace(GRAPH, root="q"))
    desk.passes.start_backward()
    assert (link.sent[-1].root, link.sent[-1].example) == ("q", "")
