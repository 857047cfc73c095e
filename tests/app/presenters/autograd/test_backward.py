"""The debugger's presenter: breakpoints, edited gradients, and the pass as a script."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QGuiApplication

from app.presenters.autograd.backward import BackwardPresenter
from engine.protocol import (
    BackwardCodeSnapshot,
    BackwardSnapshot,
    Breakpoint,
    EditGradientCommand,
    ReadBackwardCodeCommand,
    SetBreakpointsCommand,
    StartBackwardCommand,
    UneditGradientCommand,
    ZeroGradientsCommand,
)
from tests.widgets.backward.autograd_snapshots import GRAPH, NAMES, backward
from widgets.autograd.autograd_view import AutogradView


class Desk:
    def __init__(self, bench, qtbot) -> None:
        self.view = AutogradView()
        qtbot.addWidget(self.view)
        self.view.show_graph(GRAPH, NAMES)
        self.view.show_backward(backward(1))
        self.presenter = BackwardPresenter(bench, self.view, bench.window)

    @property
    def problem(self) -> str:
        return self.view._problem.text()


@pytest.fixture
def desk(bench, link, qtbot) -> Desk:
    link.get_ready()
    return Desk(bench, qtbot)


def breakpoint_at(desk, node: int) -> Breakpoint:
    desk.view.graph.breakpoint_toggled.emit(f"#{node}")
    return desk.view.backward.tabs.breakpoints.breakpoints[-1]


def test_breakpoints_go_to_the_engine_to_the_graph_and_to_each_new_engine(desk, link, monkeypatch):
    shown: list = []
    monkeypatch.setattr(desk.view.graph, "show_breakpoints", shown.append)
    relu = breakpoint_at(desk, 1)
    assert link.sent[0].breakpoints == (relu,) == (Breakpoint(on="node", target="1"),)
    assert shown == [desk.view.backward.tabs.breakpoints.keys()]
    link.close()
    link.get_ready()
    assert [type(command) for command in link.sent] == [SetBreakpointsCommand] * 2
    assert link.sent[1].breakpoints == (relu,)


def test_a_new_engine_is_told_nothing_without_breakpoints(desk, link):
    link.close()
    link.get_ready()
    assert link.sent == []


def test_an_edit_of_a_gradient_is_told_beside_it(desk, link, monkeypatch):
    told: list = []
    strip = desk.view.backward.next_node
    monkeypatch.setattr(strip, "show_applied", lambda: told.append("applied"))
    monkeypatch.setattr(strip, "show_problem", told.append)
    strip.edited.emit(1, "g * 2", 1)
    edit = EditGradientCommand(node=1, expression="g * 2", output=1, id=1, revision=1)
    assert link.sent == [edit]
    link.answer(backward(1))
    strip.edited.emit(1, "h", 0)
    link.fail("There is no h.", "Write g.")
    assert told == ["applied", "There is no h. Write g."]


def test_edits_are_taken_back_from_the_strip_and_from_the_list(desk, link):
    desk.view.backward.next_node.unedited.emit(1)
    desk.view.backward.tabs.unedited.emit(2)
    assert all(isinstance(command, UneditGradientCommand) for command in link.sent)
    assert [command.node for command in link.sent] == [1, 2]
    link.answer(BackwardSnapshot(position=0, step=None, gradients=()))
    assert desk.problem == ""
    link.fail("It has run already.")
    assert desk.problem == "It has run already."


@pytest.mark.parametrize("to_none", [True, False])
def test_gradients_are_reset(desk, link, to_none):
    desk.view.backward.tabs.zero_requested.emit(to_none)
    assert link.sent == [ZeroGradientsCommand(set_to_none=to_none, id=1, revision=1)]
    link.fail("Not now.")
    assert desk.problem == "Not now."


def test_the_graph_of_a_gradient_is_stepped_with_the_options_but_for_the_inputs(desk, link):
    options = desk.view.backward.options
    options.create_graph.setChecked(True)
    options.inputs.setText("w")
    desk.view.backward.table.opened.emit("linear1.weight")
    (command,) = link.sent
    assert isinstance(command, StartBackwardCommand)
    assert (command.of, command.inputs, command.create_graph) == ("linear1.weight", (), True)


def test_a_node_chosen_in_a_list_is_selected_on_the_graph(desk):
    desk.view.backward.node_chosen.emit(4)
    assert desk.view.graph.selected == 4


def test_the_code_goes_to_the_clipboard(desk, link, bench):
    desk.view.backward.copy_requested.emit()
    assert link.sent == [ReadBackwardCodeCommand(id=1, revision=1)]
    link.answer(BackwardCodeSnapshot(text="y.backward()"))
    assert QGuiApplication.clipboard().text() == "y.backward()"
    assert bench.window.said == ["The code of this pass is in the clipboard."]


def test_code_that_cannot_be_copied_says_why(desk, link):
    desk.view.backward.copy_requested.emit()
    link.fail("There is no pass.", "Start one.")
    assert desk.problem == "There is no pass. Start one."
