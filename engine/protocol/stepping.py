"""Values of the backward debugger: where it stops, what was changed, what is on its way."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from .values import TensorSummary, Value

StopCondition = Literal[
    "always", "not_finite", "makes_not_finite", "norm_above", "norm_below", "shape"
]


class Breakpoint(Struct, frozen=True):
    """Where a run stops: at one node (`target` is its id), at each node of an op (`"addmm"`) or
    module (its dotted path; those inside count), or at any node; there, whenever `condition` holds.

    `always` stops before the node runs - for a module before the first of its nodes each time that
    backward enters it - so that the incoming gradient can be edited. `not_finite` (a NaN or inf),
    `norm_above` and `norm_below` (2-norm of any gradient against `threshold`) and `shape` look at
    the gradients that come in (then the run stops before the node) or, with `of="outgoing"`, at
    those that go out (after it). `makes_not_finite` stops after a node that was given only finite
    numbers and gave others: the one where NaN or inf arose, not those that passed it on.
    """

    on: Literal["any", "node", "op", "module"] = "any"
    target: str = ""
    condition: StopCondition = "always"
    of: Literal["incoming", "outgoing"] = "incoming"
    threshold: float = 0.0
    shape: tuple[int, ...] = ()
    enabled: bool = True


def breakpoint_words(breakpoint: Breakpoint) -> str:
    """A breakpoint in words: `before nodes of addmm`."""
    where = {
        "any": "any node",
        "node": f"node {breakpoint.target}",
        "op": f"nodes of {breakpoint.target}",
        "module": f"module {breakpoint.target}",
    }[breakpoint.on]
    way = "comes in" if breakpoint.of == "incoming" else "goes out"
    what = {
        "always": "",
        "not_finite": f" where NaN or inf {way}",
        "makes_not_finite": " that makes NaN or inf of finite numbers",
        "norm_above": f" where a norm above {breakpoint.threshold:g} {way}",
        "norm_below": f" where a norm below {breakpoint.threshold:g} {way}",
        "shape": f" where shape {breakpoint.shape} {way}",
    }[breakpoint.condition]
    return f"before {where}" if breakpoint.condition == "always" else f"{where}{what}"


class BreakpointState(Struct, frozen=True, array_like=True):
    """A breakpoint, and how often it has held since the pass began. `places` is the number of
    nodes of the pass that it looks at: 0 where none has that number, op or module; -1 while no
    pass has told."""

    breakpoint: Breakpoint
    hits: int
    places: int = -1


class GradientEdit(Struct, frozen=True):
    """`expression` (Python, of `g`) replaces the gradient that comes in for output `output` of
    `node`, as a pre-hook would. `names` are the console's variables that it uses."""

    node: int
    expression: str
    output: int = 0
    names: tuple[str, ...] = ()


class PendingGradient(Struct, frozen=True):
    """What has arrived at a node that has not run: `arrived` of `expected` contributions, summed
    so far in `gradients` (one per output; None while undefined)."""

    node: int
    arrived: int
    expected: int
    gradients: tuple[TensorSummary | None, ...]


class NextNode(Struct, frozen=True):
    """The node that the next step runs, and what it will be given: `incoming` as it arrived (the
    node's hooks have not seen it yet), `edited` what the edits make of it (empty without any).
    `problem` says why the edits cannot be applied. `hooks` tells of hooks on it, in words."""

    node: int
    incoming: tuple[Value | None, ...]
    edited: tuple[Value | None, ...] = ()
    problem: str = ""
    hooks: str = ""
