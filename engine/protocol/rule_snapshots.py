"""Snapshots of a node's backward rule: the formula with numbers, the check, the operators
inside."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from .snapshots import Snapshot
from .values import Value


class RuleInput(Struct, frozen=True):
    """An input of the forward operation that gets a gradient: its index in `next_functions`, its
    letter in the formula, the leaf or operation that the gradient goes to, and its shape."""

    number: int
    label: str
    target: str
    shape: tuple[int, ...]


class RuleSymbol(Struct, frozen=True):
    """A letter of a formula: a gradient, a saved tensor or a parameter (`saved` is torch's name of
    it), or a value computed from these. `shape` is None for a number, whose value is then `text`.
    `note` says why a saved tensor cannot be read, or that it was overwritten since."""

    name: str
    meaning: str
    saved: str = ""
    shape: tuple[int, ...] | None = None
    text: str = ""
    note: str = ""


class RuleNumbers(Struct, frozen=True):
    """How one element of the outgoing gradient is computed: `lines` are `∂L/∂a[0, 2] = g[0, 2] ·
    b[0, 2]`, `= 0.5 · 3` and `= 1.5`. `value` is their result, `engine` the value of torch's
    engine; `terms` is the number of terms in the sum."""

    lines: tuple[str, ...]
    value: float
    engine: float | None
    terms: int


class RuleSnapshot(Snapshot, frozen=True, kw_only=True):
    """The rule of a node for its input `input`.

    `general`: the rule is known only as a vector-Jacobian product. `numbers` are those of `element`
    of the outgoing gradient, and `outgoing` is that gradient; both are None before the node has
    run. `note` says why something is missing. `max_difference` is the largest one between the
    gradient by the formula and the engine's; None if it was not computed.
    """

    node: int
    name: str
    words: str
    general: bool
    inputs: tuple[RuleInput, ...]
    input: int
    formula: str
    symbols: tuple[RuleSymbol, ...]
    element: tuple[int, ...] | None = None
    numbers: RuleNumbers | None = None
    outgoing: Value | None = None
    max_difference: float | None = None
    note: str = ""


class CheckedRuleElement(Struct, frozen=True, array_like=True):
    """One element: the rule's gradient, the gradient by central differences, and the verdict. A
    `kink` has no derivative (relu at 0): the rule's value lies between the slopes of the two sides.
    At an `edge` (sqrt at 0) the rule gives inf or NaN."""

    label: str
    element: tuple[int, ...]
    analytic: float
    numeric: float
    difference: float
    tolerance: float
    verdict: Literal["right", "wrong", "kink", "edge"]


class RuleCheckSnapshot(Snapshot, frozen=True, kw_only=True):
    """A rule compared with finite differences of the recorded operator `op`, in float64. `counts`
    is the number of elements for each label; `elements` are those that were checked, the worst
    first. `refused` says why there is no check, `hint` what to do. `code` are the console's cells,
    in the order in which they ran: a trace of them records what is missing."""

    node: int
    op: str = ""
    elements: tuple[CheckedRuleElement, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    passed: bool = False
    refused: str = ""
    hint: str = ""
    code: str = ""


class RuleOpValue(Struct, frozen=True, array_like=True):
    """An argument or result of an operator. `name` is what is known of it (`g`, `saved mat2`, `%3`
    for the result of operator 3), or its value if it is not a tensor; `text` has its elements, if
    few."""

    name: str
    shape: tuple[int, ...] | None = None
    dtype: str = ""
    text: str = ""


class RuleOp(Struct, frozen=True, array_like=True):
    """One operator (`aten::mm`) that ran inside a rule, numbered from 1."""

    number: int
    name: str
    arguments: tuple[RuleOpValue, ...]
    results: tuple[RuleOpValue, ...]


class RuleLine(Struct, frozen=True, array_like=True):
    """A line of a Python Function's backward() that ran; `ops` are the numbers of the operators in
    it."""

    file: str
    line: int
    text: str
    ops: tuple[int, ...] = ()


class RuleOpsSnapshot(Snapshot, frozen=True, kw_only=True):
    """The operators that torch ran inside a rule, in order; `more` of them are left out. `note`
    says what else ran, or why there are none."""

    node: int
    ops: tuple[RuleOp, ...] = ()
    lines: tuple[RuleLine, ...] = ()
    more: int = 0
    note: str = ""
