"""The ready examples of Step through give what their words promise, and what plain torch gives."""

from __future__ import annotations

import pytest
import torch
from PySide6.QtWidgets import QLabel, QToolButton

from engine.project.examples import GraphExample, graph_examples, mistakes
from engine.protocol import BackwardSnapshot, GraphSnapshot

pytestmark = pytest.mark.one_program

PROMISED = {
    "Chain rule: x → ·2 → +3 → squared": {"x": [20.0]},
    "Chain rule with three factors: 75 · 1 · 4 = 300": {"x": [300.0]},
    "Used twice: x² + 3x at 2": {"x": [7.0]},
    "A product, squared: (x · w)²": {"x": [66.0, 88.0], "w": [22.0, 44.0]},
    "A mean: 2x + 1 of two elements": {"x": [1.0, 1.0]},
    "Gradients add up: 6, 12, 18": {"x": [6.0]},
    "Three derivatives of x³ at 3: 27, 18, 6": {"x": [27.0]},
    "More than one number: backward needs a gradient": {"x": [2.0, 4.0, 6.0]},
    "Cuts: detach() and no_grad()": {"x": [1.0]},
}
BY_TITLE = {example.title: example for example in graph_examples().values()}


def settle(program) -> None:
    program.bench.link.drain()


def choose(program, title: str):
    program.window.show_workspace("autograd")
    page = program.window.page("autograd")
    button = page.findChild(QToolButton, "graph_examples")
    next(action for action in button.menu().actions() if action.text() == title).trigger()
    settle(program)
    return page.steps


def run_all(program) -> BackwardSnapshot:
    program.workspaces.autograd._move_backward("end")
    settle(program)
    snapshot = program.bench.store.newest(BackwardSnapshot)
    assert snapshot is not None and snapshot.next is None
    return snapshot


def variables(program) -> dict:
    return program.bench.link._session.lab.console.examples["steps"].variables


def test_an_example_leaves_the_console_and_the_project_alone(program):
    program.workspaces.run_python("x = torch.ones(3)")
    settle(program)
    console = program.bench.link._session.lab.console.namespace.variables
    before, kept = dict(console), program.bench.project.cells
    choose(program, "Used twice: x² + 3x at 2")
    run_all(program)
    assert set(console) == set(before) and console["x"] is before["x"]
    assert program.bench.project.cells == kept
    assert variables(program)["x"].grad.item() == 7.0
    steps = program.window.page("autograd").steps
    program.workspaces.run_python("z = (torch.ones(2, requires_grad=True) * 5).sum()")
    settle(program)
    program.window.show_workspace("autograd")
    steps.roots.choose("z")  # of the console, though the example may have a z too
    settle(program)
    assert program.bench.store.newest(GraphSnapshot).root == "z"
    run_all(program)
    lab = program.bench.link._session.lab
    assert lab.backward.namespace is lab.console.namespace


def test_each_example(program):
    for example in BY_TITLE.values():
        program.bench.files.new()
        settle(program)
        steps = choose(program, example.title)
        graph = program.bench.store.newest(GraphSnapshot)
        assert graph is not None and graph.root == example.root
        lesson = steps.findChild(QLabel, "autograd_lesson")
        assert lesson.isVisible() and lesson.text() == example.tip
        run_all(program)
        check_gradients(example, variables(program))


def check_gradients(example: GraphExample, shown: dict) -> None:
    plain: dict = {"torch": torch}
    exec(example.code, plain)
    root = plain[example.root]
    root.backward(torch.ones_like(root))
    leaves = [name for name, t in plain.items() if isinstance(t, torch.Tensor) and t.is_leaf]
    for name in leaves:
        if plain[name].grad is None:
            assert shown[name].grad is None
        else:
            assert shown[name].grad.equal(plain[name].grad)
    for name, values in PROMISED.get(example.title, {}).items():
        assert plain[name].grad.flatten().tolist() == values


def test_the_cross_entropys_gradient_is_softmax_minus_one_hot(program):
    choose(program, "Matmul + bias + cross entropy")
    run_all(program)
    made = variables(program)
    logits = made["logits"].detach()
    of_logits = logits.softmax(1) - torch.nn.functional.one_hot(torch.tensor([2]), 3)
    torch.testing.assert_close(made["b"].grad, of_logits[0])
    torch.testing.assert_close(made["W"].grad, made["x"].T @ of_logits)


def test_gradients_that_add_up(program):
    choose(program, "Gradients add up: 6, 12, 18")
    for total in (6.0, 12.0, 18.0):
        run_all(program)
        assert variables(program)["x"].grad.item() == total
        program.workspaces.autograd._move_backward("again")
        settle(program)


@pytest.mark.filterwarnings("ignore:.*create_graph=True.*:UserWarning")
def test_three_derivatives(program):
    steps = choose(program, "Three derivatives of x³ at 3: 27, 18, 6")
    steps.backward.options.create_graph.setChecked(True)
    program.workspaces.autograd.start_backward()
    settle(program)
    found = []
    for _ in range(3):
        run_all(program)
        found.append(variables(program)["x"].grad.item())
        steps.backward.table.opened.emit("x")
        settle(program)
    assert found == [27.0, 18.0, 6.0]


def test_another_graph_takes_the_words_away(program):
    steps = choose(program, "Used twice: x² + 3x at 2")
    assert steps.findChild(QLabel, "autograd_lesson").isVisible()
    program.workspaces.run_python("q = torch.ones(2, requires_grad=True).sum()")
    settle(program)
    program.window.show_workspace("autograd")
    steps.roots.choose("q")
    settle(program)
    assert not steps.findChild(QLabel, "autograd_lesson").isVisible()


def test_an_example_under_way_when_the_engine_ends_is_forgotten(program):
    page = program.window.page("autograd")
    example = BY_TITLE["Used twice: x² + 3x at 2"]
    page.steps.roots.example_chosen.emit(example)
    program.bench.link.close()
    program.bench.link.start()
    program.workspaces.run_python(example.code)
    settle(program)
    lesson = page.steps.findChild(QLabel, "autograd_lesson")
    assert program.bench.store.newest(GraphSnapshot) is None and lesson.text() == ""


def test_an_example_keeps_its_code_when_a_mistake_has_run(program):
    example = BY_TITLE["Three derivatives of x³ at 3: 27, 18, 6"]
    steps = choose(program, example.title)
    page = program.window.page("autograd")
    page.mistakes.run_requested.emit(mistakes()["detached"].wrong)
    settle(program)
    program.workspaces.autograd.start_backward()
    settle(program)
    graph = program.bench.store.newest(GraphSnapshot)
    assert [node.source.text for node in graph.nodes if node.source] == ["y = x ** 3"]
    assert steps.code.text.toPlainText() == example.code.rstrip()
    assert steps.findChild(QLabel, "graph_code_title").text() == "Code · example"


def test_an_example_that_fails_says_so(program):
    program.workspaces.run_python("torch.tensor = None")
    settle(program)
    try:
        steps = choose(program, next(iter(BY_TITLE)))
        problem = steps.findChild(QLabel, "autograd_problem")
        assert problem.isVisible() and "callable" in problem.text()
    finally:
        torch.tensor = torch._C._VariableFunctions.tensor


def test_the_lessons_numbers_are_in_the_picture(program, qtbot):
    steps = choose(program, "Chain rule: x → ·2 → +3 → squared")
    qtbot.waitUntil(lambda: steps.graph.laid_out, timeout=30_000)
    run_all(program)
    graph, facts = program.bench.store.newest(GraphSnapshot), steps.graph.facts
    boxes = [facts.index_of[f"#{node}"] for node in graph.plan]
    assert [facts.second_line(box) for box in boxes] == ["L = 25", "z = 5", "y = 2", "leaf = 1"]
    assert [facts.gradient(box).text for box in boxes] == ["1", "10", "10", "20"]
    on_links = {
        facts.visible.links[link].source: facts.link_gradient(link).text for link in range(3)
    }
    assert [on_links[box] for box in boxes[:3]] == ["10", "10", "20"]
    assert steps.code.isVisible() and steps.code.lit[0] == 1
