"""A backward rule checked by central differences of the recorded operation.

With L = Σ (result · incoming gradient), the rule gives dL/dx for each element x of an argument. The
central difference (L(x + h) - L(x - h)) / 2h approximates it. It is computed in float64, whatever
the dtype of the operation was.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from ...recording.recording import Call
from ..backward.stepping import Step
from ..graph.reading import Node
from .recorded_operation import Argument, CannotCheck, Operation, operation_of, tensors_in

MAX_ELEMENTS = 64
"""Elements of an argument that are checked; of a larger argument, this many drawn at random."""
MAX_ARGUMENTS = 8
STEP = 6e-6
"""h for an element of size 1: the cube root of float64's epsilon has the smallest error."""
TOLERANCES = {torch.float64: 1e-6, torch.float32: 2e-4, torch.float16: 5e-3, torch.bfloat16: 4e-2}
"""The largest error of a rule, relative to the gradient's size: the rounding of its dtype."""

Verdict = Literal["right", "wrong", "kink", "edge"]


@dataclass(frozen=True)
class CheckedElement:
    """The derivative by one element of an input: by the rule, and by the difference.

    At a `kink` the slopes on the two sides differ (relu at 0), and the rule gives a value between
    them. At an `edge` the rule gives inf or NaN (sqrt at 0, log of a negative number), which no
    difference can check.
    """

    input: int
    element: tuple[int, ...]
    analytic: float
    numeric: float
    tolerance: float
    verdict: Verdict

    @property
    def difference(self) -> float:
        return abs(self.analytic - self.numeric)


@dataclass(frozen=True)
class RuleCheck:
    """The checked elements of all of a node's inputs. `counts` has the number of elements of each
    checked input; `notes` say what was left out, and why."""

    op: str
    elements: tuple[CheckedElement, ...]
    counts: dict[int, int]
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return all(each.verdict != "wrong" for each in self.elements)


def check_rule(step: Step, call: Call | None, seed: int = 0) -> Iterator[RuleCheck | None]:
    """Compare one step of backward with differences of the call that made its node. Yields None
    after each element, and the RuleCheck at the end. Raises CannotCheck."""
    node = step.node
    operation = operation_of(node, call)
    assert call is not None
    try:
        with torch.no_grad():
            results = operation.run()
    except Exception as error:  # a Python Function may raise anything
        raise CannotCheck(f"{call.name} does not run in float64: {error}") from error
    weights = _weights(step, results, call)
    inputs = _matched(node, operation, step)
    generator = torch.Generator().manual_seed(seed)
    base = _loss(operation, weights)
    summed = sum(_finite(weight.abs()).sum().item() for weight in weights if weight is not None)
    checked: list[CheckedElement] = []
    counts: dict[int, int] = {}
    notes: list[str] = []
    for number, argument in inputs[:MAX_ARGUMENTS]:
        value, outgoing = argument.value, step.outgoing[number]
        assert value is not None
        if value.is_complex():
            notes.append(f"Input {number} is complex: only real ones are checked.")
            continue
        analytic = torch.zeros(value.shape) if outgoing is None else outgoing.detach().to_dense()
        counts[number] = value.numel()
        scale = _finite(analytic.double().abs()).mean().item() if value.numel() else 0.0
        dtype = node_dtype(node, analytic)
        relative = TOLERANCES.get(dtype, 1e-6)
        # The rounding of large terms that cancel, and that of the difference itself.
        absolute = 8 * torch.finfo(dtype).eps * summed + 1e-9 * (1 + abs(base))
        for flat in _sample(value.numel(), generator):
            element = tuple(int(i) for i in torch.unravel_index(torch.tensor(flat), value.shape))
            claimed = float(analytic[element])
            tolerance = relative * (abs(claimed) + scale) + absolute
            checked.append(
                _check_element(
                    operation, weights, argument, number, element, claimed, tolerance, base
                )
            )
            yield None
    if call.name == "aten::embedding" and any(each.verdict == "wrong" for each in checked):
        notes.append(
            "This is on purpose: padding_idx gets no gradient, and scale_grad_by_freq divides by"
            " the number of look-ups of a row. Neither is the derivative."
        )
    if len(inputs) > MAX_ARGUMENTS:
        notes.append(f"Only the first {MAX_ARGUMENTS} of {len(inputs)} inputs are checked.")
    yield RuleCheck(call.name, tuple(checked), counts, tuple(notes))


def node_dtype(node: Node, gradient: Tensor) -> torch.dtype:
    """The least precise dtype of the gradient and the node's outputs: it decides the rounding."""
    dtypes = [gradient.dtype, *(m.dtype for m in node.fn._input_metadata)]
    return max(dtypes, key=lambda dtype: TOLERANCES.get(dtype, 0.0))


def _weights(step: Step, results: Sequence[Tensor], call: Call) -> list[Tensor | None]:
    """The incoming gradients in float64. Raises CannotCheck if the operation gives other results
    than it gave in forward."""
    recorded = [t for t in tensors_in(call.result) if t.is_floating_point() or t.is_complex()]
    for again, then in zip(results, recorded, strict=False):
        if again.shape != then.shape or not _equal_but_rounding(again, then):
            raise CannotCheck(
                f"{call.name} gives another result when it is run again: it draws random numbers,"
                " or depends on something that has changed. The random state before it was not"
                " recorded.",
            )
    weights: list[Tensor | None] = []
    for number, result in enumerate(results[: len(step.incoming)]):
        gradient = step.incoming[number]
        if gradient is None:
            weights.append(None)
            continue
        if gradient.shape != result.shape:
            raise CannotCheck(f"{call.name} has other results than the node has outputs.")
        weights.append(gradient.detach().to(result.dtype))
    return weights


def _equal_but_rounding(again: Tensor, then: Tensor) -> bool:
    """Whether two results are equal but for the rounding of forward's dtype."""
    relative = max(TOLERANCES.get(then.dtype, 1e-6), 1e-5) * 10
    wide = then.to(again.dtype)
    size = float(wide.abs().nan_to_num(0.0, 0.0).max()) if wide.numel() else 0.0
    return torch.allclose(again, wide, rtol=relative, atol=relative * (1 + size), equal_nan=True)


def _matched(node: Node, operation: Operation, step: Step) -> list[tuple[int, Argument]]:
    """The argument of each of the node's inputs, with the input's number. Raises CannotCheck if
    they do not fit."""
    found: list[tuple[int, Argument]] = []
    for number, (fn, output) in enumerate(node.fn.next_functions):
        if fn is None:
            continue
        if number >= len(operation.arguments):
            raise CannotCheck("The node has more inputs than the operator has tensors.")
        argument = operation.arguments[number]
        shape = tuple(fn._input_metadata[output].shape)
        if argument.value is None or tuple(argument.value.shape) != shape:
            raise CannotCheck(f"It is unclear which argument input {number} belongs to.")
        found.append((number, argument))
    return found


def _check_element(
    operation: Operation,
    weights: Sequence[Tensor | None],
    argument: Argument,
    number: int,
    element: tuple[int, ...],
    claimed: float,
    tolerance: float,
    base: float,
) -> CheckedElement:
    value = argument.value
    assert value is not None
    at = float(value[element])

    def slopes(h: float) -> tuple[float, float]:
        """The slopes to the left and to the right."""
        losses = []
        for moved in (at - h, at + h):
            shifted = value.clone()
            shifted[element] = moved
            argument.value = shifted
            losses.append(_loss(operation, weights))
        argument.value = value
        return (base - losses[0]) / h, (losses[1] - base) / h

    h = STEP * max(1.0, abs(at))
    left, right = slopes(h)
    numeric = (left + right) / 2
    verdict: Verdict = "right" if abs(claimed - numeric) <= tolerance else "wrong"
    if not math.isfinite(claimed):
        return CheckedElement(number, element, claimed, numeric, tolerance, "edge")
    apart = abs(right - left)
    if apart > 1e-3 * (abs(right) + abs(left)) + tolerance:
        near_left, near_right = slopes(h / 16)  # for a bend, the slopes come closer
        low, high = min(left, right) - tolerance, max(left, right) + tolerance
        if abs(near_right - near_left) > apart / 2 and low <= claimed <= high:
            verdict = "kink"
    return CheckedElement(number, element, claimed, numeric, tolerance, verdict)


def _finite(t: Tensor) -> Tensor:
    return t.nan_to_num(0.0, 0.0, 0.0)


def _loss(operation: Operation, weights: Sequence[Tensor | None]) -> float:
    """Σ result · gradient, or its real part if the results are complex. NaN and infinity are left
    out: no step changes them."""
    total = 0.0
    with torch.no_grad():
        results = operation.run()
    for result, weight in zip(results, weights, strict=False):
        if weight is not None:
            product = result * weight.conj()
            real = product.real if product.is_complex() else product
            total += float(_finite(real).sum())
    return total


def _sample(count: int, generator: torch.Generator) -> list[int]:
    if count <= MAX_ELEMENTS:
        return list(range(count))
    return sorted(torch.randint(count, (MAX_ELEMENTS,), generator=generator).unique().tolist())
