"""The answer that explains a line: each of its operations, predicted and compared with torch."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from .snapshots import Snapshot
from .values import FailedOperands


class LayoutSpec(Struct, frozen=True):
    """How a tensor lies in its storage: `stride` and `storage_offset` are in elements."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    storage_offset: int
    dtype: str
    device: str


class FactRow(Struct, frozen=True):
    """One fact about a step: what was predicted and what torch's result is, as texts."""

    name: str
    predicted: str
    actual: str
    agrees: bool


class ExplainedStep(Struct, frozen=True):
    """One operation of a line, with its prediction.

    `kind`: "view" (a new tensor on an operand's memory), "same" (the operand itself), "copy"
    (memory of its own), "in place" (the first operand, changed), "refused" (torch raises: `refusal`
    says why, `hint` what usually helps). `why` explains the kind in a sentence; `reasoning` is
    torch's rule with these numbers. `operands` and `shares_with` are parts of the line's text;
    `layouts` are the operands' layouts. `results` has the first of `result_count` results. `many`:
    torch returns a tuple. `facts` is empty until the step has run; then `actual` are torch's
    results, or `error` is its whole message. `failed` has the operands of a refused step.
    """

    code: str
    operation: str
    kind: Literal["view", "same", "copy", "in place", "refused"]
    why: str = ""
    reasoning: tuple[str, ...] = ()
    operands: tuple[str, ...] = ()
    layouts: tuple[LayoutSpec, ...] = ()
    results: tuple[LayoutSpec, ...] = ()
    result_count: int = 0
    many: bool = False
    shares_with: tuple[str, ...] = ()
    refusal: str = ""
    hint: str = ""
    facts: tuple[FactRow, ...] = ()
    actual: tuple[LayoutSpec, ...] = ()
    error: str = ""
    failed: FailedOperands | None = None


class ExplanationSnapshot(Snapshot, frozen=True, kw_only=True):
    """The operations of `source`, innermost first; after a refused one none follow.

    `problem` says why the line cannot be read or run, `note` that there is no rule for one of its
    operations, `hint` what to try. `ran`: the line was run, and the steps have facts.
    """

    source: str
    steps: tuple[ExplainedStep, ...] = ()
    problem: str = ""
    note: str = ""
    hint: str = ""
    ran: bool = False
