"""The trace through the window, against plain torch."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QLabel, QPushButton
from torch import nn

from app import templates
from engine.project import edits
from engine.project.examples import trace_examples
from engine.protocol import ForwardSnapshot, InterruptSignal, StopSignal
from tests.flows.autograd.drawn import drawn
from tests.gestures import click, click_button, press_key, type_text
from widgets.trace.view import TraceView

pytestmark = pytest.mark.one_program

LOOP, GELU, NAN, IN_PLACE, DESCENT = (example.code for example in trace_examples().values())


@pytest.fixture
def view(program) -> TraceView:
    program.window.show_workspace("autograd")
    page = program.window.page("autograd")
    page.setCurrentWidget(page.trace)
    return page.trace


def trace(program, view, source: str) -> None:
    view.source.input.set_source(source)
    press(program, view, "start")


def press(program, view, name: str) -> None:
    program.window.show_workspace("autograd")
    click_button(view, f"trace_{name}")
    program.bench.link.drain()


def move(program, view, name: str, times: int = 1) -> None:
    for _ in range(times):
        click(view.bar.buttons[name])
        program.bench.link.drain()


def go(program, view, name: str, line: int = 0, turn: int = 1) -> None:
    """Go to the first call of this name, at this turn of a line if one is given."""
    lines = view.trace.lines
    for number, call in enumerate(view.trace.calls):
        place = (lines[call.line].line, call.turn) if call.line >= 0 else None
        if call.name == name and (not line or place == (line, turn)):
            view.tree.setCurrentIndex(view.tree.calls.index_of(number))
            program.bench.link.drain()
            return
    raise LookupError((name, line, turn))


def label(view, name: str) -> str:
    return view.findChild(QLabel, f"trace_{name}").text()


def shown(view) -> dict[str, np.ndarray]:
    """The tensors on the cards, by their labels."""
    found = {}
    for card in view.call.values.shown_cards():
        picture = card.picture._picture
        found[card._label.text()] = np.frombuffer(picture.data, "<f4").reshape(picture.source_shape)
    return found


def result(view) -> np.ndarray:
    (found,) = (value for key, value in shown(view).items() if key.startswith("result"))
    return found


def given(view) -> list[np.ndarray]:
    return [value for key, value in shown(view).items() if not key.startswith("result")]


def run(source: str) -> dict:
    """The variables that plain Python and torch leave."""
    variables = {"torch": torch, "nn": nn}
    exec(source, variables)
    return variables


def test_each_turn_of_a_loop_has_the_values_that_torch_computes(program, view):
    trace(program, view, LOOP)
    model = run(LOOP)["model"]
    x, turn, branches = torch.tensor([[6.0, -9.0, 4.0, -2.0]]), 1, Counter()
    with torch.no_grad():
        while x.norm() > 1:
            go(program, view, "gt", 7, turn)
            np.testing.assert_array_equal(shown(view)["input 1"], x.norm().numpy())
            line = 9 if x.sum() > 0 else 11
            branches[line] += 1
            go(program, view, "div" if line == 9 else "abs", line, branches[line])
            before = x if line == 9 else model.mix(x)
            x, turn = before / 2 if line == 9 else before.abs(), turn + 1
            np.testing.assert_array_equal(next(iter(given(view))), before.numpy())
            np.testing.assert_array_equal(result(view), x.numpy())
    assert branches[9] and branches[11]  # it took both
    go(program, view, "gt", 7, turn)
    assert label(view, "where").endswith(f" time of {turn}")
    y = program.bench.link._session.lab.console.examples["trace"].variables["y"]
    assert torch.equal(y.detach(), x)


def test_back_and_forth_gives_the_same_numbers(program, view):
    trace(program, view, IN_PLACE)
    seen = []
    for _ in view.trace.calls:
        move(program, view, "step")
        seen.append((label(view, "call_name"), shown(view)))
    assert not view.bar.buttons["step"].isEnabled()
    x = torch.zeros(3, 4)
    x[1] += 1
    before_write = x[:, 2].clone()
    assert before_write.tolist() == [0, 1, 0]
    for name, values in reversed(seen):
        assert label(view, "call_name") == name
        for key, value in shown(view).items():
            np.testing.assert_array_equal(value, values[key])
        move(program, view, "back")
    assert label(view, "state") == f"Call 0 of {len(seen)}"
    go(program, view, "aten::copy_")
    np.testing.assert_array_equal(shown(view)["self"], before_write.numpy())
    assert "writes in place" in label(view, "call_facts")


def test_a_custom_function_forward_and_backward_line_by_line(program, view):
    trace(program, view, GELU)
    variables = run(GELU)
    lines = []
    move(program, view, "line")
    while view.bar.buttons["line"].isEnabled():
        lines.append(label(view, "where"))
        before = label(view, "state")
        move(program, view, "line")
        if label(view, "state") == before:
            break
    assert lines[:4] == ["Line 1", "Line 3", "Line 5", "Line 11"]  # the class is made
    forward, backward = ["Line 6", "Line 7", "Line 8"], [f"Line {n}" for n in (12, 13, 14, 15)]
    assert lines[4:] == ["Line 17", "Line 18", *forward, "Line 19", *backward]
    last = [i for i, call in enumerate(view.trace.calls) if call.name == "aten::mul.Tensor"][-1]
    view.tree.setCurrentIndex(view.tree.calls.index_of(last))
    program.bench.link.drain()
    assert label(view, "where") == "Line 15"
    x = variables["x"]
    np.testing.assert_array_equal(result(view), x.grad.numpy())
    exact = torch.autograd.grad(nn.functional.gelu(x).sum(), x)[0]
    np.testing.assert_allclose(result(view), exact.numpy(), rtol=1e-5, atol=1e-6)


def test_the_origin_of_a_nan(program, view):
    trace(program, view, NAN)
    move(program, view, "origin")
    assert label(view, "call_name") == "aten::div.Tensor"
    assert label(view, "where") == "Line 4"
    assert label(view, "call_mark").startswith("NaN is made here")
    x = torch.tensor([[1.0, 2.0, 3.0], [5.0, 5.0, 5.0]])
    centred = x - x.mean(1, keepdim=True)
    expected = centred / centred.square().mean(1, keepdim=True).sqrt()
    np.testing.assert_array_equal(result(view), expected.numpy())
    assert torch.isnan(expected[1]).all() and torch.isfinite(expected[0]).all()
    marks = {call.name: call.mark for call in view.trace.calls}
    assert marks["matmul"] == marks["softmax"] == "passed_on" and marks["sqrt"] == ""


def test_a_click_on_a_line_runs_to_it(program, view):
    trace(program, view, LOOP)
    for expected in ("1st", "2nd", "3rd"):
        view.source.reader.line_clicked.emit(7)
        program.bench.link.drain()
        assert label(view, "where").startswith(f"Line 7, {expected} time")


def test_an_error_in_place_with_what_ran_before(program, view):
    trace(program, view, "x = torch.ones(2, 3)\nprint(x.sum())\ny = x @ x\nz = 1\n")
    assert label(view, "problem").startswith("RuntimeError: mat1 and mat2 shapes")
    assert label(view, "problem").endswith("(line 3)")
    assert view.source.reader.marked_lines() == (3,)
    assert "tensor(6.)" in view.source.output.toPlainText()
    move(program, view, "step")
    np.testing.assert_array_equal(next(iter(shown(view).values())), np.ones((2, 3)))
    move(program, view, "end")
    assert "cannot be multiplied" in label(view, "call_error")
    assert not program.bench.store.project.cells
    # What is put right becomes a cell of the project, once.
    for _ in range(2):
        trace(program, view, "y = x @ x.T\n")
    assert [cell.source for cell in program.bench.store.project.cells] == ["y = x @ x.T"]
    assert label(view, "problem") == ""


def test_the_batch_of_the_model_and_its_nodes(qtbot, program, view):
    program.bench.files.new(templates.load_template("mlp"))
    view.findChild(QComboBox, "trace_what").setCurrentIndex(1)
    press(program, view, "start")
    forward = program.bench.link._session.lab.models.forward
    assert forward is not None and label(view, "problem") == ""
    assert "class Model(nn.Module)" in view.source.reader.toPlainText()
    linear = next(i for i, call in enumerate(view.trace.calls) if call.name == "Linear")
    view.tree.setCurrentIndex(view.tree.calls.index_of(linear))
    program.bench.link.drain()
    values = shown(view)
    with torch.no_grad(), forward.state as state:
        module = state.module.get_submodule(view.trace.calls[linear].module)
        expected = module(torch.tensor(values["input"]))
    np.testing.assert_array_equal(values["result"], expected.numpy())
    line = view.source.reader.marked_lines()[0]
    text = view.source.reader.toPlainText().split("\n")[line - 1]
    assert f"self.{view.trace.calls[linear].module}(" in text
    # Its node is in the graph that the backward pass begins with.
    press(program, view, "show_node")
    graph = drawn(qtbot, program)
    assert program.window.page("autograd").currentWidget() is not view
    program.window.page("autograd").setCurrentWidget(view)
    # It is the same pass: the same random numbers, the same loss.
    go(program, view, "cross_entropy")
    assert result(view) == forward.loss.item()
    go(program, view, "Linear")
    press(program, view, "show_node")
    page = program.window.page("autograd")
    assert page.currentWidget() is page.steps
    node = graph.nodes[page.steps.graph.selected]
    assert node.module == view.trace.calls[linear].module and node.name == "AddmmBackward0"


def test_a_node_of_the_users_code(qtbot, program, view):
    trace(program, view, "w = torch.ones(3, requires_grad=True)\nout = (w * 2).exp().sum()\n")
    go(program, view, "exp")
    page = program.window.page("autograd")
    press(program, view, "show_node")
    graph = drawn(qtbot, program)
    assert page.currentWidget() is page.steps and page.steps.roots.root == "out"
    assert graph.nodes[page.steps.graph.selected].name == "ExpBackward0"


def test_a_node_whose_result_was_thrown_away_is_told(program, view):
    trace(program, view, "w = torch.ones(3, requires_grad=True)\n(w * 2).exp().sum()\nk = 1\n")
    go(program, view, "exp")
    press(program, view, "show_node")
    assert label(view, "problem").startswith("No variable leads to this node")
    assert program.window.page("autograd").currentWidget() is view
    go(program, view, "mul")  # and it is no hindrance
    move(program, view, "line")
    assert label(view, "call_results") == "sets k = 1"


def test_an_edit_of_the_model_ends_a_trace_of_its_batch(program, view):
    program.bench.files.new(templates.load_template("mlp"))
    view.findChild(QComboBox, "trace_what").setCurrentIndex(1)
    press(program, view, "start")
    block = next(b for b in program.bench.store.project.model.blocks if b.kind == "nn.Linear")
    program.bench.edit("Change", lambda p: edits.set_param(p, block.id, "out_features", 32))
    assert view.trace is None
    assert label(view, "problem").startswith("The model or its data has changed")


def test_the_code_is_remembered_and_others_end_with_the_engine(program, view):
    trace(program, view, "x = torch.ones(1)\n")
    assert program.bench.settings.trace_code == "x = torch.ones(1)\n"
    program.bench.link.close()
    assert view.trace is None and "engine has ended" in label(view, "problem")
    assert not view.findChild(QPushButton, "trace_start").isEnabled()
    program.bench.link.start()
    program.bench.link.drain()
    trace(program, view, "y = torch.ones(1)\n")
    assert view.trace is not None
    program.bench.files.new(templates.load_template("mlp"))
    assert view.trace is None and label(view, "problem") == ""
    program.bench.link.drain()
    assert "y" not in program.bench.link._session.lab.console.namespace.variables


def test_code_that_does_not_end_can_be_interrupted(program, view, monkeypatch):
    signals = []
    monkeypatch.setattr(program.bench.link, "signal", signals.append)
    view.source.input.set_source("x = torch.ones(1)\n")
    view.start()
    button = view.findChild(QPushButton, "trace_interrupt")
    assert label(view, "state") == "Running…"
    (of,) = program.bench.link._unanswered
    click(button)
    assert signals == [StopSignal(command=of), InterruptSignal(command=of)]
    program.bench.link.drain()
    assert not button.isVisible() and label(view, "state").startswith("Call 0 of")


def test_names_are_completed(program, view):
    program.workspaces.run_python("quantity = torch.ones(3)")
    program.bench.link.drain()
    editor = view.source.input
    editor.set_source("")
    type_text(editor, "quanti")
    press_key(editor, Qt.Key.Key_Tab)
    program.bench.link.drain()
    assert editor.source() == "quantity"


def test_its_keys_do_not_step_the_pass_of_the_model(program, view):
    program.bench.files.new(templates.load_template("mlp"))
    program.window.show_workspace("autograd")
    trace(program, view, NAN)
    assert view.tree.hasFocus()
    for key in (Qt.Key.Key_F11, Qt.Key.Key_F10, Qt.Key.Key_F11):
        press_key(view.tree, key)
        program.bench.link.drain()
    names = [call.name or view.trace.lines[call.line].line for call in view.trace.calls]
    assert label(view, "call_name") == "tensor" and names[:4] == [
        1,
        6,
        "tensor",
        "aten::lift_fresh",
    ]
    assert program.bench.store.newest(ForwardSnapshot) is None
    # The same key outside steps the pass.
    program.window.page("autograd").setCurrentWidget(program.window.page("autograd").steps)
    press_key(program.window, Qt.Key.Key_F10)
    program.bench.link.drain()
    assert program.bench.store.newest(ForwardSnapshot) is not None


def test_gradient_descent_written_out(program, view):
    trace(program, view, DESCENT)
    updates = [i for i, call in enumerate(view.trace.calls) if call.name == "sub_"]
    assert len(updates) == 3
    expected = 0.0
    for place in updates:  # the mean of (x w - 2 x)² has the slope 2 · mean(x²) · (w - 2)
        expected -= 0.05 * 2 * 14 / 3 * (expected - 2)
        view.moved.emit("to", place)
        program.bench.link.drain()
        np.testing.assert_allclose(result(view), [[expected]], rtol=1e-6)
    w = program.bench.link._session.lab.console.namespace.variables["w"]
    assert w.grad is None and w.is_leaf


def test_the_origin_of_a_nan_in_backward(program, view):
    trace(
        program,
        view,
        "x = torch.zeros(2, requires_grad=True)\ny = x.sqrt() * 0\ny.sum().backward()\n",
    )
    move(program, view, "origin")
    calls = view.trace.calls
    assert calls[calls[view.trace.origin].parent].name == "backward"
    assert label(view, "where") == "Line 3"
    assert np.isnan(result(view)).all()


def test_the_operands_of_a_call_that_failed(program, view):
    trace(program, view, "x = torch.ones(2, 3)\ny = x @ x\n")
    assert not view.call.failed.isVisible()
    move(program, view, "end")
    failed = view.call.failed.failed
    assert view.call.failed.isVisible() and failed is not None and failed.kind == "product"
    assert [operand.text for operand in failed.operands] == ["x", "x"]
    move(program, view, "start")
    assert not view.call.failed.isVisible()


def test_an_unchanged_example_leaves_the_console_and_the_project_alone(program, view):
    program.workspaces.run_python("x = torch.ones(5)")
    program.bench.link.drain()
    console = program.bench.link._session.lab.console.namespace.variables
    before, kept = dict(console), program.bench.project.cells
    menu = view.findChild(QPushButton, "trace_examples").menu()
    titles = [example.title for example in trace_examples().values()]
    next(a for a in menu.actions() if a.text() == titles[-1]).trigger()
    press(program, view, "start")
    assert view.trace.error is None and view.trace.calls
    assert set(console) == set(before) and console["x"] is before["x"]
    assert program.bench.project.cells == kept
    number = max(n for n, call in enumerate(view.trace.calls) if call.name == "mean")
    view.tree.setCurrentIndex(view.tree.calls.index_of(number))
    program.bench.link.drain()
    press(program, view, "show_node")
    lab = program.bench.link._session.lab
    assert lab.backward.namespace is lab.console.examples["trace"]


def test_an_example_that_was_changed_is_the_readers_code(program, view):
    program.workspaces.run_python("k = 3")
    program.bench.link.drain()
    trace(program, view, "y = torch.ones(k)")
    console = program.bench.link._session.lab.console.namespace.variables
    assert view.trace.error is None and console["y"].shape == (3,)
