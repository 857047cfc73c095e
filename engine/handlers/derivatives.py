"""Answers about derivatives of the user's functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar, cast

import torch
from msgspec import structs
from torch import Tensor

from ..autograd.derivatives.code import check_code_of, code_of
from ..autograd.derivatives.differences import compare, numerical_entry
from ..autograd.derivatives.functions import (
    MATRIX_KINDS,
    Derivative,
    Function,
    FunctionAtPoint,
    at_point,
    derivative,
    shortened,
)
from ..autograd.derivatives.gradient_check import Pair, gradcheck
from ..autograd.derivatives.state import Derived
from ..lab import Lab
from ..protocol import (
    CheckedPair,
    DerivativeCommand,
    DerivativeComparison,
    DerivativeSnapshot,
    EntrySnapshot,
    GradcheckCommand,
    GradcheckSnapshot,
    MatrixEntry,
    ReadEntryCommand,
    Snapshot,
)
from ..restoring.module_kept import ModuleState
from ..restoring.random_states import torch_states_kept
from ..system.errors import LabError
from ..tensors.error_help import explain_error
from ..tensors.summary import picture, summarise, value
from ..tensors.texts import texts

T = TypeVar("T")

MAX_TEXTS = 1024
MAX_PICTURE_CELLS = 12_000
MAX_COMPARED = 4_096
"""Largest input, in elements, for which the derivative is compared with other ways of computing it:
each of them costs two evaluations per column."""

_RANDOM = (
    "the function draws random numbers: here each call draws the same ones, but others in float64"
    " than in float32"
)


def differentiate(lab: Lab, command: DerivativeCommand) -> Iterator[Snapshot | None]:
    """Answer with DerivativeSnapshots; the last has all comparisons. Raises LabError for a function
    that cannot be called or differentiated."""
    function, inputs = _function_and_inputs(lab, command)
    at = at_point(function, inputs, command.argument)
    kind = command.kind
    with _user_code(lab):
        out = _call_function(at.value)
    vector = _vector(lab, command, at, out)
    with _user_code(lab):
        found = _call_function(lambda: derivative(at, kind, vector, command.mode))
        derived = None
        if kind in MATRIX_KINDS:
            derived = Derived(at, kind, found.values, tuple(out.shape))
        lab.derivatives.derived = derived
        snapshot = _snapshot(command, at, out, found, derived)
        if at.is_random():
            snapshot = structs.replace(snapshot, note=_join_notes(snapshot.note, _RANDOM))
    yield snapshot
    if at.x.numel() > MAX_COMPARED:
        note = f"not compared: the input has more than {MAX_COMPARED:,} elements"
        yield structs.replace(snapshot, note=_join_notes(snapshot.note, note), complete=True)
        return
    comparisons: list[DerivativeComparison] = []
    ways = compare(at, kind, vector, command.mode)
    while not lab.control.stop.is_set():
        with _user_code(lab):
            try:
                way = next(ways)
            except StopIteration:
                break
        if way is not None:
            comparisons.append(
                DerivativeComparison(way.way, way.max_difference, way.relative, way.note)
            )
            yield structs.replace(snapshot, comparisons=tuple(comparisons))
        yield None
    yield structs.replace(snapshot, comparisons=tuple(comparisons), complete=True)


def read_entry(lab: Lab, command: ReadEntryCommand) -> Iterator[Snapshot]:
    """Answer with an EntrySnapshot. Raises LabError if there is no matrix, or no such entry in
    it."""
    derived = lab.derivatives.derived
    if derived is None:
        raise LabError("There is no matrix to read.", hint="Compute a Jacobian or a Hessian.")
    rows, columns = derived.matrix.shape
    if not (0 <= command.row < rows and 0 <= command.column < columns):
        raise LabError(
            f"The matrix has {rows:,} rows and {columns:,} columns, counted from 0: there is no"
            f" entry ({command.row}, {command.column})."
        )
    with _user_code(lab):
        entry = _entry(derived, command.row, command.column)
    shape = tuple(derived.at.x.shape)
    out_shape = shape if derived.kind == "hessian" else derived.output_shape
    yield EntrySnapshot(
        entry=entry,
        of_output=value(
            f"row: ∂output{_index(entry.output_index)} / ∂input",
            derived.matrix[command.row].reshape(shape),
        ),
        of_input=value(
            f"column: ∂output / ∂input{_index(entry.input_index)}",
            derived.matrix[:, command.column].reshape(out_shape),
        ),
    )


def check_gradient(lab: Lab, command: GradcheckCommand) -> Iterator[Snapshot]:
    """Answer with a GradcheckSnapshot. Raises LabError for a function that cannot be called."""
    function, inputs = _function_and_inputs(lab, command)
    with _user_code(lab):
        at = at_point(function, inputs, 0)
        if command.double:
            at = at.to(torch.float64)
        for t in at.inputs:
            t.requires_grad_(t.is_floating_point())
        with at.context:
            checked = _call_function(
                lambda: gradcheck(
                    at.function, at.inputs, command.second, command.eps, command.atol, command.rtol
                )
            )
        random = not checked.ok and _call_function(at.is_random)
    yield GradcheckSnapshot(
        ok=checked.ok,
        code=check_code_of(command),
        message=checked.message,
        hint="" if checked.ok else _check_hint(checked.message, command, random),
        pairs=tuple(
            _checked_pair(pair, at.inputs, command)
            for pair in checked.pairs
            if pair.analytic.numel()
        ),
    )


# -- the question --------------------------------------------------------------------------------


def _function_and_inputs(
    lab: Lab, command: DerivativeCommand | GradcheckCommand
) -> tuple[Function, tuple[Tensor, ...]]:
    function, inputs = command.function, command.inputs
    if not function.strip():
        forward = lab.models.forward
        if forward is None:
            raise LabError(
                "There is no batch to differentiate the model at.",
                hint="Build a model that can run, or give a function of the console.",
            )
        with forward.state:
            state = ModuleState(forward.state.module)
        with state:
            state.module.eval()
        return state, (forward.x[:1],)
    namespace = lab.console.of(command.example)
    found = namespace.evaluate(function.strip(), lab.control)
    if not callable(found):
        raise LabError(
            f"`{function.strip()}` is {type(found).__name__}: it cannot be called.",
            hint="Give a function: f, torch.tanh, model, lambda x: (x**2).sum().",
        )
    if not inputs:
        raise LabError("No input is given.", hint="Give the function's tensors: x, or x, w.")
    given = tuple(namespace.evaluate(text.strip(), lab.control) for text in inputs)
    for text, each in zip(inputs, given, strict=True):
        if not isinstance(each, Tensor):
            raise LabError(
                f"`{text.strip()}` is {type(each).__name__}, not a tensor.",
                hint="Give tensors; fix other arguments in a lambda: lambda x: f(x, 2).",
            )
    return cast("Function", found), cast("tuple[Tensor, ...]", given)


def _vector(
    lab: Lab, command: DerivativeCommand, at: FunctionAtPoint, out: Tensor
) -> Tensor | None:
    if command.kind in MATRIX_KINDS:
        return None
    if not command.vector.strip():
        return torch.ones_like(out if command.kind == "vjp" else at.x)
    vector = lab.console.of(command.example).evaluate(command.vector.strip(), lab.control)
    if not isinstance(vector, Tensor):
        raise LabError(f"`{command.vector.strip()}` is {type(vector).__name__}, not a tensor.")
    return vector.detach()


@contextmanager
def _user_code(lab: Lab) -> Iterator[None]:
    """Run the user's function in this context: random numbers that it draws are put back."""
    with torch_states_kept(), lab.users_code():
        yield


def _call_function(run: Callable[[], T]) -> T:
    """The result of `run`. An exception of the user's function becomes a LabError."""
    try:
        return run()
    except LabError:
        raise
    except Exception as error:
        raise LabError(
            f"The function fails: {type(error).__name__}: {shortened(str(error))}",
            hint=explain_error(error),
        ) from error


# -- the answer ----------------------------------------------------------------------------------


def _snapshot(
    command: DerivativeCommand,
    at: FunctionAtPoint,
    out: Tensor,
    found: Derivative,
    derived: Derived | None,
) -> DerivativeSnapshot:
    shown = DerivativeSnapshot(
        kind=command.kind,
        code=code_of(command),
        input=value("input", at.x),
        output=value("output", out),
        note=found.note,
    )
    if derived is None:
        return structs.replace(shown, result=value(command.kind.upper(), found.values))
    rows, columns = found.values.shape
    return structs.replace(
        shown,
        rows=rows,
        columns=columns,
        picture=picture(found.values, MAX_PICTURE_CELLS),
        summary=summarise(found.values),
        texts=texts_of(found.values),
        entry=_entry(derived, 0, 0) if found.values.numel() else None,
    )


def _join_notes(note: str, more: str) -> str:
    return "; ".join(filter(None, (note, more)))


def texts_of(matrix: Tensor) -> tuple[str, ...]:
    """The entries in C order as torch prints them; () for a large matrix."""
    return tuple(texts(matrix)) if matrix.numel() <= MAX_TEXTS else ()


def _entry(derived: Derived, row: int, column: int) -> MatrixEntry:
    at, shape = derived.at, tuple(derived.at.x.shape)
    out_shape = shape if derived.kind == "hessian" else derived.output_shape
    return MatrixEntry(
        row=row,
        column=column,
        output_index=index_of(row, out_shape),
        input_index=index_of(column, shape),
        value=float(derived.matrix[row, column]),
        numeric=_call_function(lambda: numerical_entry(at, derived.kind, row, column)),
    )


def _index(index: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, index))}]" if index else ""


def index_of(place: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The index of element number `place`, in C order, of a tensor of this shape."""
    index: list[int] = []
    for size in reversed(shape):
        place, rest = divmod(place, size)
        index.append(rest)
    return tuple(reversed(index))


def _checked_pair(pair: Pair, inputs: tuple[Tensor, ...], command: GradcheckCommand) -> CheckedPair:
    rows, columns = pair.analytic.shape
    difference = (pair.analytic - pair.numeric).abs()
    worst, allowed = None, 0.0
    if pair.worst is not None:
        row, column = pair.worst
        numeric = float(pair.numeric[row, column])
        allowed = command.atol + command.rtol * abs(numeric)
        worst = MatrixEntry(
            row=row,
            column=column,
            output_index=index_of(row, pair.output_shape),
            input_index=index_of(column, tuple(inputs[pair.input].shape)),
            value=float(pair.analytic[row, column]),
            numeric=numeric,
        )
    cells = MAX_PICTURE_CELLS // 6
    return CheckedPair(
        input=pair.input,
        output=pair.output,
        rows=rows,
        columns=columns,
        analytic=picture(pair.analytic, cells),
        numeric=picture(pair.numeric, cells),
        difference=picture(difference, cells),
        analytic_texts=texts_of(pair.analytic),
        numeric_texts=texts_of(pair.numeric),
        max_difference=float(difference.max()),
        worst=worst,
        allowed=allowed,
    )


def _check_hint(message: str, command: GradcheckCommand, random: bool) -> str:
    if random:
        return (
            "The function draws random numbers, so each call gives another result: put a"
            " model in eval(), or start the function with torch.manual_seed(0)."
        )
    if "Jacobian mismatch" in message and not command.double:
        return "In float32, numeric derivatives are inexact. Check in float64 first."
    if "Jacobian mismatch" in message:
        what = "the backward of the backward" if command.second else "the backward"
        return f"The framed entry differs most: look at {what} of the operation it belongs to."
    if "expected to be zero" in message:
        return (
            "The result depends on the input, but autograd has no record of that: look"
            " for detach(), item() or numpy()."
        )
    if "not differentiable" in message or "does not require grad" in message:
        return "No graph leads from the output to the inputs: look for detach(), item() or numpy()."
    return explain_error(RuntimeError(message))
