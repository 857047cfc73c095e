"""Steps run for real, and their results compared with the predictions."""

from __future__ import annotations

from dataclasses import dataclass

from ...system.errors import LabError
from .layout import Layout
from .predict import observed
from .steps import Kind, Step

MAX_RESULT_BYTES = 1 << 30
MAX_WORK = 1 << 30
"""Larger results, and those of more multiplications, are not computed for a comparison."""


@dataclass(frozen=True)
class Fact:
    """The outcome of a step: `results`, numbered by memory as in the prediction, or `error`.
    `differs` names what was predicted wrong."""

    kind: Kind | None
    results: tuple[Layout, ...]
    error: Exception | None
    differs: tuple[str, ...]


def check(steps: list[Step]) -> list[Fact]:
    """Run `steps` in order, up to the first that torch refuses. No variable changes: a line that
    writes runs on copies. Raises LabError for results that are too large to compute."""
    facts = []
    for step in steps:
        facts.append(_fact(step))
        if facts[-1].error is not None:
            break
    return facts


def _fact(step: Step) -> Fact:
    predicted = step.outcome
    if predicted is not None and predicted.kind == "copy":
        _check_affordable(sum(x.nbytes for x in predicted.results), predicted.work)
    ran = step.runner().ran(step)
    if ran.error is not None:
        return Fact(None, (), ran.error, () if _foreseen(ran.error, step) else ("refusal",))
    said = predicted.results if predicted is not None else ()
    taken = {term.layout.memory for term in step.operands}

    def memory(i: int) -> int:
        """The predicted number of result `i`, or 0 if other memory has this number."""
        number = said[i].memory if i < len(said) else 0
        number = 0 if number in taken else number
        taken.add(number)
        return number

    fact = observed(ran, step, memory)
    if predicted is None:
        return Fact(fact.kind, fact.results, None, ("refusal",))
    differs = [] if fact.kind == predicted.kind else ["kind"]
    if len(fact.results) != len(said):
        differs.append("number of results")
    for field in ("shape", "stride", "offset", "dtype", "device", "memory"):
        pairs = zip(fact.results, said, strict=False)
        if any(getattr(is_so, field) != getattr(was_said, field) for is_so, was_said in pairs):
            differs.append(field)
    return Fact(fact.kind, fact.results, None, tuple(differs))


def _check_affordable(size_bytes: int, work: int) -> None:
    if size_bytes > MAX_RESULT_BYTES:
        raise LabError(
            f"The result has {size_bytes:,} bytes: too large to compute only to compare it.",
            hint="Run the line in the console.",
        )
    if work > MAX_WORK:
        raise LabError(
            f"It takes {work:,} steps: too many to compute only to compare.",
            hint="Run the line in the console.",
        )


def _foreseen(error: Exception, step: Step) -> bool:
    if step.outcome is not None:
        return bool(step.outcome.unless)
    return step.refusal is None or isinstance(error, step.refusal.raises or Exception)
