"""The form and the view of a derivative: the fields of each kind, the question, and its states."""

from __future__ import annotations

import pytest
import torch
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QPushButton

from engine.protocol import (
    CheckedPair,
    DerivativeCommand,
    DerivativeComparison,
    DerivativeSnapshot,
    ErrorReport,
    GradcheckCommand,
    GradcheckSnapshot,
    MatrixEntry,
    Variable,
)
from tests.labels import said
from tests.pictures import assert_same_picture
from tests.widgets.backward.autograd_snapshots import WEIGHT_GRAD, value_of
from widgets.derivatives.form import KINDS, DerivativeForm, split_inputs, traced_code
from widgets.derivatives.result import entry_text, title_of
from widgets.derivatives.view import DerivativeView
from widgets.table import ReadTable

POINT = value_of("input", WEIGHT_GRAD)
JACOBIAN = DerivativeSnapshot(
    kind="jacobian",
    code="J = torch.func.jacrev(f)(x)",
    input=POINT,
    output=POINT,
    rows=4,
    columns=4,
    picture=POINT.picture,
    entry=MatrixEntry(0, 0, (0, 0), (0, 0), 3.0, 3.001),
    reply_to=1,
)


@pytest.fixture
def form(qtbot) -> DerivativeForm:
    form = DerivativeForm()
    qtbot.addWidget(form)
    form.told = []
    form.asked.connect(form.told.append)
    form.problem.connect(form.told.append)
    return form


@pytest.fixture
def view(qtbot) -> DerivativeView:
    view = DerivativeView()
    qtbot.addWidget(view)
    view.resize(1100, 700)
    view.show()
    return view


def choose(form: DerivativeForm, kind: str) -> None:
    form.kind.setCurrentIndex(form.kind.findData(kind))


def state(view: DerivativeView) -> tuple[bool, bool, bool]:
    """Whether one can compute, interrupt, run the line in the console."""
    buttons = (view.findChild(QPushButton, f"derivative_{n}") for n in ("interrupt", "run"))
    interrupt, run = buttons
    return view.form.compute.isEnabled(), interrupt.isVisible(), run.isEnabled()


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_the_fields_that_it_needs(form, kind):
    choose(form, "jacobian" if kind != "jacobian" else "jvp")
    choose(form, kind)
    check = kind in ("gradcheck", "gradgradcheck")
    product = kind in ("jvp", "vjp", "hvp")
    fields = {form.vector: product, form.mode: kind == "jacobian", form.double: check}
    for field, wanted in (fields | dict.fromkeys(form.tolerances.values(), check)).items():
        assert field.isVisibleTo(form) == wanted
        label = form._labels[field]
        assert label.isVisibleTo(form) == (wanted and bool(label.text()))
    assert form.argument.isEnabled() != check


@pytest.mark.parametrize("kind", ["jacobian", "hessian", "jvp", "vjp", "hvp"])
def test_a_derivative_is_asked_for_with_all_fields(form, kind):
    choose(form, kind)
    form.function.setText(" f ")
    form.inputs.setText("x, w[0, 1]")
    form.argument.setValue(1)
    form.vector.setText(" v ")
    form.mode.setCurrentIndex(1)
    form.ask()
    assert form.told == [
        DerivativeCommand(
            kind=kind,
            function="f",
            inputs=("x", "w[0, 1]"),
            argument=1,
            vector="v",
            mode="forward",
        )
    ]


@pytest.mark.parametrize("kind", ["gradcheck", "gradgradcheck"])
@pytest.mark.parametrize("double", [True, False])
def test_a_check_is_asked_for_with_its_tolerances(form, kind, double):
    assert form.double.isChecked()
    choose(form, kind)
    form.function.setText("f")
    form.inputs.setText("x")
    form.double.setChecked(double)
    form.tolerances["atol"].setText("0.5")
    form.ask()
    second = kind == "gradgradcheck"
    wanted = GradcheckCommand(
        function="f", inputs=("x",), second=second, double=double, eps=1e-6, atol=0.5, rtol=1e-3
    )
    assert form.told == [wanted]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("much", "eps must be a number such as 1e-6, not “much”."),
        ("0", "eps must be above zero, not 0."),
        ("-1", "eps must be above zero, not -1."),
        ("inf", "eps must be above zero, not inf."),
        ("nan", "eps must be above zero, not nan."),
    ],
)
def test_a_tolerance_that_is_none_is_told(form, text, words):
    choose(form, "gradcheck")
    form.tolerances["eps"].setText(text)
    form.ask()
    assert form.told == [words]


def test_the_number_of_the_input_is_one_of_the_inputs(form):
    highest = []
    for text in ("", "x", "x, w", "f(x, w), 3, y"):
        form.inputs.setText(text)
        highest.append(form.argument.maximum())
    assert highest == [0, 0, 1, 2]


def test_tensors_and_what_can_be_called_are_offered(form, monkeypatch):
    shown = {}
    for name in ("function", "inputs", "vector"):
        keep = lambda names, name=name: shown.update({name: names})  # noqa: E731
        monkeypatch.setattr(getattr(form, name), "show_names", keep)
    form.show_variables(
        [
            Variable("x", "tensor", "Tensor"),
            Variable("f", "other", "function"),
            Variable("net", "module", "Linear"),
            Variable("Gelu", "other", "FunctionMeta"),
            Variable("n", "number", "int"),
        ]
    )
    assert shown == {"function": ["f", "net", "Gelu"], "inputs": ["x"], "vector": ["x"]}


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ()), (" x ", ("x",)), ("x, w", ("x", "w")), ("x,", ("x",)),
        ("w[0, 1], x", ("w[0, 1]", "x")), ("(x, w)", ("(x, w)",)), ("x +", ("x +",)),
    ],
)  # fmt: skip
def test_inputs_are_split_at_their_own_commas(text, parts):
    assert split_inputs(text) == parts


@pytest.mark.parametrize("function", ["torch.tanh", "lambda x, n: x ** n"])
def test_the_code_to_trace_runs_and_leaves_the_inputs_alone(function):
    x = torch.ones(3, requires_grad=True)
    inputs = ("x",) if function == "torch.tanh" else ("x", "2")
    names = {"torch": torch, "x": x}
    exec(traced_code(function, inputs), names)
    expected = torch.tanh(x) if len(inputs) == 1 else x**2
    assert torch.equal(names["traced"], expected) and x.grad is None


# -- the view ------------------------------------------------------------------------------------


def test_a_question_is_under_way_until_its_comparisons_have_come(view):
    assert state(view) == (True, False, False)
    view.form.function.setText("f")
    view.form.ask()
    assert state(view) == (False, True, False)
    view.show_answer(JACOBIAN)
    assert state(view) == (True, True, True)
    view.show_answer(replace(JACOBIAN, complete=True))
    assert state(view) == (True, False, True)
    view.form.ask()
    view.show_answer(GradcheckSnapshot(ok=True, code="gradcheck(f, x)"))
    assert state(view) == (True, False, True)
    assert said(view, "derivative_code") == "gradcheck(f, x)"
    view.clear()
    assert state(view) == (True, False, False) and said(view, "derivative_code") == ""


def test_a_line_about_the_model_is_not_run_in_the_console(view):
    view.form.ask()
    assert view.is_of_model
    view.show_answer(JACOBIAN)
    assert state(view) == (True, True, False)


@pytest.mark.parametrize(
    ("kind", "words"), [("LabError", "It broke."), ("ValueError", "ValueError: It broke.")]
)
def test_an_error_is_told_with_its_type_unless_it_is_the_programs_own(view, kind, words):
    view.form.ask()
    view.show_error(ErrorReport(kind, "It broke.", "Mend it."))
    assert state(view)[:2] == (True, False)
    assert (said(view, "derivative_problem"), said(view, "derivative_hint")) == (words, "Mend it.")
    view.form.ask()
    assert said(view, "derivative_problem") == said(view, "derivative_hint") == ""


def test_a_comparison_that_arrives_later_leaves_the_chosen_entry(view):
    view.show_answer(JACOBIAN)
    first = said(view, "derivative_entry")
    assert first == "∂output[0, 0] / ∂input[0, 0] = 3, numerically 3.001"
    other = MatrixEntry(1, 1, (0, 1), (0, 1), 5.0, 5.0)
    view.show_answer(replace(JACOBIAN, entry=other))  # the same answer goes on
    assert said(view, "derivative_entry") == first
    view.show_answer(replace(JACOBIAN, entry=other, reply_to=2))
    assert said(view, "derivative_entry").startswith("∂output[0, 1]")
    product = replace(JACOBIAN, kind="vjp", picture=None, entry=None, result=POINT, reply_to=3)
    view.show_answer(product)
    assert said(view, "derivative_entry") == ""
    assert said(view, "derivative_title") == "VJP, (2, 2): input (2, 2), output (2, 2)"


def test_ways_to_compute_it_are_compared(view):
    ways = (
        DerivativeComparison("numeric, float64", 0.00012345, 0.5),
        DerivativeComparison("forward mode", float("nan"), float("nan"), "It has no rule."),
    )
    view.show_answer(replace(JACOBIAN, comparisons=ways))
    table = view.findChild(ReadTable, "derivative_ways")
    assert table.rows() == [["numeric, float64", "0.000123", "0.5"], ["forward mode", "–", "–"]]
    tips = [[table.cell(row, column).toolTip() for column in range(3)] for row in range(2)]
    assert tips == [["numeric, float64"] * 3, ["It has no rule."] * 3]
    view.show_answer(replace(JACOBIAN, comparisons=ways[:1]))
    assert len(table.rows()) == 1


PAIR = CheckedPair(
    input=0,
    output=0,
    rows=2,
    columns=2,
    analytic=POINT.picture,
    numeric=POINT.picture,
    difference=POINT.picture,
    max_difference=0.25,
)
FAILING = replace(
    PAIR, input=1, worst=MatrixEntry(1, 0, (1,), (0,), 3.0, 2.5), allowed=0.001, max_difference=0.5
)


@pytest.mark.parametrize(
    ("pairs", "chosen", "words"),
    [
        ((PAIR, PAIR), 0, "largest difference 0.25"),
        ((PAIR, FAILING, FAILING), 1, "differs by 0.5, allowed: 0.001"),
        ((), -1, ""),
    ],
)
def test_of_the_checked_pairs_the_first_that_fails_is_shown(view, pairs, chosen, words):
    failed = bool(words) and chosen == 1
    larger = value_of("numeric", 4 * WEIGHT_GRAD).picture
    pairs = tuple(replace(pair, numeric=larger) for pair in pairs)
    view.show_answer(
        GradcheckSnapshot(ok=not failed, code="c", message="m" * failed, hint="h", pairs=pairs)
    )
    box = view.findChild(QComboBox, "gradcheck_pair")
    assert (box.currentIndex(), box.count(), box.isVisible()) == (
        chosen,
        len(pairs),
        len(pairs) > 1,
    )
    assert words in said(view, "gradcheck_worst")
    assert said(view, "gradcheck_verdict").startswith("✗" if failed else "✓")
    scales = {picture.colour_range() for picture in view.check.pictures.values()}
    # From the smallest of all three to the largest: one colour is one number.
    assert scales == {(0.25, 4.0) if pairs else (0.0, 0.0)}
    marked = {picture.marked_cell() for picture in view.check.pictures.values()}
    assert marked == {(1, 0) if failed else None}
    if failed:
        assert box.itemText(0) == "output 0 by input 0"
        assert box.itemText(1) == "output 0 by input 1 – fails"


def test_the_views_of_a_derivative_look_as_they_did(view, qapp):
    choose(view.form, "gradcheck")
    view.form.function.setText("f")
    view.form.inputs.setText("x, w")
    told = GradcheckSnapshot(ok=False, code="c", message="Jacobian mismatch", pairs=(FAILING,))
    view.show_answer(told)
    qapp.processEvents()
    assert_same_picture(view, "gradcheck_view")
    choose(view.form, "vjp")
    view.show_answer(JACOBIAN)
    qapp.processEvents()
    assert_same_picture(view, "derivative_view")


def test_titles_and_entries_in_words():
    assert title_of(JACOBIAN) == "Jacobian, (4, 4): output (2, 2) by input (2, 2)"
    hessian = replace(JACOBIAN, kind="hessian")
    assert title_of(hessian) == "Hessian, (4, 4): by input (2, 2) twice"
    entry = MatrixEntry(0, 1, (), (1,), 2.0, 2.5)
    assert entry_text(entry) == "∂output / ∂input[1] = 2, numerically 2.5"
    assert entry_text(entry, True) == "∂²output / ∂input ∂input[1] = 2, numerically 2.5"


def test_the_lines_of_a_function_can_be_stepped_and_those_of_the_model_elsewhere(view, qtbot):
    traced = []
    view.trace_requested.connect(traced.append)
    steps = view.findChild(QPushButton, "derivative_steps")
    qtbot.mouseClick(steps, Qt.MouseButton.LeftButton)
    assert traced == [] and said(view, "derivative_hint").startswith("Type a function")
    view.form.function.setText("f")
    view.form.inputs.setText("x")
    qtbot.mouseClick(steps, Qt.MouseButton.LeftButton)
    assert traced == [traced_code("f", ("x",))]
