"""Findings of advice: mistakes in the user's own code, without an error of torch's."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from .snapshots import Snapshot

FindingKind = Literal[
    "broadcast",
    "zero_grad",
    "softmax",
    "not_trained",
    "no_gradient",
    "mode",
    "kept_graph",
    "dead_units",
    "waiting",
]


class Finding(Struct, frozen=True):
    """`text` says in one sentence what looks wrong; `evidence` has the shapes and figures that show
    it; `fix` is Python. `file` and `line` (from 1) are where the code is; 0 where no line is at
    fault."""

    kind: FindingKind
    text: str
    evidence: tuple[str, ...]
    fix: str
    file: str = ""
    line: int = 0


class FindingSnapshot(Snapshot, frozen=True, kw_only=True):
    """A finding about the code of a cell or a file; with `run`, about that of a run of Train."""

    finding: Finding
    run: str = ""
