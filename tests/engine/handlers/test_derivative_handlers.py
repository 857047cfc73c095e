"""Derivatives as the window asks for them, against plain torch."""

from __future__ import annotations

import copy
import math
import re
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch

from engine.handlers import derivatives
from engine.handlers.derivatives import index_of
from engine.lab import Lab
from engine.project.files import load
from engine.protocol import (
    DerivativeCommand,
    DerivativeSnapshot,
    EntrySnapshot,
    ErrorSnapshot,
    GradcheckCommand,
    GradcheckSnapshot,
    ReadEntryCommand,
    RunCellCommand,
    StartForwardCommand,
)
from engine.server.session import Session

MLP = Path(__file__).parents[3] / "assets" / "templates" / "mlp.tlab"

CELL = """
torch.manual_seed(0)
x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
w = torch.tensor([[2.0, 0.0, 1.0], [1.0, -1.0, 0.5]])
def f(x, w=w):
    return x @ w
def g(x):
    return (x ** 3).sum()
class Bad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        slope = 2 * x
        slope[1, 0] += 1
        return grad * slope
"""


class Talk:
    def __init__(self) -> None:
        self.answers: list = []
        self.session = Session(self.answers.append)
        self.ask(RunCellCommand(source=CELL))

    @property
    def lab(self) -> Lab:
        return self.session.lab

    def ask(self, command, kind=None):
        del self.answers[:]
        self.session.handle(command)
        if kind is None:
            return None
        found = [a for a in self.answers if isinstance(a, kind)]
        assert found, self.answers
        return found[-1]


@pytest.fixture
def talk():
    return Talk()


def matrix(picture):
    return np.frombuffer(picture.data, "<f4").reshape(picture.shape)


def test_a_jacobian_with_its_entries(talk):
    got = talk.ask(
        DerivativeCommand(kind="jacobian", function="f", inputs=("x", "w"), argument=1),
        DerivativeSnapshot,
    )
    x, w = (talk.lab.console.namespace.variables[name].detach() for name in "xw")
    expected = torch.func.jacrev(lambda w: x @ w)(w).reshape(6, 6)
    assert (got.rows, got.columns) == (6, 6)
    assert np.array_equal(matrix(got.picture), expected.numpy())
    assert [float(t) for t in got.texts] == expected.reshape(-1).tolist()
    assert got.code == "J = torch.func.jacrev(f, argnums=1)(x, w)"
    assert got.summary.maximum == float(expected.max())
    assert [c.way for c in got.comparisons] == [
        "analytic, float32", "numeric, float64", "numeric, float32",
    ]  # fmt: skip
    entry = talk.ask(ReadEntryCommand(row=4, column=1), EntrySnapshot)
    assert entry.entry.output_index == (1, 1) and entry.entry.input_index == (0, 1)
    assert entry.entry.value == float(expected[4, 1]) == float(x[1, 0])
    assert entry.entry.numeric == pytest.approx(float(x[1, 0]), rel=1e-3)
    assert entry.of_output.label == "row: ∂output[1, 1] / ∂input"
    assert entry.of_input.label == "column: ∂output / ∂input[0, 1]"
    assert np.array_equal(matrix(entry.of_output.picture), expected[4].reshape(2, 3).numpy())
    assert np.array_equal(matrix(entry.of_input.picture), expected[:, 1].reshape(2, 3).numpy())


def test_an_element_of_a_scalar_has_no_index(talk):
    command = DerivativeCommand(kind="jacobian", function="lambda x: 3 * x", inputs=("x[1, 1]",))
    assert talk.ask(command, DerivativeSnapshot).entry.value == 3
    entry = talk.ask(ReadEntryCommand(row=0, column=0), EntrySnapshot)
    assert entry.of_output.label == "row: ∂output / ∂input"
    assert entry.of_input.label == "column: ∂output / ∂input"


def test_the_entrys_indices_are_those_of_output_and_input(talk):
    talk.ask(DerivativeCommand(kind="jacobian", function="f", inputs=("x",)), DerivativeSnapshot)
    entry = talk.ask(ReadEntryCommand(row=5, column=2), EntrySnapshot).entry
    assert (entry.output_index, entry.input_index) == ((1, 2), (1, 0))
    w = talk.lab.console.namespace.variables["w"]
    assert entry.value == float(w[0, 2]) == 1.0  # of x[1, 0] * w[0, 2]


@pytest.mark.parametrize("kind", ["jacobian", "hessian", "jvp", "vjp", "hvp"])
def test_the_line_of_python_gives_what_is_shown(talk, kind):
    function = "f" if kind in ("jacobian", "jvp", "vjp") else "g"
    got = talk.ask(
        DerivativeCommand(kind=kind, function=function, inputs=("x",)), DerivativeSnapshot
    )
    name = {"jacobian": "J", "hessian": "H"}.get(kind, kind)
    talk.ask(RunCellCommand(source=got.code))
    theirs = talk.lab.console.namespace.variables[name].detach()
    shown = matrix(got.picture or got.result.picture)
    assert np.array_equal(shown.reshape(-1), theirs.numpy().reshape(-1))


def test_a_vector_of_the_users_and_another_argument(talk):
    command = DerivativeCommand(
        kind="vjp",
        function="lambda a, b: (a @ b).tanh()",
        inputs=("x", "w"),
        argument=1,
        vector="torch.arange(6.0).reshape(2, 3)",
    )
    got = talk.ask(command, DerivativeSnapshot)
    talk.ask(RunCellCommand(source=got.code))
    theirs = talk.lab.console.namespace.variables["vjp"].detach()
    assert theirs.shape == (2, 3)
    assert np.array_equal(matrix(got.result.picture), theirs.numpy())


def test_the_hessian_of_a_cube_is_diagonal(talk):
    got = talk.ask(
        DerivativeCommand(kind="hessian", function="g", inputs=("x",)), DerivativeSnapshot
    )
    assert np.array_equal(matrix(got.picture), np.diag([6.0, 12.0, 18.0, 24.0]))
    entry = talk.ask(ReadEntryCommand(row=2, column=2), EntrySnapshot).entry
    assert entry.output_index == entry.input_index == (1, 0) and entry.value == 18


def test_nothing_of_the_users_changes(talk):
    lab = talk.lab
    before = lab.console.namespace.variables["x"]
    talk.ask(RunCellCommand(source="torch.manual_seed(1)"))
    state = torch.get_rng_state()
    talk.ask(
        DerivativeCommand(
            kind="jacobian", function="lambda x: x * torch.rand(2, 2)", inputs=("x",)
        ),
        DerivativeSnapshot,
    )
    assert before.grad is None and before._version == 0
    assert torch.equal(torch.get_rng_state(), state)


def test_the_model_of_the_pass(talk):
    project = load(MLP)
    talk.ask(StartForwardCommand(model=project.model, training=project.training))
    got = talk.ask(DerivativeCommand(kind="jacobian"), DerivativeSnapshot)
    forward = talk.lab.models.forward
    assert (got.rows, got.columns) == (10, 64)
    with forward.state as state:
        module = copy.deepcopy(state.module).eval()
    expected = torch.func.jacrev(module)(forward.x[:1]).reshape(10, 64)
    assert np.array_equal(matrix(got.picture), expected.detach().numpy())


def test_the_last_snapshot_says_that_it_is(talk):
    talk.ask(DerivativeCommand(kind="jacobian", function="f", inputs=("x",)), DerivativeSnapshot)
    told = [a for a in talk.answers if isinstance(a, DerivativeSnapshot)]
    assert [a.complete for a in told] == [False] * (len(told) - 1) + [True]
    assert len(told[-1].comparisons) == 3


def test_modules_of_the_console_are_compared_in_float64_and_stay_float32(talk):
    talk.ask(RunCellCommand(source="lstm = nn.LSTM(2, 3)\nbefore = lstm.weight_hh_l0.clone()"))
    command = DerivativeCommand(kind="jacobian", function="lambda t: lstm(t)[0]", inputs=("x",))
    got = talk.ask(command, DerivativeSnapshot)
    assert [c.note for c in got.comparisons] == ["", "", ""]
    single, numeric, coarse = (c.max_difference for c in got.comparisons)
    assert 0 < single < 1e-6 and numeric < 1e-8 and coarse < 1e-2
    variables = talk.lab.console.namespace.variables
    assert variables["lstm"].weight_hh_l0.dtype == torch.float32
    assert torch.equal(variables["lstm"].weight_hh_l0, variables["before"])


def test_a_function_that_draws_random_numbers_has_a_derivative(talk):
    source = "net = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))"
    talk.ask(RunCellCommand(source=source))
    got = talk.ask(
        DerivativeCommand(kind="jacobian", function="net", inputs=("x",)), DerivativeSnapshot
    )
    assert "one by one" in got.note and "random numbers" in got.note
    numeric = next(c for c in got.comparisons if c.way == "numeric, float64")
    assert numeric.max_difference < 1e-6
    entry = talk.ask(ReadEntryCommand(row=0, column=0), EntrySnapshot).entry
    assert entry.numeric == pytest.approx(entry.value, abs=1e-2)
    checked = talk.ask(GradcheckCommand(function="net", inputs=("x",)), GradcheckSnapshot)
    assert not checked.ok and "random numbers" in checked.hint


def test_gradcheck_of_a_result_that_was_detached(talk):
    command = GradcheckCommand(function="lambda x: x.detach() * 2", inputs=("x",))
    checked = talk.ask(command, GradcheckSnapshot)
    assert not checked.ok and "detach()" in checked.hint
    assert checked.pairs[0].worst is not None


def test_a_function_that_writes_into_its_input_sees_each_time_the_same(talk):
    command = DerivativeCommand(
        kind="jacobian", function="lambda x: x.mul_(2).square()", inputs=("x",), mode="forward"
    )
    got = talk.ask(command, DerivativeSnapshot)
    assert np.array_equal(matrix(got.picture), np.diag([8.0, 16.0, 24.0, 32.0]))
    assert got.comparisons[1].max_difference < 1e-6


def test_gradcheck_marks_the_entry_that_fails(talk):
    got = talk.ask(GradcheckCommand(function="Bad.apply", inputs=("x",)), GradcheckSnapshot)
    (pair,) = got.pairs
    assert not got.ok and "Jacobian mismatch" in got.message and got.hint
    assert pair.worst.output_index == pair.worst.input_index == (1, 0)
    assert pair.worst.value == 7.0 and pair.worst.numeric == pytest.approx(6.0)
    assert pair.allowed == pytest.approx(1e-5 + 1e-3 * 6)
    assert pair.max_difference == pytest.approx(1.0)
    code = got.code.removeprefix("torch.autograd.")
    assert code == "gradcheck(Bad.apply, (x.detach().double().requires_grad_(),))"
    talk.ask(RunCellCommand(source=got.code))
    assert talk.answers[-1].error.type == "GradcheckError"


ONLY_ONCE = """
class Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 2
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 2 * x.detach()
"""


@pytest.mark.filterwarnings("ignore:Input #0 requires gradient and is not a double:UserWarning")
@pytest.mark.parametrize(
    ("command", "hint"),
    [
        (GradcheckCommand(function="Bad.apply"), "look at the backward of the operation"),
        (GradcheckCommand(function="Bad.apply", double=False), "Check in float64 first"),
        (GradcheckCommand(function="Once.apply", second=True), "look at the backward of the back"),
        (GradcheckCommand(function="lambda x: x.detach() * 2"), "The result depends on the input"),
        (GradcheckCommand(function="lambda x: torch.special.zeta(x, x)"), "knows no derivative of"),
        (GradcheckCommand(function="lambda x: x > 0"), "bool tensors cannot be subtracted"),
    ],
)  # fmt: skip
def test_what_to_look_for_when_a_check_fails(talk, command, hint):
    talk.ask(RunCellCommand(source=ONLY_ONCE))
    got = talk.ask(msgspec.structs.replace(command, inputs=("x",)), GradcheckSnapshot)
    assert not got.ok and hint in got.hint


def test_gradcheck_passes(talk):
    for second in (False, True):
        got = talk.ask(
            GradcheckCommand(function="torch.sigmoid", inputs=("x",), second=second),
            GradcheckSnapshot,
        )
        assert got.ok and not got.message and got.pairs[0].worst is None
        talk.ask(RunCellCommand(source=f"passed = {got.code}"))
        assert talk.lab.console.namespace.variables["passed"] is True


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (DerivativeCommand(kind="jacobian"), "no batch"),
        (DerivativeCommand(kind="jacobian", function="f"), "No input"),
        (DerivativeCommand(kind="jacobian", function="x", inputs=("x",)), "cannot be called"),
        (DerivativeCommand(kind="jacobian", function="f(", inputs=("x",)), "SyntaxError"),
        (DerivativeCommand(kind="jacobian", function="nope", inputs=("x",)), "NameError"),
        (DerivativeCommand(kind="jacobian", function="f", inputs=("3",)), "not a tensor"),
        (DerivativeCommand(kind="hessian", function="f", inputs=("x",)), "one number"),
        (DerivativeCommand(kind="vjp", function="f", inputs=("x",), vector="x"), r"\(2, 2\)"),
        (DerivativeCommand(kind="jacobian", function="f", inputs=("x",), argument=3), "no input 3"),
        (
            DerivativeCommand(kind="jacobian", function="lambda x: x @ x[0, :1]", inputs=("x",)),
            "RuntimeError",
        ),
        (DerivativeCommand(kind="jacobian", function="torch.sin", inputs=("x[:0]",)), "no elem"),
        (
            DerivativeCommand(kind="jacobian", function="torch.sin", inputs=("x.to_sparse()",)),
            "den",
        ),
        (
            DerivativeCommand(kind="jacobian", function="torch.sin", inputs=("x.to('meta')",)),
            "meta",
        ),
        (
            DerivativeCommand(kind="jacobian", function="lambda x: {'a': x}", inputs=("x",)),
            "dict of 1",
        ),
        (GradcheckCommand(function="lambda x: {'a': x}", inputs=("x",)), "returns dict"),
        (GradcheckCommand(function="lambda x: (x, (x, x))", inputs=("x",)), "tuple among"),
        (GradcheckCommand(function="torch.detach", inputs=("x",), second=True), "no backward"),
        (ReadEntryCommand(row=0, column=0), "no matrix"),
    ],
)
def test_what_cannot_be_is_told(talk, command, said):
    error = talk.ask(command, ErrorSnapshot).error
    assert error.type == "LabError"
    assert re.search(said, error.message)


def test_places_and_indices():
    shape = (2, 3, 4)
    for place in range(math.prod(shape)):
        assert index_of(place, shape) == tuple(map(int, np.unravel_index(place, shape)))
    assert index_of(0, ()) == ()


@pytest.mark.parametrize(("most", "is_compared"), [(4, True), (3, False)])
def test_the_derivative_by_many_numbers_is_not_compared(talk, monkeypatch, most, is_compared):
    monkeypatch.setattr(derivatives, "MAX_COMPARED", most)
    command = DerivativeCommand(kind="vjp", function="torch.sin", inputs=("x",))
    got = talk.ask(command, DerivativeSnapshot)
    assert got.complete and bool(got.comparisons) == is_compared
    words = f"not compared: the input has more than {most} elements"
    assert got.note == ("" if is_compared else words)


def test_a_vector_that_is_no_tensor_is_told(talk):
    command = DerivativeCommand(kind="vjp", function="torch.sin", inputs=("x",), vector=" 3 ")
    assert talk.ask(command, ErrorSnapshot).error.message == "`3` is int, not a tensor."


def test_a_large_matrix_has_no_texts_and_an_empty_one_no_entry(talk, monkeypatch):
    command = DerivativeCommand(kind="jacobian", function="torch.sin", inputs=("x",))
    for most, count in ((16, 16), (15, 0)):
        monkeypatch.setattr(derivatives, "MAX_TEXTS", most)
        got = talk.ask(command, DerivativeSnapshot)
        assert len(got.texts) == count and got.entry is not None
        assert got.summary.shape == (4, 4)
    for row, column in ((4, 0), (0, 4), (-1, 0), (0, -1)):
        error = talk.ask(ReadEntryCommand(row=row, column=column), ErrorSnapshot).error
        assert f"there is no entry ({row}, {column})" in error.message
    entry = talk.ask(ReadEntryCommand(row=3, column=3), EntrySnapshot).entry
    x = talk.lab.console.namespace.variables["x"]
    assert entry.value == pytest.approx(float(x[1, 1].detach().cos()))


@pytest.mark.parametrize(
    ("message", "random", "words"),
    [
        ("Jacobian mismatch", True, "draws random numbers"),
        ("the output is not differentiable", False, "No graph leads"),
        ("element 0 of tensors does not require grad", False, "No graph leads"),
        ("Numerical gradient for function expected to be zero", False, "autograd has no record"),
    ],
)
def test_the_hint_for_a_message_of_gradcheck(message, random, words):
    assert words in derivatives._check_hint(message, GradcheckCommand(function="f"), random)
