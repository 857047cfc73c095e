"""The update formula with the numbers of a chosen parameter, beside its gradient and in Train."""

from __future__ import annotations

import pytest
import torch
from PySide6.QtWidgets import QLabel

from engine.project.document import replace
from engine.protocol import GraphSnapshot
from widgets.text import format_number

pytestmark = pytest.mark.one_program


def use(program, optimizer: str, **params) -> None:
    def change(project):
        training = replace(project.training, optimizer=optimizer, optimizer_params=params)
        return replace(project, training=training)

    program.bench.edit("Choose an optimizer", change)
    program.bench.link.drain()


def about(program) -> list[str]:
    label = program.window.page("autograd").findChild(QLabel, "node_about")
    return label.text().splitlines()


def run_backward(program, row: str) -> None:
    program.workspaces.autograd.start_backward()
    program.bench.link.drain()
    program.workspaces.autograd.run_backward()
    program.bench.link.drain()
    choose(program, row)


def choose(program, row: str) -> None:
    table = program.window.page("autograd").steps.backward.table
    names = [table.item(place, 1).text() for place in range(table.rowCount())]
    table.setCurrentCell(names.index(row), 1)
    program.bench.link.drain()


def test_sgd_with_the_numbers_of_a_parameter(mlp):
    use(mlp, "optim.SGD", lr=0.5)
    run_backward(mlp, "linear2.bias")
    parameter = dict(mlp.bench.link._session.lab.models.forward.state.named_parameters())[
        "linear2.bias"
    ]
    place = int(parameter.grad.abs().argmax())
    old, grad = parameter[place].item(), parameter.grad[place].item()
    copy = torch.nn.Parameter(parameter.detach().clone())
    copy.grad = parameter.grad.clone()
    torch.optim.SGD([copy], lr=0.5).step()
    words, rule, numbers = about(mlp)
    assert words == "What the optimizer uses to update this parameter."
    assert rule == f"SGD's first step at [{place}]: new = old − lr · grad"

    def written(value: float) -> str:
        text = format_number(value, 6)
        return f"({text})" if value < 0 else text

    new = format_number(copy[place].item(), 6)
    assert numbers == f"= {written(old)} − 0.5 · {written(grad)} = {new}"


def test_the_leaf_of_the_row_is_marked_in_the_graph(qtbot, mlp):
    run_backward(mlp, "linear2.bias")
    view = mlp.window.page("autograd").steps
    qtbot.waitUntil(lambda: view.graph.laid_out, timeout=30_000)
    for row in ("linear1.weight", "linear2.bias"):
        choose(mlp, row)
        assert mlp.bench.store.newest(GraphSnapshot).nodes[view.graph.selected].label == row
        assert about(mlp)[0].startswith("What the optimizer")  # the row's gradient stays shown


def test_another_optimizer_has_another_rule(mlp):
    use(mlp, "optim.Adam", lr=0.25)
    run_backward(mlp, "linear1.weight")
    assert about(mlp)[1].endswith("new = old − lr · grad / (|grad| + eps)")
    assert " − 0.25 · " in about(mlp)[2] and "1e-08)" in about(mlp)[2]


@pytest.mark.own_program
def test_a_tensor_of_the_console(mlp):
    use(mlp, "optim.SGD", lr=0.1)
    mlp.workspaces.run_python("w = torch.tensor(3.0, requires_grad=True)\ny = w ** 2")
    mlp.bench.link.drain()
    mlp.window.show_workspace("autograd")
    mlp.workspaces.autograd.show_graph_of("y")
    mlp.workspaces.autograd.run_backward()
    mlp.bench.link.drain()
    choose(mlp, "w")
    assert about(mlp)[1:] == ["SGD's first step: new = old − lr · grad", "= 3 − 0.1 · 6 = 2.4"]


def test_the_set_up_of_training_tells_the_rule(mlp):
    mlp.window.show_workspace("train")
    words = mlp.window.page("train").findChild(QLabel, "setup_optimizer_words")
    use(mlp, "optim.SGD", lr=0.1)
    assert words.text() == "new = old − lr · grad"
    use(mlp, "optim.SGD", lr=0.1, momentum=0.9)
    assert words.text() == (
        "new = old − lr · velocity\n"
        "velocity = momentum · velocity + grad; it begins as the first gradient."
    )
    use(mlp, "optim.Adam")
    assert words.text().startswith("new = old − lr · mean / (√square + eps)")
