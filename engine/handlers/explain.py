"""Answers about what a line will do: the prediction and, on request, what torch gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from ..lab import Lab
from ..operations.explain import Fact, Layout, NoRule, Refusal, Step, check, read
from ..operations.failures.explained_line import step_operands
from ..protocol import (
    ExplainCommand,
    ExplainedStep,
    ExplanationSnapshot,
    FactRow,
    FailedOperands,
    LayoutSpec,
    Snapshot,
)
from ..system.errors import LabError, sendable

MAX_LAYOUTS = 32
MAX_STEPS = 64
MAX_TEXT = 600
"""The longest text sent for one operation or result, in characters."""


def explain(lab: Lab, command: ExplainCommand) -> Iterator[Snapshot]:
    """Answer with an ExplanationSnapshot. The console stays as it was: operations that write run on
    copies, and no random numbers are drawn."""
    namespace = lab.console.namespace
    source = command.source
    with namespace.users_modes(), torch.DisableTorchFunctionSubclass():
        try:
            steps = read(source, namespace.variables)
        except NoRule as error:
            yield ExplanationSnapshot(source=source, note=_clip(str(error)), hint=error.hint)
            return
        except LabError as error:
            yield ExplanationSnapshot(source=source, problem=_clip(str(error)), hint=error.hint)
            return
        facts: list[Fact] = []
        problem = hint = ""
        if command.run:
            try:
                facts = check(steps)
            except LabError as error:
                problem, hint = str(error), error.hint
    explained = _explained_steps(steps, facts)
    if len(explained) > MAX_STEPS:
        problem = problem or f"Only the first {MAX_STEPS} of {len(explained)} operations are shown."
    yield ExplanationSnapshot(
        source=source, steps=explained[:MAX_STEPS], problem=problem, hint=hint, ran=bool(facts)
    )


def _explained_steps(steps: Sequence[Step], facts: Sequence[Fact]) -> tuple[ExplainedStep, ...]:
    names: dict[int, list[str]] = {}  # memory -> the operands and results that lie there
    explained = []
    for i, step in enumerate(steps):
        for term in step.operands:
            names.setdefault(term.layout.memory, []).append(term.text)
        explained.append(_explained(step, facts[i] if i < len(facts) else None, names))
    return tuple(explained)


def _explained(step: Step, fact: Fact | None, names: dict[int, list[str]]) -> ExplainedStep:
    outcome, refusal = step.outcome, step.refusal
    results = outcome.results if outcome is not None else ()
    told = outcome or refusal
    assert told is not None
    return ExplainedStep(
        code=_clip(step.source),
        operation=step.operation,
        kind="refused" if outcome is None else outcome.kind,
        why="" if outcome is None else outcome.why,
        reasoning=tuple(map(_clip, told.reasoning[:MAX_LAYOUTS])),
        operands=tuple(_clip(term.text) for term in step.operands[:MAX_LAYOUTS]),
        layouts=tuple(_spec(term.layout) for term in step.operands[:MAX_LAYOUTS]),
        results=tuple(map(_spec, results[:MAX_LAYOUTS])),
        result_count=len(results),
        many=outcome is not None and outcome.many,
        shares_with=tuple(map(_clip, _sharers(results, names)[:MAX_LAYOUTS])),
        refusal="" if refusal is None else _clip(_refusal_text(refusal)),
        hint="" if refusal is None else _clip(refusal.hint),
        facts=() if fact is None else _facts(step, fact, names),
        actual=() if fact is None else tuple(map(_spec, fact.results[:MAX_LAYOUTS])),
        error="" if fact is None or fact.error is None else _error_text(fact.error),
        failed=_failed(step, fact),
    )


def _failed(step: Step, fact: Fact | None) -> FailedOperands | None:
    """The operands of a step that the rule, or torch itself, refuses."""
    if fact is not None:
        return None if fact.error is None else step_operands(step, str(fact.error), ran=True)
    return None if step.refusal is None else step_operands(step, step.refusal.said, ran=False)


def _facts(step: Step, fact: Fact, names: dict[int, list[str]]) -> tuple[FactRow, ...]:
    outcome = step.outcome
    if outcome is None or fact.error is not None:
        said = "is refused" if outcome is None else "runs"
        if outcome is not None and outcome.unless:
            said = _clip(f"runs, unless {outcome.unless}")
        is_so = "runs" if fact.error is None else f"is refused: {_error_text(fact.error)}"
        return (FactRow("torch", said, is_so, "refusal" not in fact.differs),)
    predicted, actual = outcome.results, fact.results
    rows = [FactRow("kind", outcome.kind, str(fact.kind), "kind" not in fact.differs)]
    if outcome.many or len(predicted) != len(actual):
        agrees = "number of results" not in fact.differs
        rows.append(FactRow("results", str(len(predicted)), str(len(actual)), agrees))
    for name in ("shape", "stride", "offset", "dtype", "device"):
        rows.append(
            FactRow(
                name,
                _distinct_words(predicted, name),
                _distinct_words(actual, name),
                name not in fact.differs,
            )
        )
    rows.append(
        FactRow(
            "shares with",
            ", ".join(map(_clip, _sharers(predicted, names))) or "nothing",
            ", ".join(map(_clip, _sharers(actual, names))) or "nothing",
            "memory" not in fact.differs,
        )
    )
    return tuple(rows)


def _sharers(results: Sequence[Layout], names: dict[int, list[str]]) -> list[str]:
    """The texts of the line whose tensors share the memory of the results."""
    found: dict[str, None] = {}
    for layout in results[:MAX_LAYOUTS]:
        found.update(dict.fromkeys(names.get(layout.memory, ())))
    return list(found)


def _distinct_words(layouts: Sequence[Layout], field: str) -> str:
    texts = list(dict.fromkeys(_word(getattr(x, field)) for x in layouts[:MAX_LAYOUTS]))
    return _clip("; ".join(texts) + ("; ..." if len(layouts) > MAX_LAYOUTS else ""))


def _word(value: object) -> str:
    return str(value).removeprefix("torch.")


def _spec(layout: Layout) -> LayoutSpec:
    return LayoutSpec(
        layout.shape, layout.stride, layout.offset, _word(layout.dtype), layout.device
    )


def _refusal_text(refusal: Refusal) -> str:
    """The refusal, after the class of the error if that is predicted."""
    return f"{refusal.raises.__name__}: {refusal}" if refusal.raises else str(refusal)


def _error_text(error: BaseException) -> str:
    return _clip(f"{type(error).__name__}: {error}")


def _clip(text: str) -> str:
    return sendable(text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…")
