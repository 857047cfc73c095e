"""Derivatives through the window, against plain torch."""

from __future__ import annotations

import pytest
import torch
from PySide6.QtWidgets import QLabel, QLineEdit, QPushButton, QTableWidget

from app import templates
from engine.project import edits
from engine.project.examples import derivative_examples
from engine.protocol import InterruptSignal, StopSignal
from tests.gestures import click, click_button, type_text
from widgets.derivatives.form import split_inputs
from widgets.derivatives.view import DerivativeView

pytestmark = pytest.mark.one_program

CELL = """
x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
def f(x):
    return (x ** 3).sum(1)
class Bad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, grad):
        slope = 2 * ctx.saved_tensors[0]
        slope[1] += 1
        return grad * slope
"""


@pytest.fixture
def view(program) -> DerivativeView:
    program.window.show_workspace("autograd")
    page = program.window.page("autograd")
    page.setCurrentWidget(page.derivatives)
    program.workspaces.run_python(CELL)
    program.bench.link.drain()
    return page.derivatives


def label(view, name: str) -> str:
    return view.findChild(QLabel, name).text()


def type_into(view, name: str, text: str) -> None:
    field = view.findChild(QLineEdit, name)
    field.clear()
    type_text(field, text)


def ask(program, view, kind: str) -> None:
    program.window.show_workspace("autograd")
    view.form.kind.setCurrentIndex(view.form.kind.findData(kind))
    click_button(view, "derivative_compute")
    program.bench.link.drain()


def test_a_jacobian_whose_entries_can_be_clicked(program, view):
    type_into(view, "derivative_function", "f")
    type_into(view, "derivative_inputs", "x")
    ask(program, view, "jacobian")
    assert label(view, "derivative_title") == "Jacobian, (2, 4): output (2,) by input (2, 2)"
    assert label(view, "derivative_code") == "J = torch.func.jacrev(f)(x)"
    assert label(view, "derivative_entry").startswith(
        "∂output[0] / ∂input[0, 0] = 3, numerically 3.0"
    )
    assert view.result.picture.marked_cell() == (0, 0)
    view.result.picture.cell_chosen.emit((1, 3))
    program.bench.link.drain()
    entry = label(view, "derivative_entry")
    assert entry.startswith("∂output[1] / ∂input[1, 1] = 48, numerically 4")
    assert view.result.picture.marked_cell() == (1, 3)
    of_output, of_input = view.result.values.shown_cards()[:2]
    assert of_output._label.text() == "row: ∂output[1] / ∂input"
    assert of_input._label.text() == "column: ∂output / ∂input[1, 1]"
    ways = view.findChild(QTableWidget, "derivative_ways")
    assert [ways.item(row, 0).text() for row in range(ways.rowCount())] == [
        "analytic, float32", "numeric, float64", "numeric, float32",
    ]  # fmt: skip
    assert float(ways.item(1, 1).text()) < 1e-6


def test_the_line_runs_in_the_console(program, view):
    type_into(view, "derivative_function", "lambda t: f(t).sum()")
    type_into(view, "derivative_inputs", "x")
    ask(program, view, "hessian")
    click_button(view, "derivative_run")
    program.bench.link.drain()
    variables = program.bench.link._session.lab.console.namespace.variables
    assert torch.equal(variables["H"].reshape(4, 4), torch.diag(6 * variables["x"].flatten()))


def test_the_model_on_the_canvas(program, view):
    ask(program, view, "jacobian")
    assert "no batch" in label(view, "derivative_problem"), "an empty canvas"
    program.bench.files.new(templates.load_template("mlp"))
    ask(program, view, "jacobian")
    title = "Jacobian, (10, 64): output (1, 10) by input (1, 1, 8, 8)"
    assert label(view, "derivative_title") == title
    assert not view.findChild(QLabel, "derivative_problem").isVisible()
    run = view.findChild(QPushButton, "derivative_run")
    assert not run.isEnabled(), "the console has no such model"
    type_into(view, "derivative_function", "torch.sin")
    type_into(view, "derivative_inputs", "torch.ones(2)")
    ask(program, view, "jacobian")
    assert run.isEnabled()


def choose_example(program, view, title: str) -> None:
    menu = view.findChild(QPushButton, "derivative_examples").menu()
    next(action for action in menu.actions() if action.text().startswith(title)).trigger()
    program.bench.link.drain()


def test_every_example_is_answered(program, view):
    for example in derivative_examples().values():
        program.bench.files.new()
        program.bench.link.drain()
        assert view._pages.currentWidget() is view._empty
        choose_example(program, view, example.title)
        assert label(view, "derivative_problem") == ""
        assert view._pages.currentWidget() is not view._empty


def test_the_examples_show_what_they_say(program, view):
    choose_example(program, view, "A Jacobian by hand")
    assert view.result._snapshot.texts == ("2", "1", "8", "12")
    choose_example(program, view, "The Jacobian of softmax")
    s = torch.tensor([2.0, 1.0, 0.0, -1.0]).softmax(0)
    shown = torch.tensor([float(t) for t in view.result._snapshot.texts]).reshape(4, 4)
    torch.testing.assert_close(shown, torch.diag(s) - torch.outer(s, s))
    choose_example(program, view, "A backward with a mistake")
    assert label(view, "gradcheck_verdict") == "✗ The check fails."
    assert view.check.pictures["analytic"].marked_cell() == (3, 3)
    choose_example(program, view, "Step through the GELU")
    assert program.window.page("autograd").trace.trace.error is None


def test_examples_leave_the_console_and_the_project_alone(program, view):
    console = program.bench.link._session.lab.console.namespace.variables
    before, kept = dict(console), program.bench.project.cells
    choose_example(program, view, "A Jacobian by hand")
    choose_example(program, view, "Step through the GELU")
    choose_example(program, view, "A Jacobian by hand")
    run = view.findChild(QPushButton, "derivative_run")
    assert not run.isEnabled() and "not the console's" in run.toolTip()
    program.window.page("autograd").setCurrentWidget(view)
    click_button(view, "derivative_steps")
    program.bench.link.drain()
    trace = program.window.page("autograd").trace.trace
    assert trace.error is None and "traced = f(" in trace.source
    assert dict(console) == before and all(console[n] is before[n] for n in before)
    assert program.bench.project.cells == kept


def test_a_function_typed_after_an_example_is_the_consoles(program, view):
    choose_example(program, view, "A Jacobian by hand")
    type_into(view, "derivative_function", "f")
    type_into(view, "derivative_inputs", "x")
    ask(program, view, "jacobian")
    assert label(view, "derivative_title") == "Jacobian, (2, 4): output (2,) by input (2, 2)"
    assert view.findChild(QPushButton, "derivative_run").isEnabled()


def test_an_example_is_asked_again_in_a_new_engine(program, view):
    choose_example(program, view, "A Jacobian by hand")
    program.bench.link.close()
    program.bench.link.start()
    ask(program, view, "jacobian")
    assert view.result._snapshot.texts == ("2", "1", "8", "12")


def test_a_long_computation_can_be_interrupted(program, view):
    button = view.findChild(QPushButton, "derivative_interrupt")
    assert not button.isVisible()
    type_into(view, "derivative_function", "f")
    type_into(view, "derivative_inputs", "x")
    view.findChild(QPushButton, "derivative_compute").click()
    sent = []
    program.bench.link.signal = sent.append
    (of,) = program.bench.link._unanswered
    click(button)
    assert sent == [StopSignal(command=of), InterruptSignal(command=of)]
    program.bench.link.drain()
    assert not button.isVisible(), "all comparisons have come"


def test_the_example_is_stepped_through(program, view):
    click_button(view, "derivative_trace")
    program.bench.link.drain()
    page = program.window.page("autograd")
    assert page.currentWidget() is page.trace
    trace = page.trace.trace
    lines = {trace.lines[call.line].text.strip() for call in trace.calls if call.line >= 0}
    assert {"return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))", "y = Gelu.apply(x)"} <= lines
    assert any(line.startswith("return g * ") for line in lines), "its backward"


def test_a_function_of_ones_own_is_stepped_line_by_line(program, view):
    steps = view.findChild(QPushButton, "derivative_steps")
    click(steps)
    assert label(view, "derivative_hint").startswith("Type a function first")
    choose_example(program, view, "A backward with a mistake")
    x = program.bench.link._session.lab.console.examples["derivatives"].variables["x"]
    click(steps)
    program.bench.link.drain()
    page = program.window.page("autograd")
    assert page.currentWidget() is page.trace
    trace = page.trace.trace
    assert trace.error is None and x.grad is None and not x.requires_grad
    stops = [trace.lines[call.line].text for call in trace.calls if call.kind == "line"]
    assert stops[0].startswith("class Cube")  # the example's own code comes first
    assert stops[-6:] == [
        "traced = Cube.apply(x.detach().requires_grad_())",
        "ctx.save_for_backward(x)",
        "return x**3",
        "traced.sum().backward()",
        "(x,) = ctx.saved_tensors",
        "return g * 3 * x",
    ]
    for _ in stops[:-4]:
        click(page.trace.bar.buttons["line"])
        program.bench.link.drain()
    reader = page.trace.source.reader
    (line,) = reader.marked_lines()
    assert reader.toPlainText().splitlines()[line - 1].strip() == "ctx.save_for_backward(x)"


def test_arguments_that_are_no_tensors_are_given_as_they_are(program, view):
    program.workspaces.run_python(
        "def power(x, n, mode='up'):\n    return x ** n\nx = torch.arange(3.)"
    )
    program.bench.link.drain()
    type_into(view, "derivative_function", "power")
    type_into(view, "derivative_inputs", "x, 2, 'up'")
    program.window.page("autograd").setCurrentWidget(view)
    click_button(view, "derivative_steps")
    program.bench.link.drain()
    trace = program.window.page("autograd").trace.trace
    assert trace.error is None
    assert trace.source.startswith("traced = power(x.detach().requires_grad_(), 2, 'up')")


def test_gradcheck_of_the_example(program, view):
    click_button(view, "derivative_example")
    program.bench.link.drain()
    assert label(view, "gradcheck_verdict") == "✓ The gradients agree."
    assert label(view, "gradcheck_worst").startswith("largest difference")
    type_into(view, "derivative_function", "Bad.apply")
    type_into(view, "derivative_inputs", "x.flatten()")
    ask(program, view, "gradcheck")
    assert label(view, "gradcheck_verdict") == "✗ The check fails."
    worst = label(view, "gradcheck_worst")
    assert worst.startswith("∂output[1] / ∂input[1] = ") and "allowed: " in worst
    assert [p.marked_cell() for p in view.check.pictures.values()] == [(1, 1)] * 3
    assert "Jacobian mismatch" in view.check.message.toPlainText()


def test_bad_input_is_told_in_place_and_nothing_is_lost(program, view):
    type_into(view, "derivative_function", "f")
    type_into(view, "derivative_inputs", "x")
    ask(program, view, "jacobian")
    ask(program, view, "hessian")
    assert "one number" in label(view, "derivative_problem")
    assert label(view, "derivative_hint").startswith("Reduce first")
    assert label(view, "derivative_title").startswith("Jacobian")
    type_into(view, "derivative_atol", "small")
    ask(program, view, "gradcheck")
    assert label(view, "derivative_problem") == "atol must be a number such as 1e-5, not “small”."
    assert view.form.compute.isEnabled()


def test_another_project_or_model_takes_the_matrix_with_it(program, view):
    program.bench.files.new(templates.load_template("mlp"))
    ask(program, view, "jacobian")
    block = program.bench.store.project.model.blocks[2]
    program.bench.edit("Change", lambda p: edits.set_param(p, block.id, "out_features", 32))
    program.bench.link.drain()
    assert view._pages.currentWidget() is view._empty
    type_into(view, "derivative_function", "torch.sin")
    type_into(view, "derivative_inputs", "torch.ones(2)")
    ask(program, view, "jacobian")
    program.bench.edit("Change", lambda p: edits.set_param(p, block.id, "out_features", 16))
    program.bench.link.drain()
    assert label(view, "derivative_title").startswith("Jacobian, (2, 2)"), "not of the model"
    program.bench.files.new(templates.load_template("lstm"))
    program.bench.link.drain()
    assert view._pages.currentWidget() is view._empty


def test_a_lost_engine_takes_the_matrix_with_it(program, view):
    type_into(view, "derivative_function", "f")
    type_into(view, "derivative_inputs", "x")
    ask(program, view, "jacobian")
    program.bench.link.close()
    assert view._pages.currentWidget() is view._empty
    assert label(view, "derivative_code") == ""


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ()),
        ("x", ("x",)),
        ("x, w", ("x", "w")),
        ("x[0, 1], f(a, b),", ("x[0, 1]", "f(a, b)")),
        ("(x, w)", ("(x, w)",)),
        ("x,, w", ("x,, w",)),
    ],
)
def test_inputs_are_split_at_their_own_commas(text, parts):
    assert split_inputs(text) == parts
