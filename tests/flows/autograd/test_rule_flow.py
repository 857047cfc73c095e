"""A node's rule through the window: follows the steps and the selection, checked, stepped into."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPushButton

from app import templates
from engine.protocol import BackwardSnapshot, GraphSnapshot
from tests.gestures import click, click_button, press_key
from widgets.rules.rule_card import RuleCard

pytestmark = pytest.mark.one_program


@pytest.fixture
def lab(program, qtbot):
    program.bench.files.new(templates.load_template("mlp"))
    program.window.show_workspace("autograd")
    program.bench.link.drain()
    card(program).setCurrentWidget(card(program).formula)
    return program


def view(program):
    return program.window.page("autograd").steps


def card(program):
    return program.window.page("autograd").findChild(RuleCard)


def start_backward(program) -> None:
    view(program).forward.start_requested.emit(0)
    view(program).backward.start_requested.emit()
    program.bench.link.drain()


def move(program, to: str, node: int = -1) -> BackwardSnapshot:
    view(program).backward.move_requested.emit(to, node)
    program.bench.link.drain()
    snapshot = program.bench.store.newest(BackwardSnapshot)
    assert snapshot is not None
    return snapshot


def formula(program) -> str:
    return card(program).formula.text().splitlines()[1]


def node_named(program, name: str) -> int:
    graph = program.bench.store.newest(GraphSnapshot)
    return next(node.id for node in graph.nodes if node.name == name)


def test_the_card_stands_beside_the_steps_values(lab):
    assert view(lab).backward.isAncestorOf(card(lab))


def test_a_rule_is_worked_out_when_it_is_looked_at(lab):
    shown = card(lab)
    shown.setCurrentIndex(0)
    start_backward(lab)
    snapshot = move(lab, "step")
    assert not shown.rule_in_front and shown.node is None
    shown.setCurrentWidget(shown.check)
    lab.bench.link.drain()
    assert shown.node == snapshot.step.node and shown.check.button.isEnabled()


def test_the_rule_follows_the_steps(lab):
    start_backward(lab)
    graph = lab.bench.store.newest(GraphSnapshot)
    assert card(lab).node == graph.plan[0] and formula(lab).startswith("∂L/∂x = ")
    for _ in range(3):
        snapshot = move(lab, "step")
        assert card(lab).node == snapshot.step.node
    assert "= " in card(lab).formula.text().splitlines()[-1]
    snapshot = move(lab, "back")
    assert card(lab).node == snapshot.step.node


def test_choosing_a_node_shows_its_rule(lab):
    start_backward(lab)
    move(lab, "end")
    node = node_named(lab, "ReluBackward0")
    view(lab).node_selected.emit(node)
    lab.bench.link.drain()
    assert formula(lab) == "∂L/∂x = 0 if y ≤ 0 else g"


def test_another_element_and_input_are_asked_for(lab, qtbot):
    start_backward(lab)
    node = node_named(lab, "AddmmBackward0")
    move(lab, "to", node)
    page = card(lab).formula
    page.element.setText("1")
    press_key(page.element, Qt.Key.Key_Return)
    lab.bench.link.drain()
    assert "∂L/∂c[1] = " in page.text()
    page.inputs.setCurrentIndex(page.inputs.count() - 1)
    page.inputs.activated.emit(page.inputs.count() - 1)
    lab.bench.link.drain()
    assert formula(lab) == "∂L/∂W = xᵀ · g"


def test_the_rule_is_checked_and_stepped_into(lab, qtbot):
    start_backward(lab)
    node = node_named(lab, "AddmmBackward0")
    move(lab, "to", node)
    shown = card(lab)
    for name in ("rule_check", "rule_ops"):
        button = shown.findChild(QPushButton, name)
        assert button.isEnabled()
        button.click()
        lab.bench.link.drain()
        assert button.isEnabled()
    verdicts = [row[4] for row in shown.check.table.rows()]
    assert verdicts and set(verdicts) == {"right"}
    assert "mm" in [row[1].strip() for row in shown.ops.table.rows()]
    move(lab, "step")
    assert shown.check.table.rowCount() == shown.ops.table.rowCount() == 0


FUNCTION = """\
class Triple(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 3
    @staticmethod
    def backward(ctx, g):
        times = 3
        return g * times
w = torch.ones(2, requires_grad=True)
loss = Triple.apply(w).square().sum()
"""


@pytest.mark.own_program
@pytest.mark.parametrize("by", ["button", "key"])
def test_a_rule_is_stepped_into_line_by_line(program, qtbot, by):
    program.window.show_workspace("autograd")
    program.workspaces.run_python(FUNCTION)
    program.bench.link.drain()
    page = program.window.page("autograd")
    page.steps.roots.choose("loss")
    program.bench.link.drain()
    node = node_named(program, "TripleBackward")
    press_key(page.steps, Qt.Key.Key_F11, Qt.KeyboardModifier.ControlModifier)
    program.bench.link.drain()
    assert page.currentWidget() is page.steps  # it has not run: there is nothing to step into
    move(program, "to", node)
    if by == "button":
        card(program).setCurrentWidget(card(program).ops)
        program.bench.link.drain()
        click_button(page, "rule_trace")
    else:
        press_key(page.steps, Qt.Key.Key_F11, Qt.KeyboardModifier.ControlModifier)
    program.bench.link.drain()
    assert page.currentWidget() is page.trace
    trace = page.trace.trace
    told = [(trace.lines[c.line].text, c.result) for c in trace.calls if c.kind == "line"]
    assert told == [("times = 3", "times = 3"), ("return g * times", "return (2,) float32")]
    assert page.trace.findChild(QLabel, "trace_state").text().startswith("Rule of Triple")
    reader = page.trace.source.reader
    assert reader.toPlainText() == FUNCTION and reader.marked_lines() == (7,)
    page.trace.bar.trigger("line")
    program.bench.link.drain()
    assert reader.marked_lines() == (8,)
    # The pass stands where it stood, and another edit of the model leaves the trace alone.
    assert program.bench.store.newest(BackwardSnapshot).position == 3
    page.trace.bar.trigger("back_line")
    program.bench.link.drain()
    assert reader.marked_lines() == (7,)


def test_an_index_that_is_not_there_is_told_in_place(lab, qtbot):
    start_backward(lab)
    move(lab, "to", node_named(lab, "AddmmBackward0"))
    page = card(lab).formula
    before = page.text()
    page.element.setText("9999")
    press_key(page.element, Qt.Key.Key_Return)
    lab.bench.link.drain()
    assert "no element" in page.problem() and page.text() == before


def test_another_model_clears_the_card(lab):
    start_backward(lab)
    lab.bench.files.new(templates.load_template("lenet"))
    lab.bench.link.drain()
    assert card(lab).node is None and card(lab).formula.text() == ""


@pytest.mark.own_program
def test_a_rule_of_the_console_is_checked_once_its_code_is_traced(program, qtbot):
    """A cell is recorded without its values: they are taken when the check asks for a trace."""
    program.window.show_workspace("autograd")
    page = program.window.page("autograd")
    for cell in ("other = torch.ones(2)", "x = torch.tensor([1.0, 2.0], requires_grad=True)",
                 "y = (x ** 3).sum()"):  # fmt: skip
        program.workspaces.run_python(cell)
        program.bench.link.drain()

    def checked() -> str:
        program.workspaces.autograd.show_graph_of("y")
        program.bench.link.drain()
        move(program, "run")
        page.steps.graph.node_selected.emit(node_named(program, "PowBackward0"))
        card(program).setCurrentWidget(card(program).check)
        program.bench.link.drain()
        click(card(program).check.button)
        program.bench.link.drain()
        name = "rule_check_notes" if card(program).check.trace.isVisible() else "rule_verdict"
        return card(program).findChild(QLabel, name).text()

    assert "was not recorded" in checked()
    assert card(program).check.trace.isVisible()
    click(card(program).check.trace)
    program.bench.link.drain()
    assert page.currentWidget() is page.trace
    assert page.trace.trace.source == (
        "x = torch.tensor([1.0, 2.0], requires_grad=True)\n\ny = (x ** 3).sum()"
    ), "what made the graph, and nothing else"
    page.setCurrentWidget(page.steps)
    assert checked().startswith("Right: 2 elements agree")
    rows = card(program).check.table.rows()
    assert sorted(float(row[1]) for row in rows) == [3.0, 12.0], "3 x², from the engine"
