"""The window's commands on the backward pass, over the templates, against loss.backward()."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engine.autograd import handlers
from engine.autograd.backward_pass import MAX_SHOWN_NODES, BackwardPass, shown_values
from engine.errors import LabError
from engine.lab import Lab
from engine.models.forward import ForwardPass
from engine.models.handlers import move_forward, start_forward
from engine.models.live import LiveModel
from engine.project.document import Block, Model, Project, Wire
from engine.project.files import load
from engine.protocol import (
    BackwardSnapshot,
    CompareGradientsCommand,
    ComparisonSnapshot,
    ForwardSnapshot,
    GraphSnapshot,
    InspectCommand,
    MoveBackwardCommand,
    MoveForwardCommand,
    Snapshot,
    StartBackwardCommand,
    StartForwardCommand,
    ValueSnapshot,
    encode_snapshot,
)

TEMPLATES = sorted((Path(__file__).parents[3] / "assets" / "templates").glob("*.tlab"))
LENET = next(path for path in TEMPLATES if "lenet" in path.stem.lower())


def begun(path: Path = LENET) -> tuple[Lab, Project]:
    """A lab whose forward pass stands before its first block."""
    lab = Lab(emit=lambda snapshot: None)
    project = load(path)
    list(start_forward(lab, StartForwardCommand(model=project.model, training=project.training)))
    return lab, project


def ask(answers: Iterable[Snapshot | None]) -> list[Any]:
    """The snapshots of an answer, each small enough to be sent."""
    found = [snapshot for snapshot in answers if snapshot is not None]
    for snapshot in found:
        assert encode_snapshot(snapshot)
    return found


def start(lab: Lab) -> list[Any]:
    return ask(handlers.start_backward(lab, StartBackwardCommand()))


def move(lab: Lab, where: Any, target: int = -1) -> BackwardSnapshot:
    (snapshot,) = ask(handlers.move_backward(lab, MoveBackwardCommand(move=where, target=target)))
    assert isinstance(snapshot, BackwardSnapshot)
    return snapshot


def look(lab: Lab, of: Any, key: str) -> ValueSnapshot:
    (snapshot,) = ask(handlers.inspect_value(lab, InspectCommand(of=of, key=key)))
    assert isinstance(snapshot, ValueSnapshot)
    return snapshot


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_every_template_steps_to_the_gradients_of_backward(path: Path) -> None:
    lab, project = begun(path)
    forward, graph, backward = start(lab)
    assert isinstance(forward, ForwardSnapshot) and forward.position == len(forward.order)
    assert isinstance(graph, GraphSnapshot) and isinstance(backward, BackwardSnapshot)
    assert (backward.position, backward.step, graph.truncated) == (0, None, 0)
    assert all(p.gradient is None for p in backward.gradients)
    names = {p.name for p in backward.gradients}
    assert {n.label for n in graph.nodes if n.kind == "leaf"} == names
    assert [n.id for n in graph.nodes] == list(range(len(graph.nodes)))
    assert sorted(graph.plan) == list(range(len(graph.nodes)))
    blocks = {b.id for b in project.model.blocks} | {"loss"}
    for node in graph.nodes:
        assert node.block in blocks, node
        if node.kind == "leaf":
            assert project.model.block(node.block or "").name == node.label.split(".")[0]
    for position, node_id in enumerate(graph.plan, start=1):
        snapshot = move(lab, "step")
        assert snapshot.position == position
        assert snapshot.step is not None and snapshot.step.node == node_id
    (comparison,) = ask(handlers.compare_gradients(lab, CompareGradientsCommand()))
    assert isinstance(comparison, ComparisonSnapshot)
    assert comparison.max_difference == 0.0
    assert comparison.differences == dict.fromkeys(names, 0.0)

    loss = lab.forward.plain()
    stepped = {n: p.grad.clone() for n, p in lab.forward.module.named_parameters()}
    lab.forward.module.zero_grad()
    loss.backward()
    for gradient in snapshot.gradients:
        expected = lab.forward.module.get_parameter(gradient.name).grad
        assert torch.equal(stepped[gradient.name], expected)
        assert gradient.gradient is not None and gradient.shape == tuple(expected.shape)
        assert gradient.gradient.norm == pytest.approx(expected.double().norm().item(), rel=1e-9)
    assert lab.live is not None
    assert all(p.grad is None for p in lab.live.module.parameters())


def test_the_comparison_would_tell_a_difference() -> None:
    lab, _ = begun()
    start(lab)
    with pytest.raises(LabError, match="have not run yet"):
        ask(handlers.compare_gradients(lab, CompareGradientsCommand()))
    stepper = lab.backward.stepper
    stepper.edit(0, torch.tensor(1.5))
    final = move(lab, "end")
    (comparison,) = ask(handlers.compare_gradients(lab, CompareGradientsCommand()))
    assert comparison.max_difference > 0
    after = {g.name: g.gradient for g in final.gradients}
    for name, difference in comparison.differences.items():
        grad = lab.forward.module.get_parameter(name).grad
        assert difference == pytest.approx(grad.abs().max().item() / 3, rel=1e-5)
        assert after[name].norm == pytest.approx(grad.double().norm().item())


def test_comparing_leaves_gradients_buffers_and_random_state() -> None:
    lab, _ = begun()
    start(lab)
    move(lab, "end")
    module = lab.forward.module
    grads = {n: p.grad for n, p in module.named_parameters()}
    copies = {n: g.clone() for n, g in grads.items()}
    buffers = {n: b.clone() for n, b in module.named_buffers()}
    rng = torch.get_rng_state()
    ask(handlers.compare_gradients(lab, CompareGradientsCommand()))
    for name, parameter in module.named_parameters():
        assert parameter.grad is grads[name] and torch.equal(parameter.grad, copies[name])
    assert all(torch.equal(b, buffers[n]) for n, b in module.named_buffers())
    assert torch.equal(torch.get_rng_state(), rng)


def test_moves() -> None:
    lab, _ = begun()
    _, graph, _ = start(lab)
    middle = graph.plan[len(graph.plan) // 2]
    there = move(lab, "to", middle)
    assert there.step is not None and there.step.node == middle
    assert there.position == len(graph.plan) // 2 + 1
    assert move(lab, "back").position == there.position - 1
    assert move(lab, "step") == there
    assert move(lab, "end").position == len(graph.plan)
    assert move(lab, "step").position == len(graph.plan)
    assert move(lab, "to", middle) == there
    start_again = move(lab, "reset")
    assert (start_again.position, start_again.step) == (0, None)
    assert all(g.gradient is None for g in start_again.gradients)
    with pytest.raises(LabError, match="no node 9999"):
        move(lab, "to", 9999)


def test_a_stop_signal_ends_a_long_run_where_it_is() -> None:
    lab, _ = begun()
    start(lab)
    answers = handlers.move_backward(lab, MoveBackwardCommand(move="end"))
    for _ in range(3):
        assert next(iter(answers)) is None
    lab.control.stop.set()
    (snapshot,) = ask(answers)
    assert snapshot.position == 3


def test_a_step_shows_the_gradients_of_the_rule() -> None:
    lab, _ = begun()
    start(lab)
    step = move(lab, "step").step
    assert step is not None
    record = lab.backward.stepper.last
    for shown, tensors in ((step.incoming, record.incoming), (step.outgoing, record.outgoing)):
        assert len(shown) == len(tensors)
        for value, tensor in zip(shown, tensors, strict=True):
            assert (value is None) == (tensor is None)
            if value is not None:
                assert value.summary.norm == pytest.approx(tensor.double().norm().item())
    assert step.incoming[0] is not None and step.incoming[0].text == "1."


def test_inspecting_activations_parameters_and_gradients() -> None:
    lab, project = begun()
    start(lab)
    conv = next(b for b in project.model.blocks if b.kind == "nn.Conv2d")
    (activation,) = look(lab, "activation", conv.id).values
    out = lab.forward.values[conv.id][0].detach()
    assert activation.summary.shape == tuple(out.shape)
    assert activation.picture is not None and activation.picture.shape[1:] == tuple(out.shape[2:])
    cells = np.frombuffer(activation.picture.data, "<f4").reshape(activation.picture.shape)
    np.testing.assert_array_equal(cells[0], out[0, 0].numpy())

    name = f"{conv.name}.weight"
    (weight,) = look(lab, "parameter", name).values
    assert weight.label == name
    assert weight.summary.mean == pytest.approx(
        lab.forward.module.get_parameter(name).detach().double().mean().item()
    )
    with pytest.raises(LabError, match="no gradient yet"):
        look(lab, "gradient", name)
    with pytest.raises(LabError, match="has not run yet"):
        look(lab, "gradient", "0")
    last = move(lab, "end").step
    assert last is not None
    (gradient,) = look(lab, "gradient", name).values
    assert gradient.summary.norm == pytest.approx(
        lab.forward.module.get_parameter(name).grad.double().norm().item()
    )
    incoming, *outgoing = look(lab, "gradient", "0").values
    assert incoming.text == "1." and len(outgoing) >= 1
    for of, key, words in [
        ("activation", "nowhere", "has not run"),
        ("parameter", "nothing.weight", "no parameter"),
        ("gradient", "nothing.weight", "no parameter"),
        ("gradient", "9999", "no node"),
    ]:
        with pytest.raises(LabError, match=words):
            look(lab, of, key)


def test_parameters_can_be_inspected_without_a_pass() -> None:
    lab, _ = begun()
    lab.forward = None
    assert lab.live is not None
    name = next(iter(dict(lab.live.module.named_parameters())))
    assert look(lab, "parameter", name).values[0].label == name
    with pytest.raises(LabError, match="no forward pass"):
        look(lab, "activation", "x")
    with pytest.raises(LabError, match="no model"):
        look(Lab(emit=lambda snapshot: None), "parameter", name)


def test_commands_out_of_order_are_explained() -> None:
    empty = Lab(emit=lambda snapshot: None)
    with pytest.raises(LabError, match="no forward pass"):
        start(empty)
    lab, _ = begun()
    with pytest.raises(LabError, match="No backward pass"):
        move(lab, "step")
    with pytest.raises(LabError, match="not reached the loss"):
        BackwardPass(lab.forward)
    start(lab)
    move(lab, "step")
    ask(move_forward(lab, MoveForwardCommand(move="back")))
    with pytest.raises(LabError, match="No backward pass"):
        move(lab, "step")
    assert [type(s) for s in start(lab)] == [ForwardSnapshot, GraphSnapshot, BackwardSnapshot]
    assert [type(s) for s in start(lab)] == [GraphSnapshot, BackwardSnapshot]


def test_training_meanwhile_neither_disturbs_nor_is_disturbed() -> None:
    lab, _ = begun()
    start(lab)
    move(lab, "step")
    assert lab.live is not None
    for parameter in lab.live.module.parameters():
        parameter.grad = torch.ones_like(parameter)
    torch.optim.SGD(lab.live.module.parameters(), lr=0.1).step()
    move(lab, "end")
    (comparison,) = ask(handlers.compare_gradients(lab, CompareGradientsCommand()))
    assert comparison.max_difference == 0.0
    for parameter in lab.live.module.parameters():
        assert parameter.grad is not None and (parameter.grad == 1).all()


def test_very_many_values_are_only_summarised() -> None:
    shown = shown_values([(str(i), torch.ones(100, 100)) for i in range(65)])
    assert all(v is not None and v.picture is None and v.summary.mean == 1.0 for v in shown)
    few = shown_values([("a", torch.ones(1000, 1000)), ("b", None)])
    assert few[1] is None and few[0] is not None and few[0].picture is not None


def test_a_graph_beyond_the_limit_says_what_is_left_out() -> None:
    lab, _ = begun()
    start(lab)
    x = torch.ones((), requires_grad=True)
    y = x
    for _ in range(MAX_SHOWN_NODES + 500):
        y = y * 1.0
    lab.forward.values[lab.forward.loss_id] = (y,)
    backward = BackwardPass(lab.forward)
    (graph,) = ask([backward.graph_snapshot()])
    assert (len(graph.nodes), graph.truncated) == (MAX_SHOWN_NODES, 501)
    assert len(graph.plan) == MAX_SHOWN_NODES + 501
    assert len(graph.edges) == MAX_SHOWN_NODES - 1


def passed(blocks: tuple[Block, ...], x: torch.Tensor, y: torch.Tensor) -> Lab:
    """A lab whose backward pass has run to its end over these blocks in a row."""
    wires = tuple(
        Wire(
            a.id,
            "x" if a.kind == "Input" else "output",
            b.id,
            "x" if b.kind == "Output" else "input",
        )
        for a, b in pairwise(blocks)
    )
    lab = Lab(emit=lambda snapshot: None)
    live = LiveModel(Model(blocks=blocks, wires=wires), seed=0)
    lab.forward = ForwardPass(live, x, y, torch.nn.functional.cross_entropy, seed=0)
    start(lab)
    move(lab, "end")
    return lab


def test_the_comparison_repeats_dropout_and_batch_norm() -> None:
    lab = passed(
        (
            Block("i", "Input", "x", {"shape": (1, 6, 6)}),
            Block(
                "c", "nn.Conv2d", "conv1", {"in_channels": 1, "out_channels": 3, "kernel_size": 3}
            ),
            Block("n", "nn.BatchNorm2d", "norm1", {"num_features": 3}),
            Block("r", "nn.ReLU", "relu1", {"inplace": True}),
            Block("f", "nn.Flatten", "flatten1"),
            Block("d", "nn.Dropout", "dropout1", {"p": 0.5}),
            Block("l", "nn.Linear", "linear1", {"in_features": 48, "out_features": 3}),
            Block("o", "Output", "output"),
        ),
        torch.randn(8, 1, 6, 6),
        torch.arange(8) % 3,
    )
    (comparison,) = ask(handlers.compare_gradients(lab, CompareGradientsCommand()))
    assert comparison.max_difference == 0.0 and len(comparison.differences) == 6
    lab.forward.seed += 1  # another dropout mask
    (comparison,) = ask(handlers.compare_gradients(lab, CompareGradientsCommand()))
    assert comparison.max_difference > 0.0


def test_sparse_gradients_are_stepped_shown_and_compared() -> None:
    sizes = {"num_embeddings": 6, "embedding_dim": 3, "sparse": True}
    lab = passed(
        (
            Block("i", "Input", "x", {"shape": (4,), "dtype": "int64"}),
            Block("e", "nn.Embedding", "embedding1", sizes),
            Block("m", "torch.mean", "mean1", {"dim": 1}),
            Block("o", "Output", "output"),
        ),
        torch.tensor([[1, 2, 2, 5], [5, 5, 0, 1]]),
        torch.tensor([0, 2]),
    )
    (gradient,) = lab.backward.snapshot().gradients
    grad = lab.forward.module.get_parameter("embedding1.weight").grad
    assert grad.layout == torch.sparse_coo and gradient.gradient is not None
    assert gradient.gradient.norm == pytest.approx(grad.to_dense().double().norm().item())
    (comparison,) = ask(handlers.compare_gradients(lab, CompareGradientsCommand()))
    assert comparison.max_difference == 0.0
