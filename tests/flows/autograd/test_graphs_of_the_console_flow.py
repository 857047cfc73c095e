"""Graphs of the console's tensors, and the usual mistakes, through the window."""

from __future__ import annotations

import pytest
import torch
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPushButton

from app import templates
from engine.project import edits
from engine.project.examples import mistakes
from engine.protocol import BackwardSnapshot, GraphSnapshot
from tests.flows.autograd.drawn import drawn
from tests.gestures import click_button, press_key
from widgets.boxes.facts import stale_words

pytestmark = pytest.mark.one_program

CELL = """
x = torch.tensor(3.0, requires_grad=True)
y = x ** 3
"""


@pytest.fixture
def page(program):
    program.window.show_workspace("autograd")
    program.workspaces.run_python(CELL)
    program.bench.link.drain()
    return program.window.page("autograd")


def label(page, name: str) -> str:
    return page.findChild(QLabel, name).text()


def test_the_graph_of_a_variable_from_the_list_of_variables(qtbot, program, page):
    program.window.show_workspace("tensors")
    program.window.page("tensors").variables.graph_requested.emit("y")
    graph = drawn(qtbot, program)
    assert program.window.workspace == "autograd" and page.currentWidget() is page.steps
    assert (graph.root, [node.name for node in graph.nodes]) == (
        "y", ["PowBackward0", "AccumulateGrad"],
    )  # fmt: skip
    assert graph.nodes[0].source.text == "y = x ** 3"
    assert label(page, "graph_facts").startswith("2 nodes (1 leaf)")
    program.workspaces.autograd.step_backward()
    program.workspaces.autograd.step_backward()
    program.bench.link.drain()
    variables = program.bench.link._session.lab.console.namespace.variables
    assert variables["x"].grad == 27
    assert program.bench.store.newest(BackwardSnapshot).position == 2


def names_of(program) -> list[str]:
    program.bench.link.drain()
    return [node.name for node in program.bench.newest(GraphSnapshot).nodes]


def test_the_graph_of_a_name_that_is_bound_anew_is_read_again(program, page):
    page.steps.roots.choose("y")
    assert names_of(program) == ["PowBackward0", "AccumulateGrad"]
    program.workspaces.run_python("other = 1")
    assert names_of(program) == ["PowBackward0", "AccumulateGrad"]
    program.workspaces.run_python("y = (x * 2).sin()")
    assert names_of(program) == ["SinBackward0", "MulBackward0", "AccumulateGrad"]
    assert label(page, "autograd_old") == ""
    program.window.show_workspace("tensors")
    program.workspaces.run_python("y = x.exp()")
    assert names_of(program) == ["SinBackward0", "MulBackward0", "AccumulateGrad"]  # unseen
    program.window.show_workspace("autograd")
    assert names_of(program) == ["ExpBackward0", "AccumulateGrad"]


@pytest.mark.parametrize("root", ["y", "y.sum()"])
def test_a_pass_that_has_begun_or_code_that_would_run_is_said_to_be_old(program, page, root):
    page.steps.roots.choose(root)
    program.bench.link.drain()
    if root == "y":
        program.workspaces.autograd.step_backward()
    before = names_of(program)
    program.workspaces.run_python("y = x.exp()")
    assert names_of(program) == before
    assert f"The variables of `{root}` have changed" in label(page, "autograd_old")
    press_key(page.steps.roots._box.lineEdit(), Qt.Key.Key_Return)
    assert "ExpBackward0" in names_of(program)
    assert label(page, "autograd_old") == ""


def test_enter_reads_the_same_root_again(program, page):
    page.steps.roots.choose("y")
    first = program.bench.newest(GraphSnapshot) if names_of(program) else None
    edit = page.steps.roots._box.lineEdit()
    edit.setText("y")
    press_key(edit, Qt.Key.Key_Return)
    program.bench.link.drain()
    again = program.bench.newest(GraphSnapshot)
    assert again.root == "y" and again.reply_to > first.reply_to


def test_an_example_stays_an_example_when_its_root_is_entered_again(program, page):
    program.workspaces.show_example("three_derivatives")
    program.bench.link.drain()
    program.workspaces.run_python("y = x.exp()")
    assert names_of(program) == ["PowBackward0", "AccumulateGrad"]
    assert page.steps.roots._box.currentText() == "y"  # and not the console's, an ExpBackward0
    press_key(page.steps.roots._box.lineEdit(), Qt.Key.Key_Return)
    assert names_of(program) == ["PowBackward0", "AccumulateGrad"]


def test_a_derivative_of_variables_that_have_changed_says_so(program, page):
    page.setCurrentWidget(page.derivatives)
    program.workspaces.run_python("f = torch.sin")
    program.bench.link.drain()
    form = page.derivatives.form
    form.show_question("jacobian", "f", "x")
    form.ask()
    program.bench.link.drain()
    assert label(page, "derivative_hint") == ""
    program.workspaces.run_python("other = 2")
    program.bench.link.drain()
    assert label(page, "derivative_hint") == ""
    program.workspaces.run_python("x = torch.tensor(4.0, requires_grad=True)")
    program.bench.link.drain()
    assert "have changed since: compute again" in label(page, "derivative_hint")


def test_with_nothing_on_the_canvas_the_newest_tensor_is_meant(qtbot, program, page):
    program.workspaces.run_python("z = torch.stack([x, y])")
    program.bench.link.drain()
    program.workspaces.autograd.run_backward()
    graph = drawn(qtbot, program)
    assert (graph.root, graph.nodes[0].name) == ("z", "StackBackward0")
    assert page.steps.backward.options.gradient.text() == "torch.ones_like(z)"
    program.bench.link.drain()
    snapshot = program.bench.store.newest(BackwardSnapshot)
    assert snapshot is not None and snapshot.position == len(graph.plan)
    gradient = snapshot.gradients[0].gradient
    assert gradient is not None and gradient.mean == 1 + 3 * 3.0**2
    program.bench.files.new(templates.load_template("mlp"))
    program.workspaces.autograd.start_backward()
    assert drawn(qtbot, program).root == "", "a model is there now"


def test_an_edit_of_the_model_leaves_it_alone(qtbot, program, page):
    program.bench.files.new(templates.load_template("mlp"))
    program.workspaces.run_python(CELL)
    program.bench.link.drain()
    page.steps.roots.choose("y")
    drawn(qtbot, program)
    block = program.bench.store.project.model.blocks[2]
    program.bench.edit("Change", lambda p: edits.set_param(p, block.id, "out_features", 32))
    program.bench.link.drain()
    program.workspaces.autograd.step_backward()
    program.bench.link.drain()
    assert program.bench.store.newest(BackwardSnapshot).position == 1


def test_a_tensor_without_a_graph_says_why(program, page):
    program.workspaces.run_python("z = torch.ones(2)")
    program.bench.link.drain()
    page.steps.roots.choose("z")
    program.bench.link.drain()
    assert "`z` has no graph" in label(page, "autograd_problem")


def test_a_root_of_many_numbers_is_offered_a_gradient_of_ones(qtbot, program, page):
    program.workspaces.run_python("v = torch.ones(2, requires_grad=True) * 2")
    program.bench.link.drain()
    options = page.steps.backward.options
    page.steps.roots.choose("v, y")
    drawn(qtbot, program)
    assert options.gradient.text() == "torch.ones_like(v), None"
    page.steps.roots.choose("y")
    assert options.gradient.text() == ""
    options.gradient.setText("torch.full_like(v, 5)")
    page.steps.roots.choose("v")
    drawn(qtbot, program)
    assert options.gradient.text() == "torch.full_like(v, 5)"


def test_an_overwritten_tensor_is_flagged_before_backward_is_called(qtbot, program, page):
    program.workspaces.run_python("y = x.exp()\nz = y * 2\nwith torch.no_grad():\n    y.add_(1)\n")
    program.bench.link.drain()
    page.steps.roots.choose("z")
    graph = drawn(qtbot, program)
    (save,) = graph.stale
    assert (graph.nodes[save.node].name, save.saved, save.op) == ("ExpBackward0", "result", "add_")
    assert [node.id for node in graph.nodes if node.stale] == [save.node]
    assert label(page, "graph_facts").endswith("1 overwritten since: backward will fail")
    words = stale_words(save)
    assert "saved at version 0 and is at 1" in words and "line 4: y.add_(1)" in words
    page.steps.graph.select(save.node)
    assert f"{words}." in label(page, "node_about")
    for _ in range(3):
        program.workspaces.autograd.step_backward()
        program.bench.link.drain()
    assert "modified by an inplace operation" in label(page, "autograd_problem")


def test_actions_lead_to_the_steps(program, page):
    page.setCurrentWidget(page.mistakes)
    program.bench.actions["autograd.start"].trigger()
    assert page.currentWidget() is page.steps


def test_each_mistake_runs_and_is_drawn(qtbot, program, page):
    for mistake in mistakes().values():
        program.bench.files.new()
        program.bench.link.drain()
        program.window.show_workspace("autograd")
        page.setCurrentWidget(page.mistakes)
        page.mistakes.list.setCurrentRow(list(mistakes()).index(mistake.key))
        assert not page.findChild(QPushButton, "mistake_graph").isEnabled()
        click_button(page, "mistake_code_run")
        program.bench.link.drain()
        error = label(page, "mistake_error")
        assert error.startswith(f"{mistake.error}: ") if mistake.error else not error, mistake.key
        if mistake.missing:
            click_button(page, "why_ask")
            program.bench.link.drain()
            assert f"`{mistake.missing}`" in label(page, "why_answer") and label(page, "why_hint")
        click_button(page, "mistake_graph")
        see_mistake(page, drawn(qtbot, program), mistake)


def see_mistake(page, graph: GraphSnapshot, mistake) -> None:
    assert graph.root == mistake.root and page.currentWidget() is page.steps
    node, view = graph.nodes[page.steps.graph.selected], page.steps.graph
    assert mistake.node in (node.name, node.label)
    assert view.facts.visible.boxes[view.selected_box].node == node.id
    assert view.visible_rect().contains(view.node_rect(node.id)), "in sight"
    assert label(page, "autograd_lesson") == f"The mistake: {mistake.title}. {mistake.look}"
    fault = {"freed": node.freed, "overwritten": node.stale, "step_before_backward": node.stale}
    assert fault.get(mistake.key, True)
    if mistake.key in ("detached", "integer", "late"):
        assert [cut.node for cut in graph.cuts] == [node.id]


def test_mistakes_leave_the_console_and_the_project_alone(qtbot, program, page):
    program.workspaces.run_python("w = torch.ones(5)")
    program.bench.link.drain()
    console = program.bench.link._session.lab.console.namespace.variables
    before, kept = dict(console), program.bench.project.cells
    page.setCurrentWidget(page.mistakes)
    page.mistakes.choose("detached")
    click_button(page, "mistake_code_run")
    program.bench.link.drain()
    click_button(page, "mistake_instead_run")
    program.bench.link.drain()
    assert label(page, "mistake_instead_ran") == "It ran without an error."
    click_button(page, "why_ask")
    program.bench.link.drain()
    assert label(page, "why_answer") == "`w.grad` is there."  # in the code that ran last
    assert set(console) == set(before) and console["w"] is before["w"]
    assert program.bench.project.cells == kept


def test_why_looks_where_the_graph_on_screen_came_from(qtbot, program, page):
    program.workspaces.run_python("x = torch.ones(5)")  # the example has an x, too
    program.bench.link.drain()
    program.workspaces.show_example("cuts")
    drawn(qtbot, program)
    page.setCurrentWidget(page.mistakes)
    page.mistakes.name.show_text("x")
    page.mistakes.root.show_text("")
    click_button(page, "why_ask")
    program.bench.link.drain()
    assert label(page, "why_answer").startswith("The graph has a path from ")


@pytest.mark.own_program
def test_what_is_to_be_seen_goes_with_its_graph(qtbot, program, page):
    page.setCurrentWidget(page.mistakes)
    click_button(page, "mistake_code_run")
    program.bench.link.drain()
    click_button(page, "mistake_graph")
    drawn(qtbot, program)
    lesson = page.findChild(QLabel, "autograd_lesson")
    assert lesson.isVisible()
    assert "1 freed by a backward pass" in label(page, "graph_facts")
    facts = page.steps.graph.facts
    place = facts.index_of["#0"]
    assert label(page, "node_about").endswith("would have kept it. It has not run yet.")
    assert facts.freed[place] and "Freed: a backward pass" in facts.tooltip(place)
    page.steps.roots.choose("x * x")
    drawn(qtbot, program)
    assert not lesson.isVisible()


def test_the_reason_of_a_missing_gradient_is_shown_on_the_graph(qtbot, program, page):
    page.setCurrentWidget(page.mistakes)
    place = list(mistakes()).index("detached")
    page.mistakes.list.setCurrentRow(place)
    where = page.findChild(QPushButton, "why_where")
    assert not where.isVisible()
    click_button(page, "mistake_code_run")
    program.bench.link.drain()
    click_button(page, "why_ask")
    program.bench.link.drain()
    assert where.isVisible()
    words = label(page, "why_answer")
    click_button(page, "why_where")
    graph = drawn(qtbot, program)
    (cut,) = graph.cuts
    assert page.steps.graph.selected == cut.node
    assert label(page, "autograd_lesson") == words


def test_another_project_takes_what_a_mistake_made(program, page):
    page.setCurrentWidget(page.mistakes)
    click_button(page, "mistake_code_run")
    program.bench.link.drain()
    assert page.findChild(QPushButton, "mistake_graph").isEnabled()
    program.bench.files.new(templates.load_template("mlp"))
    program.bench.link.drain()
    assert not page.findChild(QPushButton, "mistake_graph").isEnabled()
    assert label(page, "mistake_error") == ""


def test_why_wants_a_name(program, page):
    page.mistakes.name.clear()
    click_button(page, "why_ask")
    assert label(page, "why_answer") == "Name the tensor whose gradient is missing."


@pytest.mark.own_program
def test_nothing_is_left_of_it_when_the_engine_has_gone(program, page):
    page.setCurrentWidget(page.mistakes)
    click_button(page, "mistake_code_run")
    program.bench.link.drain()
    assert label(page, "mistake_error")
    program.bench.link.close()
    assert not label(page, "mistake_error")
    assert torch.is_grad_enabled()
