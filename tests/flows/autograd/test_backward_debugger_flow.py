"""Breakpoints, edits and the script of a backward pass through the window, against plain torch."""

from __future__ import annotations

import pytest
import torch
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QAbstractButton, QLineEdit, QTreeWidget

from engine.protocol import BackwardSnapshot, Breakpoint, GraphSnapshot
from tests.gestures import press_key
from tests.labels import said
from widgets.backward.next_node import as_expression

pytestmark = pytest.mark.one_program


@pytest.fixture
def mlp(mlp):
    mlp.window.page("autograd").steps.show_more(True)
    return mlp


def backward(program):
    return program.window.page("autograd").steps.backward


def newest(program) -> BackwardSnapshot:
    snapshot = program.bench.store.newest(BackwardSnapshot)
    assert snapshot is not None
    return snapshot


def press(program, name: str) -> None:
    button = backward(program).findChild(QAbstractButton, name)
    assert button is not None and button.isEnabled(), name
    button.click()
    program.bench.link.drain()


def trigger(program, name: str) -> None:
    action = backward(program).findChild(QAction, name)
    assert action is not None
    action.trigger()
    program.bench.link.drain()


def text(program, name: str) -> str:
    return said(backward(program), name)


def parameters(program) -> dict[str, torch.Tensor]:
    lab = program.bench.link._session.lab
    return {name: p.grad for name, p in lab.models.forward.state.named_parameters()}


@pytest.mark.own_program
def test_running_to_breakpoints_set_in_the_list_and_on_the_graph(qtbot, mlp):
    press(mlp, "backward_start")
    graph = mlp.bench.store.newest(GraphSnapshot)
    view = mlp.window.page("autograd").steps
    qtbot.waitUntil(lambda: view.graph.laid_out, timeout=30_000)
    points = backward(mlp).tabs.breakpoints
    target = backward(mlp).findChild(QLineEdit, "breakpoint_target")
    points.form.where.setCurrentIndex(points.form.where.findData("op"))
    points.form.when.setCurrentIndex(points.form.when.findData("always"))
    target.setText("addmm")
    points.form.submit()
    mlp.bench.link.drain()
    assert newest(mlp).breakpoints[0].breakpoint == Breakpoint(on="op", target="addmm")
    press(mlp, "backward_run")
    assert graph.nodes[newest(mlp).next.node].op == "addmm"
    assert text(mlp, "backward_stopped") == "Paused before AddmmBackward0 in linear3."
    assert newest(mlp).breakpoints[0].hits == 1
    points.add(Breakpoint(on="op", target="addmm"))  # it is there already
    assert len(points.breakpoints) == 1
    listed = backward(mlp).findChild(QTreeWidget, "breakpoints")
    listed.setCurrentItem(listed.topLevelItem(0))
    press(mlp, "breakpoint_remove")
    leaf = graph.plan[-1]
    view.graph.breakpoint_toggled.emit(f"#{leaf}")
    mlp.bench.link.drain()
    press(mlp, "backward_run")
    assert newest(mlp).next.node == leaf
    press(mlp, "backward_back_run")
    assert newest(mlp).position == 0
    view.graph.breakpoint_toggled.emit(f"#{leaf}")
    mlp.bench.link.drain()
    assert newest(mlp).breakpoints == ()


def test_an_edit_by_the_menu_scales_every_gradient_below(qtbot, mlp):
    press(mlp, "backward_start")
    press(mlp, "backward_end")
    plain = {name: grad.clone() for name, grad in parameters(mlp).items()}
    press(mlp, "backward_reset")
    trigger(mlp, "next_scale")
    field = backward(mlp).findChild(QLineEdit, "next_expression")
    assert field.text() == "g * 2.0" and field.selectedText() == "2.0"
    field.setText("g *")
    press_key(field, Qt.Key.Key_Return)
    mlp.bench.link.drain()
    assert "is not an expression" in text(mlp, "next_problem") and field.isVisibleTo(backward(mlp))
    field.setText("g * 4.0")
    press_key(field, Qt.Key.Key_Return)
    mlp.bench.link.drain()
    assert text(mlp, "next_edits") == "g ← g * 4.0" and text(mlp, "next_problem") == ""
    assert not field.isVisibleTo(backward(mlp))
    press(mlp, "backward_step")
    assert "The incoming gradient is your edit" in text(mlp, "node_about")
    press(mlp, "backward_end")
    for name, grad in parameters(mlp).items():
        assert torch.equal(grad, plain[name] * 4.0)
    press(mlp, "backward_reset")
    press(mlp, "next_undo")
    press(mlp, "backward_end")
    for name, grad in parameters(mlp).items():
        assert torch.equal(grad, plain[name])
    assert newest(mlp).edits == ()


@pytest.mark.parametrize("element", ["g[1, -2] = 2.5", "g[0]=-1", "g [ 0 , 2, ] = 1e-3"])
def test_an_element_is_set_as_python_sets_it(element):
    g = torch.arange(6.0).view(2, 3)
    changed = {"g": g.clone()}
    exec(element, changed)
    assert torch.equal(eval(as_expression(element), {"g": g, "torch": torch}), changed["g"])
    assert torch.equal(g, torch.arange(6.0).view(2, 3))


def test_another_pass_adds_and_zero_grad_empties(qtbot, mlp):
    press(mlp, "backward_start")
    press(mlp, "backward_end")
    once = {name: grad.clone() for name, grad in parameters(mlp).items()}
    press(mlp, "backward_again")
    assert text(mlp, "backward_line").startswith("Pass 2: 0 of")
    press(mlp, "backward_end")
    for name, grad in parameters(mlp).items():
        assert torch.equal(grad, once[name] * 2)
    trigger(mlp, "backward_zero_zeros")
    assert all((grad == 0).all() for grad in parameters(mlp).values())
    trigger(mlp, "backward_zero_none")
    assert set(parameters(mlp).values()) == {None}


def test_the_real_engine_goes_one_way(qtbot, mlp):
    view = backward(mlp)
    view.options.real_engine.setChecked(True)
    assert "real engine · graph freed" in text(mlp, "backward_options_summary")
    press(mlp, "backward_start")
    press(mlp, "backward_step")
    press(mlp, "backward_leaf")
    for name in ("reset", "back", "back_run"):
        assert not view.findChild(QAbstractButton, f"backward_{name}").isEnabled()
    press(mlp, "backward_end")
    press(mlp, "backward_compare")
    assert text(mlp, "backward_comparison").startswith("Equals loss.backward()")
    press(mlp, "backward_start")  # the graph is gone: forward runs again
    assert newest(mlp).position == 0 and newest(mlp).real_engine


@pytest.mark.parametrize("key", ["step_backward", "run_backward"])
def test_in_a_new_engine_the_keys_begin_a_new_pass(qtbot, mlp, key):
    press(mlp, "backward_start")
    press(mlp, "backward_step")
    mlp.bench.link.restart()
    mlp.bench.link.drain()
    assert mlp.bench.store.newest(BackwardSnapshot) is None
    mlp.bench.actions[f"autograd.{key}"].trigger()
    mlp.bench.link.drain()
    assert newest(mlp).position == (
        0 if key == "step_backward" else len(mlp.bench.store.newest(GraphSnapshot).plan)
    )


def test_breakpoints_outlive_the_engine(qtbot, mlp):
    backward(mlp).tabs.breakpoints.add(Breakpoint(on="op", target="relu"))
    mlp.bench.link.restart()
    mlp.bench.link.drain()
    press(mlp, "backward_start")
    press(mlp, "backward_run")
    assert text(mlp, "backward_stopped") == "Paused before ReluBackward0 in relu2."
    mlp.bench.actions["autograd.run_backward"].trigger()
    mlp.bench.link.drain()
    assert newest(mlp).breakpoints[0].hits >= 1


@pytest.mark.filterwarnings("ignore:.*create_graph=True.*:UserWarning")
def test_second_derivatives_from_the_table_of_gradients(qtbot, program):
    program.window.show_workspace("tensors")
    program.window.page("tensors").console.submit(
        "x = torch.tensor(3., requires_grad=True); y = x**3"
    )
    program.bench.link.drain()
    program.window.show_workspace("autograd")
    view = program.window.page("autograd").steps
    view.show_more(True)  # the options are there
    view.roots.choose("y")
    program.bench.link.drain()
    table = view.backward.table
    found = []
    view.backward.options.create_graph.setChecked(True)
    press(program, "backward_start")
    for _ in range(3):
        assert not view.backward.findChild(QAction, "gradient_open").isEnabled()
        press(program, "backward_end")
        found.append(newest(program).gradients[0].gradient.mean)
        table.setCurrentCell(0, 1)
        trigger(program, "gradient_open")
    assert found == [27.0, 18.0, 6.0]
    program.bench.link._session.lab.console.namespace.variables["x"].grad = None
    view.backward.options.inputs.setText("x")
    press(program, "backward_start")
    press(program, "backward_end")
    assert "autograd.grad()" in text(program, "backward_line")
    press(program, "backward_compare")
    assert text(program, "backward_comparison").startswith("Equals")
