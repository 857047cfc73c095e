"""What is said of the differences of two modules."""

from __future__ import annotations

import math

from engine.protocol import DifferenceSnapshot, OutputDifference, WeightDifference
from widgets.structure.words import raised_words
from widgets.text import format_number


def modules_words(told: DifferenceSnapshot) -> str:
    if not told.module_count:
        return "The modules are the same."
    return f"{_count(told.module_count, 'module')} {_verb(told.module_count)}."


def weights_words(told: DifferenceSnapshot) -> str:
    """How many differ, and which one most."""
    count, equal = told.weight_count, told.equal_weights
    if not count:
        return (
            f"All {equal:,} parameters and buffers are equal." if equal else "There is no weight."
        )
    numbers = [row for row in told.weights if row.difference is not None]
    parameters = [row for row in numbers if not row.after.endswith("buffer")]
    most = max(parameters or numbers, key=_size, default=None)
    at = "" if most is None else f"; {most.name} by up to {format_number(most.difference)}"
    rows = _count(count, "parameter or buffer", "parameters and buffers")
    return f"{rows} {_verb(count)}, {equal:,} {'is' if equal == 1 else 'are'} equal{at}."


def outputs_words(told: DifferenceSnapshot) -> str:
    """Which output differs first, or that all are equal, or why there are none."""
    if told.unrun is not None:
        return f"No outputs were compared. {raised_words(told.unrun)}"
    if told.first < 0:
        calls = _count(told.output_count, "call")
        return f"For the same input, no output differs, of {calls}."
    if told.first >= len(told.outputs):
        return f"For the same input, the outputs of the first {told.first:,} calls are equal."
    row = told.outputs[told.first]
    by = "" if row.difference is None else f", by up to {format_number(row.difference)}"
    before = f" {_count(told.first, 'output')} before it: equal." if told.first else ""
    return f"For the same input, the output of {output_name(row)} differs first{by}.{before}"


def is_equal(told: DifferenceSnapshot) -> bool:
    """Whether nothing differs, and outputs were compared."""
    differs = told.module_count or told.weight_count or told.unrun is not None
    return not differs and told.first < 0


def output_name(row: OutputDifference) -> str:
    """`head`, or `head (call 2)`; the module itself is `the whole`."""
    return (row.path or "the whole") + (f" (call {row.call})" if row.call > 1 else "")


def difference_text(row: WeightDifference | OutputDifference) -> str:
    """The largest difference; in words where one side is missing or of another kind."""
    if row.difference is not None:
        return "equal" if row.difference == 0.0 else format_number(row.difference)
    if not row.before:
        return "added"
    return "another" if row.after else "missing"


def _size(row: WeightDifference) -> float:
    assert row.difference is not None
    return math.inf if math.isnan(row.difference) else row.difference


def _verb(count: int) -> str:
    return "differs" if count == 1 else "differ"


def _count(count: int, noun: str, nouns: str = "") -> str:
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"
