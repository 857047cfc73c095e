"""The window's commands on the backward pass, over the templates, against loss.backward()."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engine.autograd.backward.backward_pass import BackwardPass
from engine.autograd.backward.roots import ModelSubject
from engine.autograd.graph.provenance import Provenance
from engine.autograd.graph.snapshot import graph_snapshots
from engine.handlers import backward as handlers
from engine.handlers.models import move_forward, start_forward
from engine.lab import Lab
from engine.models.forward import ForwardPass
from engine.models.live import LiveModel
from engine.project.document import Block, Model, Project, Wire
from engine.project.files import load
from engine.protocol import (
    BackwardSnapshot,
    Breakpoint,
    BreakpointState,
    CompareGradientsCommand,
    ComparisonSnapshot,
    EditGradientCommand,
    ForwardSnapshot,
    GradientEdit,
    GraphSnapshot,
    InspectCommand,
    MoveBackwardCommand,
    MoveForwardCommand,
    SetBreakpointsCommand,
    Snapshot,
    StartBackwardCommand,
    StartForwardCommand,
    UneditGradientCommand,
    ValueSnapshot,
    ZeroGradientsCommand,
    encode_snapshot,
    join_graph,
)
from engine.server.session import Session, handler_of
from engine.system.errors import LabError
from engine.tensors.summary import shown_values

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


def move(lab: Lab, where: Any, target: int = -1) -> Any:
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

    loss = lab.models.forward.plain()
    stepped = {n: p.grad.clone() for n, p in lab.models.forward.state.named_parameters()}
    for _, parameter in lab.models.forward.state.named_parameters():
        parameter.grad = None
    loss.backward()
    for gradient in snapshot.gradients:
        expected = dict(lab.models.forward.state.named_parameters())[gradient.name].grad
        assert expected is not None and torch.equal(stepped[gradient.name], expected)
        assert gradient.gradient is not None and gradient.shape == tuple(expected.shape)
        assert gradient.gradient.norm == pytest.approx(expected.double().norm().item(), rel=1e-9)
    assert lab.models.live is not None
    assert all(p.grad is None for p in lab.models.live.module.parameters())


def test_the_comparison_would_tell_a_difference() -> None:
    lab, _ = begun()
    start(lab)
    with pytest.raises(LabError, match="have not run yet"):
        ask(handlers.compare_gradients(lab, CompareGradientsCommand()))
    stepper = lab.backward.under_way.stepper
    stepper.edit(0, torch.tensor(1.5))
    final = move(lab, "end")
    (comparison,) = ask(handlers.compare_gradients(lab, CompareGradientsCommand()))
    assert comparison.max_difference > 0
    after = {g.name: g.gradient for g in final.gradients}
    for name, difference in comparison.differences.items():
        grad = dict(lab.models.forward.state.named_parameters())[name].grad
        assert difference == pytest.approx(grad.abs().max().item() / 3, rel=1e-5)
        assert after[name].norm == pytest.approx(grad.double().norm().item())


def test_comparing_leaves_gradients_buffers_and_random_state() -> None:
    lab, _ = begun()
    start(lab)
    move(lab, "end")
    module = lab.models.forward.state
    grads = {n: p.grad for n, p in module.named_parameters()}
    copies = {n: g.clone() for n, g in grads.items()}
    buffers = {n: b.clone() for n, b in module.named_buffers()}
    rng = torch.get_rng_state()
    ask(handlers.compare_gradients(lab, CompareGradientsCommand()))
    for name, parameter in module.named_parameters():
        gradient = parameter.grad
        assert gradient is not None and gradient is grads[name]
        assert torch.equal(gradient, copies[name])
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
    with pytest.raises(LabError, match=r"^There is no node 9999"):
        move(lab, "to", 9999)


def test_a_stop_signal_ends_a_long_run_where_it_is() -> None:
    lab, _ = begun()
    start(lab)
    third = lab.backward.under_way.stepper.plan[2].fn  # while it runs, the signal comes
    third.register_hook(lambda grad_inputs, grad_outputs: lab.control.stop.set())
    assert move(lab, "end").position == 3


def test_a_step_shows_the_gradients_of_the_rule() -> None:
    lab, _ = begun()
    start(lab)
    step = move(lab, "step").step
    assert step is not None
    record = lab.backward.under_way.stepper.last
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
    looked = look(lab, "activation", conv.id)
    (activation,) = looked.values
    out = lab.models.forward.values[conv.id][0].detach()
    assert activation.summary.shape == tuple(out.shape)
    assert activation.picture is not None and activation.picture.shape[1:] == tuple(out.shape[2:])
    cells = np.frombuffer(activation.picture.data, "<f4").reshape(activation.picture.shape)
    np.testing.assert_array_equal(cells[0], out[0, 0].numpy())
    forward = lab.models.forward
    assert [v.label for v in (*looked.inputs, *looked.weights)] == ["input", "weight", "bias"]
    weight, bias = (
        dict(forward.state.named_parameters())[f"{conv.name}.{p}"] for p in ("weight", "bias")
    )
    for shown, tensor in zip(
        (*looked.inputs, *looked.weights), (forward.x, weight, bias), strict=True
    ):
        assert shown.summary.shape == tuple(tensor.shape)
        assert shown.summary.norm == pytest.approx(tensor.detach().double().norm().item())
    loss = look(lab, "activation", forward.loss_id)
    assert [v.label for v in loss.inputs] == ["prediction", "target"] and loss.weights == ()
    assert loss.inputs[1].summary.shape == tuple(forward.y.shape)
    assert look(lab, "activation", forward.order[0]).inputs == ()

    name = f"{conv.name}.weight"
    (weight,) = look(lab, "parameter", name).values
    assert weight.label == name
    assert weight.summary.mean == pytest.approx(
        dict(lab.models.forward.state.named_parameters())[name].detach().double().mean().item()
    )
    with pytest.raises(LabError, match="no gradient yet"):
        look(lab, "gradient", name)
    with pytest.raises(LabError, match="has not run yet"):
        look(lab, "gradient", "0")
    last = move(lab, "end").step
    assert last is not None
    (gradient,) = look(lab, "gradient", name).values
    assert gradient.summary.norm == pytest.approx(
        dict(lab.models.forward.state.named_parameters())[name].grad.double().norm().item()
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
    lab.models.forward = None
    assert lab.models.live is not None
    name = next(iter(dict(lab.models.live.module.named_parameters())))
    assert look(lab, "parameter", name).values[0].label == name
    with pytest.raises(LabError, match="No forward pass"):
        look(lab, "activation", "x")
    with pytest.raises(LabError, match="no model"):
        look(Lab(emit=lambda snapshot: None), "parameter", name)


def test_commands_out_of_order_are_explained() -> None:
    empty = Lab(emit=lambda snapshot: None)
    with pytest.raises(LabError, match="No forward pass"):
        start(empty)
    lab, _ = begun()
    with pytest.raises(LabError, match="No backward pass"):
        move(lab, "step")
    with pytest.raises(LabError, match="not reached the loss"):
        ModelSubject(lab.models.require_forward())
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
    assert lab.models.live is not None
    for parameter in lab.models.live.module.parameters():
        parameter.grad = torch.ones_like(parameter)
    torch.optim.SGD(lab.models.live.module.parameters(), lr=0.1).step()
    move(lab, "end")
    (comparison,) = ask(handlers.compare_gradients(lab, CompareGradientsCommand()))
    assert comparison.max_difference == 0.0
    for parameter in lab.models.live.module.parameters():
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
    for _ in range(1_500):
        y = y * 1.0
    lab.models.forward.values[lab.models.forward.loss_id] = (y,)
    backward = BackwardPass(ModelSubject(lab.models.require_forward()))
    graph, plan = backward.stepper.graph, backward.stepper.plan
    parts = ask(graph_snapshots(graph, plan, Provenance(), max_nodes=1_000))
    told = join_graph(parts)
    assert (len(told.nodes), told.truncated) == (1_000, 501)
    assert len(told.plan) == 1_501
    assert len(told.edges) == 999


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
    lab.models.forward = ForwardPass(live, x, y, torch.nn.functional.cross_entropy, seed=0)
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
    lab.models.forward.seed += 1  # another dropout mask
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
    (gradient,) = lab.backward.under_way.snapshot().gradients
    grad = dict(lab.models.forward.state.named_parameters())["embedding1.weight"].grad
    assert grad.layout == torch.sparse_coo and gradient.gradient is not None
    assert gradient.gradient.norm == pytest.approx(grad.to_dense().double().norm().item())
    (comparison,) = ask(handlers.compare_gradients(lab, CompareGradientsCommand()))
    assert comparison.max_difference == 0.0


# -- the commands of a stepped pass ----------------------------------------------------------------


def debug(lab: Lab, command: Any) -> Any:
    answers = ask(handler_of(type(command))(lab, command))
    return answers[0] if answers else None


def test_breakpoints_outlive_a_pass_and_stop_the_next() -> None:
    lab, _ = begun()
    wanted = (Breakpoint(on="op", target="addmm"), Breakpoint(on="op", target="adm"))
    assert debug(lab, SetBreakpointsCommand(breakpoints=wanted)) is None
    _, graph, first = start(lab)
    count = sum(node.op == "addmm" for node in graph.nodes)
    assert count > 0
    assert first.breakpoints == (
        BreakpointState(wanted[0], 0, count),
        BreakpointState(wanted[1], 0, 0),
    )
    stopped = move(lab, "run")
    assert stopped.stopped_by.startswith("Paused before AddmmBackward0 in linear")
    assert graph.nodes[graph.plan[stopped.position]].op == "addmm"
    assert stopped.breakpoints[0].hits == 1
    again = debug(lab, SetBreakpointsCommand(breakpoints=()))
    assert again.breakpoints == () and move(lab, "run").position == len(graph.plan)


def test_modules_of_the_model_can_be_run_out_of() -> None:
    lab, project = begun()
    _, graph, _ = start(lab)
    linear = [b for b in project.model.blocks if b.kind == "nn.Linear"][-1]
    debug(lab, SetBreakpointsCommand(breakpoints=(Breakpoint(on="module", target=linear.name),)))
    stopped = move(lab, "run")
    assert stopped.stopped_by == f"Paused before the first node of {linear.name}."
    inside = [p for p, n in enumerate(graph.plan) if graph.nodes[n].block == linear.id]
    assert stopped.position == inside[0]
    assert move(lab, "out").position == inside[-1] + 1


def test_an_edit_is_listed_previewed_undone_and_compared() -> None:
    lab, _ = begun()
    start(lab)
    first = move(lab, "step")
    node = first.next.node
    incoming = lab.backward.under_way.stepper.pending(node)[0]
    assert first.next.incoming[0].summary.norm == pytest.approx(incoming.double().norm().item())
    edited = debug(lab, EditGradientCommand(node=node, expression="g * 3"))
    assert edited.edits == (GradientEdit(node, "g * 3"),)
    assert edited.next.edited[0].summary.norm == pytest.approx(
        3 * incoming.double().norm().item(), rel=1e-6
    )
    ran = move(lab, "step")
    assert ran.step.edited and not first.step.edited
    final = move(lab, "end")
    (comparison,) = ask(handlers.compare_gradients(lab, CompareGradientsCommand()))
    assert comparison.max_difference > 0
    with pytest.raises(LabError, match="already run"):
        debug(lab, UneditGradientCommand(node=node))
    move(lab, "reset")
    assert debug(lab, UneditGradientCommand(node=node)).edits == ()
    assert move(lab, "end").gradients != final.gradients
    (comparison,) = ask(handlers.compare_gradients(lab, CompareGradientsCommand()))
    assert comparison.max_difference == 0.0


def test_an_edit_uses_the_variables_of_the_console() -> None:
    lab, _ = begun()
    start(lab)
    lab.console.namespace.variables["strength"] = 0.0
    debug(lab, EditGradientCommand(node=0, expression="g * strength"))
    final = move(lab, "end")
    assert final.edits[0].names == ("strength",)
    assert all(g.gradient.norm == 0.0 for g in final.gradients)


def test_a_failing_edit_shows_how_far_the_run_came() -> None:
    lab, _ = begun()
    _, graph, _ = start(lab)
    node = graph.plan[5]
    debug(lab, EditGradientCommand(node=node, expression="g @ torch.ones(3, 3, 3, 3, 3)"))
    answers = []
    with pytest.raises(LabError, match="fails"):
        for snapshot in handlers.move_backward(lab, MoveBackwardCommand(move="end")):
            answers.append(snapshot)
    assert answers[-1].position == 5 and "fails" in answers[-1].next.problem
    assert answers[-1].edits[0].node == node


def test_pending_gradients_and_freed_bytes_are_told() -> None:
    lab, _ = begun()
    _, graph, snapshot = start(lab)
    assert [p.node for p in snapshot.pending] == [0] and snapshot.freed_bytes == 0
    seen = []
    while snapshot.position < len(graph.plan):
        for pending in snapshot.pending:
            assert 1 <= pending.arrived <= pending.expected
            for told, gradient in zip(
                pending.gradients,
                lab.backward.under_way.stepper.pending(pending.node),
                strict=True,
            ):
                assert (told is None) == (gradient is None)
                if told is not None:
                    assert told.norm == pytest.approx(gradient.double().norm().item())
        seen.append(snapshot.freed_bytes)
        snapshot = move(lab, "step")
    assert snapshot.pending == () and snapshot.next is None
    assert seen == sorted(seen) and snapshot.freed_bytes == snapshot.saved_bytes > 0


def test_a_leaf_shows_what_was_added_and_zero_grad_empties() -> None:
    lab, _ = begun()
    _, graph, _ = start(lab)
    at_leaf = move(lab, "leaf")
    assert graph.nodes[at_leaf.step.node].kind == "leaf"
    assert at_leaf.step.grad_before is None
    assert at_leaf.step.grad_after.summary.norm == at_leaf.step.incoming[0].summary.norm
    first = move(lab, "end")
    second = move(lab, "again")
    assert (second.position, second.pass_number) == (0, 2)
    at_leaf = move(lab, "leaf")
    before, after = at_leaf.step.grad_before.summary, at_leaf.step.grad_after.summary
    assert after.norm == pytest.approx(2 * before.norm)
    done = move(lab, "end")
    for once, twice in zip(first.gradients, done.gradients, strict=True):
        assert twice.gradient.norm == pytest.approx(2 * once.gradient.norm)
    (comparison,) = ask(handlers.compare_gradients(lab, CompareGradientsCommand()))
    assert comparison.max_difference == 0.0
    zeros = debug(lab, ZeroGradientsCommand(set_to_none=False))
    assert all(g.gradient.norm == 0.0 for g in zeros.gradients)
    none = debug(lab, ZeroGradientsCommand())
    assert all(g.gradient is None for g in none.gradients)
    move(lab, "reset")
    back = move(lab, "end")
    assert back.gradients == done.gradients


# -- the real engine -------------------------------------------------------------------------------


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_the_real_engine_is_stepped_by_the_same_commands(path: Path) -> None:
    lab, _ = begun(path)
    real = StartBackwardCommand(real_engine=True)
    _, graph, first = ask(handlers.start_backward(lab, real))
    assert first.real_engine and not first.retain_graph and first.next.incoming[0].text == "1."
    assert first.next.hooks == ""
    debug(lab, SetBreakpointsCommand(breakpoints=(Breakpoint(on="op", target="addmm"),)))
    stopped = move(lab, "run")
    assert graph.nodes[graph.plan[stopped.position]].op == "addmm"
    assert stopped.stopped_by.startswith("Paused before AddmmBackward0 in linear")
    at_leaf = move(lab, "leaf")
    assert graph.nodes[at_leaf.step.node].kind == "leaf" and at_leaf.step.grad_after is not None
    for back in ("back", "reset", "back_run"):
        with pytest.raises(LabError, match="cannot go back"):
            move(lab, back)
    with pytest.raises(LabError, match="real engine keeps none"):
        look(lab, "gradient", "0")
    final = move(lab, "end")
    assert final.freed_bytes == final.saved_bytes > 0
    (comparison,) = ask(handlers.compare_gradients(lab, CompareGradientsCommand()))
    assert comparison.max_difference == 0.0
    # Its graph is gone: another start runs forward again.
    answers = ask(handlers.start_backward(lab, real))
    assert [type(s) for s in answers] == [ForwardSnapshot, GraphSnapshot, BackwardSnapshot]
    debug(lab, EditGradientCommand(node=0, expression="g * 2"))
    assert move(lab, "end").gradients[0].gradient.norm == pytest.approx(
        2 * final.gradients[0].gradient.norm
    )
    assert ask(move_forward(lab, MoveForwardCommand(move="back")))
    assert lab.backward.under_way is None


def test_a_held_engine_is_let_go_when_the_session_closes() -> None:
    session = Session(emit=lambda snapshot: None)
    project = load(LENET)
    session.handle(StartForwardCommand(model=project.model, training=project.training))
    session.handle(StartBackwardCommand(real_engine=True, retain_graph=True))
    session.handle(MoveBackwardCommand(move="step"))
    assert session.lab.backward.under_way.stepper.position == 1
    assert [t.name for t in threading.enumerate()].count("backward") == 1
    session.close()
    assert [t.name for t in threading.enumerate()].count("backward") == 0


def test_a_stop_signal_ends_a_run_of_the_real_engine() -> None:
    lab, _ = begun()
    ask(handlers.start_backward(lab, StartBackwardCommand(real_engine=True)))
    lab.control.stop.set()
    assert move(lab, "end").position == 1
    lab.control.stop.clear()
    with pytest.raises(LabError, match="fails"):
        debug(
            lab,
            EditGradientCommand(
                node=lab.backward.under_way.stepper.next_node.id, expression="1 / 0"
            ),
        )
    lab.backward.close()
