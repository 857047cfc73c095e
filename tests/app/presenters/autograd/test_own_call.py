"""A backward() of the user's code that is held: what lets it go on, and what the views ask for."""

from __future__ import annotations

import pytest

from app.selection.references import Blocks
from engine.project import edits
from engine.project.subject import ConsoleSubject
from engine.protocol import (
    ContinueTrainingCommand,
    InspectCommand,
    InterruptSignal,
    MoveBackwardCommand,
    RunCellCommand,
    StopSignal,
    Variable,
    VariablesSnapshot,
)
from tests.app.presenters.autograd.test_autograd_workspace import LOSS, ROOT, Desk
from tests.widgets.backward.autograd_snapshots import GRAPH, backward, forward


@pytest.fixture
def desk(bench, link, qtbot) -> Desk:
    link.get_ready()
    return Desk(bench, link, qtbot)


@pytest.mark.parametrize("at_end", [True, False])
def test_at_its_end_the_next_move_lets_the_code_go_on(desk, link, monkeypatch, at_end: bool):
    monkeypatch.setattr(type(desk.view.own_call), "at_end", at_end)
    desk.take(GRAPH, backward(1))
    desk.passes.step_backward()
    desk.passes.run_backward()
    desk.passes.step_back()
    goes_on = ContinueTrainingCommand if at_end else MoveBackwardCommand
    assert desk.kinds() == [goes_on, goes_on, MoveBackwardCommand]
    assert link.sent[-1].move == "back"


def test_its_buttons_let_it_go_on_or_stop_it(desk, bench, link):
    cell = bench.send(RunCellCommand(source="loss.backward()"))
    desk.view.own_call.continue_requested.emit()
    assert desk.kinds()[1:] == [ContinueTrainingCommand]
    desk.view.own_call.stop_requested.emit()
    assert link.signals == [StopSignal(command=cell), InterruptSignal(command=cell)]


def test_a_step_of_code_is_no_forward_pass_of_blocks(desk, bench, link):
    bench.store.set_project(edits.set_subject(bench.project, ConsoleSubject("net")))
    assert not desk.passes.has_forward()
    desk.passes.step_forward()
    assert link.sent == [] and bench.window.said[-1].startswith("A step of your code runs in one")
    desk.passes.start_backward()
    command = link.sent[-1]
    assert (command.root, command.subject) == ("", ConsoleSubject("net"))
    assert command.batch == desk.view.forward.batch


def test_a_root_of_the_console_has_no_forward_pass(desk, bench):
    assert desk.passes.has_forward() and desk.passes.choose_root() == ""
    desk.take(VariablesSnapshot(variables=(ROOT,)))
    desk.view.roots.show_root("y")
    assert not desk.passes.has_forward() and desk.passes.choose_root() == "y"


def test_the_moves_of_the_forward_pass(desk, link):
    desk.take(forward(2))
    desk.passes.undo_forward()
    desk.passes.finish_forward()
    assert [command.move for command in link.sent] == ["back", "end"]


def test_a_graph_beside_the_one_of_an_example_is_of_its_variables(desk, link):
    desk.passes.show_graph_beside("y")
    assert (link.sent[-1].root, link.sent[-1].example) == ("y", "")
    made = Variable("z", "tensor", "Tensor", shape=(3,), grad_fn="MulBackward0")
    desk.passes.show_example("z", (made,), "mistakes")
    assert (link.sent[-1].root, link.sent[-1].gradient) == ("z", "torch.ones_like(z)")
    desk.passes.show_graph_beside("w")
    assert (link.sent[-1].root, link.sent[-1].example) == ("w", "mistakes")
    desk.passes.show_graph_of("y")
    assert (link.sent[-1].root, link.sent[-1].example) == ("y", "")


def test_what_is_said_of_a_pass_goes_with_the_project(desk, bench, link):
    desk.take(VariablesSnapshot(variables=(ROOT, LOSS)), forward(4), GRAPH)
    desk.view.roots.choose("y")
    assert desk.gradient.text() and desk.passes.drawn is not None
    asked = len(link.sent)
    bench.files.opened.emit()
    link.fail("Too late.", to=asked)
    assert desk.problem == "" and desk.view.roots.root == "" and desk.gradient.text() == ""
    assert desk.passes.drawn is None and desk.view.graph.facts is None


def test_the_optimizer_s_numbers_are_asked_for_as_they_are_now(desk, bench, link):
    desk.view.inspect_requested.emit("gradient", "linear1.weight")
    (command,) = link.sent
    assert isinstance(command, InspectCommand) and (command.of, command.key) == (
        "gradient", "linear1.weight",
    )  # fmt: skip
    assert command.optimizer_params == bench.project.training.optimizer_params
    assert bench.selection.current != Blocks(())
