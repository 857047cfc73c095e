"""The numbers on the graph's picture, against plain torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from engine.project.examples import graph_examples
from engine.protocol import (
    BackwardSnapshot,
    GraphNode,
    GraphNumbersCommand,
    GraphNumbersSnapshot,
    GraphSnapshot,
    MoveBackwardCommand,
    NodeNumbers,
    RunCellCommand,
    Snapshot,
    StartBackwardCommand,
    TensorNumber,
)
from engine.server.session import Session

CHAIN = next(each for each in graph_examples().values() if each.title.startswith("Chain rule: "))


class Told:
    """A session's snapshots, the newest of each kind."""

    def __init__(self) -> None:
        self.newest: dict[type, Snapshot] = {}
        self.session = Session(lambda snapshot: self.newest.update({type(snapshot): snapshot}))

    def run(self, source: str, root: str, **options) -> GraphSnapshot:
        self.session.handle(RunCellCommand(source=source))
        self.session.handle(StartBackwardCommand(root=root, **options))
        graph = self.newest[GraphSnapshot]
        assert isinstance(graph, GraphSnapshot)
        return graph

    def move(self, move, target: int = -1) -> BackwardSnapshot:
        self.session.handle(MoveBackwardCommand(move=move, target=target))
        snapshot = self.newest[BackwardSnapshot]
        assert isinstance(snapshot, BackwardSnapshot)
        return snapshot

    def numbers(self) -> dict[str, NodeNumbers]:
        """By the name of the variable, or of torch's node."""
        graph = self.newest[GraphSnapshot]
        assert isinstance(graph, GraphSnapshot)
        ids = tuple(range(len(graph.nodes)))
        self.session.handle(GraphNumbersCommand(nodes=ids))
        answer = self.newest[GraphNumbersSnapshot]
        assert isinstance(answer, GraphNumbersSnapshot)
        return {title(graph.nodes[each.node]): each for each in answer.numbers}


def test_once_asked_for_they_come_with_each_step_of_the_pass() -> None:
    told = Told()
    graph = told.run(CHAIN.code, CHAIN.root)
    assert told.move("step").numbers == ()
    told.numbers()
    for move in ("step", "back", "end"):
        with_step = told.move(move).numbers
        assert {title(graph.nodes[each.node]): each for each in with_step} == told.numbers()
    told.run(CHAIN.code, CHAIN.root)
    assert told.move("step").numbers == ()


def title(node: GraphNode) -> str:
    return node.label.partition(" = ")[0]


def same(number: TensorNumber | None, t: Tensor) -> bool:
    assert number is not None
    elements = tuple(t.flatten().tolist()) if t.numel() <= 4 else ()
    norm = float(torch.linalg.vector_norm(t.detach()))
    return number == TensorNumber(shape=tuple(t.shape), norm=norm, elements=elements)


@pytest.fixture
def told():
    made = Told()
    yield made
    made.session.close()


def test_the_lessons_numbers_at_every_step(told):
    graph = told.run(CHAIN.code, CHAIN.root)
    values = {"x": 1.0, "y": 2.0, "z": 5.0, "L": 25.0}
    at_start = told.numbers()
    assert {name: each.values[0].elements for name, each in at_start.items()} == {
        name: (value,) for name, value in values.items()
    }
    assert {name: [i.elements for i in each.incoming] for name, each in at_start.items()} == {
        "L": [(1.0,)],
        "z": [],
        "y": [],
        "x": [],
    }
    for _ in graph.plan:
        told.move("step")
    names: dict[str, Any] = {"torch": torch}
    exec(CHAIN.code, names)
    tensors = [names[name] for name in "Lzyx"]
    plain = torch.autograd.grad(tensors[0], tensors)
    numbers = told.numbers()
    for name, gradient in zip("Lzyx", plain, strict=True):
        assert same(numbers[name].incoming[0], gradient), name
    assert [numbers[name].outgoing[0].elements for name in "Lzy"] == [(10.0,), (10.0,), (20.0,)]
    assert same(numbers["x"].grad, plain[-1])


def test_back_takes_gradients_away(told):
    graph = told.run(CHAIN.code, CHAIN.root)
    told.move("end")
    told.move("back")
    numbers = told.numbers()
    assert numbers["x"].grad is None and numbers["x"].incoming[0].elements == (20.0,)
    told.move("reset")
    assert all(not each.outgoing for each in told.numbers().values())
    assert len(graph.plan) == 4


def test_a_result_without_a_name_is_known_too(told):
    told.run("x = torch.tensor(1.0, requires_grad=True)\nL = (4 * x + 1) ** 3", "L")
    values = {name: each.values[0].elements for name, each in told.numbers().items()}
    assert values == {"L": (125.0,), "add": (5.0,), "mul": (4.0,), "x": (1.0,)}


def test_a_large_tensor_has_a_norm(told):
    code = "torch.manual_seed(0)\nx = torch.randn(40, 30, requires_grad=True)\ny = x.exp().sum()"
    told.run(code, "y")
    told.move("end")
    names: dict[str, Any] = {"torch": torch}
    exec(code, names)
    names["y"].backward()
    x, numbers = names["x"], told.numbers()
    assert same(numbers["x"].values[0], x) and same(numbers["x"].grad, x.grad)
    assert same(numbers["exp"].values[0], x.exp()) and not numbers["exp"].values[0].elements


def test_two_contributions_and_their_sum(told):
    told.run("x = torch.tensor(2.0, requires_grad=True)\ny = x ** 2 + 3 * x", "y")
    told.move("end")
    numbers = told.numbers()
    out = {n: [o.elements[0] for o in numbers[n].outgoing if o] for n in ("pow", "mul")}
    assert out == {"pow": [4.0], "mul": [3.0]}
    assert numbers["x"].incoming[0].elements == numbers["x"].grad.elements == (7.0,)


def test_two_outputs(told):
    told.run("x = torch.tensor([3.0, 1.0], requires_grad=True)\na, b = x.unbind()\nL = a * b", "L")
    told.move("end")
    unbind = told.numbers()["b, a"] if "b, a" in told.numbers() else told.numbers()["a, b"]
    assert [each.elements for each in unbind.values] == [(3.0,), (1.0,)]
    assert [each.elements for each in unbind.incoming] == [(1.0,), (3.0,)]


def test_nan_and_infinity_stay(told):
    told.run("x = torch.tensor([0.0, 1.0], requires_grad=True)\ny = (x / x).sum()", "y")
    told.move("end")
    grad = told.numbers()["x"].grad
    assert str(grad.norm) == "nan" and str(grad.elements[0]) == "nan"


def test_the_real_engine_tells_of_its_last_step(told):
    told.run(CHAIN.code, CHAIN.root, real_engine=True)
    told.move("step")
    numbers = told.numbers()
    assert numbers["L"].outgoing[0].elements == (10.0,)
    assert numbers["z"].incoming[0].elements == (10.0,)
    assert numbers["y"].incoming == ()


def test_the_code_of_the_cells_comes_with_the_graph(told):
    graph = told.run(CHAIN.code, CHAIN.root)
    assert list(graph.sources.values()) == [CHAIN.code]
    (file,) = graph.sources
    lines = CHAIN.code.splitlines()
    made = [node.source for node in graph.nodes if node.source is not None]
    assert [line.text for line in made] == [lines[line.line - 1] for line in made]
    assert {line.file for line in made} == {file}


def test_unknown_nodes_are_left_out(told):
    told.run(CHAIN.code, CHAIN.root)
    told.session.handle(GraphNumbersCommand(nodes=(-1, 0, 99)))
    assert [each.node for each in told.newest[GraphNumbersSnapshot].numbers] == [0]
