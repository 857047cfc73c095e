"""Run a step for real and hold what torch gave against what was predicted."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch

from ...errors import LabError
from .layout import Layout
from .leaves import Leaves
from .reading import Step
from .registry import Kind

MAX_RESULT_BYTES = 1 << 30
MAX_WORK = 1 << 30
"""Larger results, and those of more multiplications, are not computed just to be compared."""


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
    with torch.set_grad_enabled(torch.is_grad_enabled() and in_place), _silently():
        for step in steps:
            facts.append(_fact(step))
            if facts[-1].error is not None:
                break
    return facts


@contextmanager
def _silently() -> Iterator[None]:
    """Torch's warnings are told in the prediction's words, and left for the line itself to give:
    those given once are given every time meanwhile, so that none is used up here."""
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.set_warn_always(always)


def _fact(step: Step) -> Fact:
    predicted = step.outcome
    if predicted is not None and predicted.kind == "copy":
        size_bytes = sum(x.numel * x.dtype.itemsize for x in predicted.results)
        if size_bytes > MAX_RESULT_BYTES:
            raise LabError(
                f"The result has {size_bytes:,} bytes: too large to compute only to compare it.",
                hint="Run the line in the console.",
            )
        if predicted.work > MAX_WORK:
            raise LabError(
                f"It takes {predicted.work:,} steps: too many to compute only to compare.",
                hint="Run the line in the console.",
            )
    operands = [term.compute() for term in step.operands]
    versions = [_version(t) for t in operands]
    try:
        given = step.compute()
    except LabError:
        raise
    except Exception as error:  # torch raises what it likes: it is the fact
        return Fact(None, (), error, () if _foreseen(error, step) else ("refusal",))
    if step.operation == "__setitem__":
        given = operands[0]
    tensors = tuple(given) if isinstance(given, tuple | list) else (given,)
    kind = _kind(tensors, operands, versions, step)
    results = _layouts(tensors, step)
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


def _foreseen(error: Exception, step: Step) -> bool:
    if step.outcome is not None:
        return bool(step.outcome.unless)
    return step.refusal is None or isinstance(error, step.refusal.raises or Exception)


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


def _layouts(tensors: tuple[torch.Tensor, ...], step: Step) -> tuple[Layout, ...]:
    """`memory` is that of the operand whose storage it is. For new memory it is the number that
    was predicted in its place, unless that stands for something else; then 0."""
    numbers = {t.compute().untyped_storage()._cdata: t.layout.memory for t in step.operands}
    predicted = step.outcome.results if step.outcome is not None else ()
    found = []
    for i, t in enumerate(tensors):
        storage = t.untyped_storage()._cdata
        if storage not in numbers:
            said = predicted[i].memory if i < len(predicted) else 0
            numbers[storage] = 0 if said in numbers.values() else said
        layout = replace(Leaves().layout(t, step.source), data=None, unwritable="")
        found.append(replace(layout, memory=numbers[storage]))
    return tuple(found)
