"""Stepping forward and backward through the window, against plain torch."""

from __future__ import annotations

import pytest
import torch

from engine.protocol import (
    BackwardSnapshot,
    ComparisonSnapshot,
    ErrorReport,
    ErrorSnapshot,
    ForwardSnapshot,
    GraphSnapshot,
    ValueSnapshot,
)

pytestmark = pytest.mark.one_program


def view(program):
    return program.window.page("autograd").steps


def newest(program, kind):
    snapshot = program.bench.store.newest(kind)
    assert snapshot is not None
    return snapshot


def start(program) -> None:
    view(program).forward.start_requested.emit(0)
    program.bench.link.drain()


def start_backward(qtbot, program) -> None:
    view(program).backward.start_requested.emit()
    program.bench.link.drain()
    qtbot.waitUntil(lambda: view(program).graph.laid_out, timeout=30_000)


def test_forward_goes_block_by_block_and_shows_on_the_canvas(mlp):
    start(mlp)
    assert newest(mlp, ForwardSnapshot).position == 0
    view(mlp).forward.move_requested.emit("step", "")
    view(mlp).forward.move_requested.emit("step", "")
    mlp.bench.link.drain()
    forward = newest(mlp, ForwardSnapshot)
    assert forward.position == 2
    states = [row.state for row in view(mlp).forward.blocks.rows()]
    assert states[:3] == ["done", "current", "next"]
    items = mlp.window.page("model").canvas.model_scene.blocks
    assert items[forward.order[1]].progress == "current"
    view(mlp).forward.move_requested.emit("back", "")
    mlp.bench.link.drain()
    assert newest(mlp, ForwardSnapshot).position == 1


def test_backward_equals_torch(qtbot, mlp):
    start(mlp)
    start_backward(qtbot, mlp)
    graph = newest(mlp, GraphSnapshot)
    assert newest(mlp, BackwardSnapshot).position == 0
    for position in range(1, 4):
        view(mlp).backward.move_requested.emit("step", -1)
        mlp.bench.link.drain()
        backward = newest(mlp, BackwardSnapshot)
        assert backward.position == position
        assert backward.step.node == graph.plan[position - 1]
    view(mlp).backward.move_requested.emit("end", -1)
    view(mlp).backward.compare_requested.emit()
    mlp.bench.link.drain()
    assert newest(mlp, ComparisonSnapshot).max_difference == 0.0
    gradients = newest(mlp, BackwardSnapshot).gradients
    parameters = dict(mlp.bench.link._session.lab.models.forward.state.named_parameters())
    assert {gradient.name for gradient in gradients} == set(parameters)
    for gradient in gradients:
        parameter = parameters[gradient.name]
        assert gradient.gradient.norm == pytest.approx(torch.linalg.norm(parameter.grad).item())


def test_a_step_forward_ends_the_backward_pass(qtbot, mlp):
    start(mlp)
    start_backward(qtbot, mlp)
    view(mlp).forward.move_requested.emit("back", "")
    mlp.bench.link.drain()
    assert mlp.bench.store.newest(GraphSnapshot) is None
    assert view(mlp).graph.selected is None


def test_an_edit_ends_the_pass_and_says_so(mlp):
    start(mlp)
    mlp.workspaces.model.edits.add_block("nn.ReLU", 0, 400)
    mlp.bench.link.drain()
    assert mlp.bench.store.newest(ForwardSnapshot) is None
    assert "start a new one" in view(mlp)._problem.text()
    mlp.bench.history.stack.undo()
    start(mlp)
    assert view(mlp)._problem.text() == ""


@pytest.mark.parametrize("way", ["start_backward", "step_backward", "run_backward"])
def test_after_an_edit_that_breaks_the_model_no_pass_of_the_old_one_is_stepped(mlp, qtbot, way):
    start_backward(qtbot, mlp)
    relu = next(b.id for b in mlp.bench.store.project.model.blocks if b.kind == "nn.ReLU")
    mlp.workspaces.model.edits.delete((relu,), ())
    mlp.bench.link.drain()
    mlp.bench.actions[f"autograd.{way}"].trigger()
    mlp.bench.link.drain()
    assert mlp.bench.store.newest(BackwardSnapshot) is None
    assert "The model cannot run" in view(mlp)._problem.text()


def test_what_cannot_be_done_is_told_in_place(mlp):
    view(mlp).forward.move_requested.emit("step", "")
    mlp.bench.link.drain()
    assert "No forward pass" in view(mlp)._problem.text()
    assert mlp.window.banners.isHidden()


@pytest.mark.parametrize("way", ["start_backward", "step_backward", "run_backward"])
def test_what_the_first_command_lacks_is_told_not_what_the_next_misses(program, way):
    """An empty canvas: no forward pass can start, so neither the backward pass nor its move."""
    program.window.show_workspace("autograd")
    for _ in range(2):
        program.bench.actions[f"autograd.{way}"].trigger()
        program.bench.link.drain()
        assert "The model has no Input" in view(program)._problem.text()


def test_an_interrupted_step_says_so(qtbot, mlp):
    start_backward(qtbot, mlp)
    report = ErrorReport(type="KeyboardInterrupt", message="")
    command = mlp.workspaces.autograd.start_forward()
    error = ErrorSnapshot(command="StartForwardCommand", error=report, reply_to=command)
    mlp.bench.link._receive(error)
    assert view(mlp)._problem.text().startswith("Interrupted.")


def test_a_value_is_shown_in_full_on_request(mlp):
    start(mlp)
    view(mlp).forward.move_requested.emit("end", "")
    mlp.bench.link.drain()
    block = newest(mlp, ForwardSnapshot).order[1]
    view(mlp).inspect_requested.emit("activation", block)
    mlp.bench.link.drain()
    assert newest(mlp, ValueSnapshot).key == block


def test_one_selection_runs_through_blocks_graph_and_code(qtbot, mlp):
    start(mlp)
    start_backward(qtbot, mlp)
    graph = newest(mlp, GraphSnapshot)
    blocks = {block.id for block in mlp.bench.store.project.model.blocks}
    node = next(node for node in graph.nodes if node.block in blocks)
    view(mlp).graph.select(node.id)
    assert mlp.bench.selected_blocks == (node.block,)
    assert mlp.window.page("model").canvas.selected_blocks() == (node.block,)
    assert view(mlp).forward.blocks.selected_block() == node.block
    other = next(n.block for n in graph.nodes if n.block in blocks - {node.block})
    mlp.window.page("model").canvas.select([other])
    assert graph.nodes[view(mlp).graph.selected].block == other


def test_the_actions_lead_through_both_passes(qtbot, mlp):
    mlp.window.show_workspace("model")
    mlp.bench.actions["autograd.step"].trigger()
    mlp.bench.link.drain()
    assert mlp.window.workspace == "autograd"
    mlp.bench.actions["autograd.step"].trigger()
    mlp.bench.link.drain()
    assert newest(mlp, ForwardSnapshot).position == 1
    mlp.bench.actions["autograd.step_backward"].trigger()
    mlp.bench.link.drain()
    mlp.bench.actions["autograd.step_backward"].trigger()
    mlp.bench.link.drain()
    assert newest(mlp, BackwardSnapshot).position == 1
    mlp.bench.actions["autograd.back"].trigger()
    mlp.bench.link.drain()
    assert newest(mlp, BackwardSnapshot).position == 0
