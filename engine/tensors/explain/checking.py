"""Run a step for real and hold what torch gave against what was predicted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch

from ...errors import LabError
from .layout import Layout
from .leaves import Leaves
from .reading import Step
from .registry import Kind

MAX_RESULT_BYTES = 1 << 30
"""Larger results are not computed just to be compared."""


@dataclass(frozen=True)
class Fact:
    """What torch gave: `results` with the memory numbers of the prediction, or `error`.
    `differs` names what was predicted otherwise; empty: prediction and fact agree."""

    kind: Kind | None
    results: tuple[Layout, ...]
    error: Exception | None
    differs: tuple[str, ...]


def check(steps: list[Step]) -> list[Fact]:
    """Run `steps` in order, up to the first that torch refuses. No variable changes: operations
    in place work on copies. Raises LabError for results too large to compute for this."""
    in_place = any(step.outcome is None or step.outcome.kind == "in place" for step in steps)
    facts = []
    # Copies may have a graph, so that autograd's refusals show; what is real must get none.
    with torch.set_grad_enabled(torch.is_grad_enabled() and in_place):
        for step in steps:
            facts.append(_fact(step))
            if facts[-1].error is not None:
                break
    return facts


def _fact(step: Step) -> Fact:
    predicted = step.outcome
    if predicted is not None and predicted.kind == "copy":
        size_bytes = sum(x.numel * x.dtype.itemsize for x in predicted.results)
        if size_bytes > MAX_RESULT_BYTES:
            raise LabError(
                f"The result has {size_bytes:,} bytes: too large to compute only to compare it.",
                hint="Run the line in the console.",
            )
    operands = [term.compute() for term in step.operands]
    versions = [_version(t) for t in operands]
    try:
        given = step.compute()
    except LabError:
        raise
    except Exception as error:  # torch raises what it likes: it is the fact
        differs = ("refusal",) if predicted is not None else ()
        return Fact(None, (), error, differs)
    if step.operation == "__setitem__":
        given = operands[0]
    tensors = tuple(given) if isinstance(given, tuple | list) else (given,)
    kind = _kind(tensors, operands, versions, step)
    results = tuple(_layout(t, step) for t in tensors)
    if predicted is None:
        return Fact(kind, results, None, ("refusal",))
    differs = [] if kind == predicted.kind else ["kind"]
    if len(results) != len(predicted.results):
        differs.append("number of results")
    for field in ("shape", "stride", "offset", "dtype", "device", "memory"):
        pairs = zip(results, predicted.results, strict=False)
        if any(getattr(fact, field) != getattr(said, field) for fact, said in pairs):
            differs.append(field)
    return Fact(kind, results, None, tuple(differs))


def _kind(
    results: tuple[Any, ...], operands: list[torch.Tensor], versions: list[int], step: Step
) -> Kind:
    if not results:
        return "view"  # none of the pieces that unbind gives of nothing
    first = results[0]
    if operands and first is operands[0]:
        renamed = step.operation.endswith("_") and not step.operation.endswith("__")
        written = _version(operands[0]) != versions[0]
        return "in place" if renamed or written or step.operation == "__setitem__" else "same"
    if any(first is operand for operand in operands):
        return "same"
    own = {operand.untyped_storage()._cdata for operand in operands}
    if first.untyped_storage()._cdata in own:
        return "view"
    return "copy"


def _version(t: torch.Tensor) -> int:
    return 0 if t.is_inference() else t._version


def _layout(t: torch.Tensor, step: Step) -> Layout:
    """`memory` is that of the operand whose storage it is; for new memory the predicted number,
    if new memory was predicted, else 0."""
    layout = replace(Leaves().layout(t, step.source), data=None, unwritable="")
    storage = t.untyped_storage()._cdata
    for term in step.operands:
        if term.compute().untyped_storage()._cdata == storage:
            return replace(layout, memory=term.layout.memory)
    known = {term.layout.memory for term in step.operands}
    predicted = step.outcome.results if step.outcome is not None else ()
    fresh = next((x.memory for x in predicted if x.memory not in known), 0)
    return replace(layout, memory=fresh)
