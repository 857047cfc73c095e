"""Run a step for real and hold what torch gave against what was predicted."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import LabError
from .layout import Layout
from .predict import observed
from .steps import Kind, Step

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
    """Run `steps` in order, up to the first that torch refuses. No variable changes: a line that
    writes works on copies. Raises LabError for results too large to compute for this."""
    facts = []
    for step in steps:
        facts.append(_fact(step))
        if facts[-1].error is not None:
            break
    return facts


def _fact(step: Step) -> Fact:
    predicted = step.outcome
    if predicted is not None and predicted.kind == "copy":
        _ask_affordable(sum(x.nbytes for x in predicted.results), predicted.work)
    ran = step.world().ran(step)
    if ran.error is not None:
        return Fact(None, (), ran.error, () if _foreseen(ran.error, step) else ("refusal",))
    said = predicted.results if predicted is not None else ()
    taken = {term.layout.memory for term in step.operands}

    def memory(i: int) -> int:
        """The number predicted for new memory, unless that stands for something else."""
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


def _ask_affordable(size_bytes: int, work: int) -> None:
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
