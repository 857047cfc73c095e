"""Values of a stepped backward pass: breakpoints, edits, and gradients that have arrived."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from .values import TensorSummary, Value

StopCondition = Literal[
    "always", "not_finite", "makes_not_finite", "norm_above", "norm_below", "shape"
]


class Breakpoint(Struct, frozen=True):
    """Where a run stops: at one node (`target` is its id), at each node of an op (`"addmm"`) or
    module (its dotted path; modules inside it count too), or at any node, whenever `condition`
    holds there.

    `always` stops before the node runs, so that the incoming gradient can be edited; for a module,
    before the first of its nodes each time that backward enters it. `not_finite` (a NaN or inf),
    `norm_above` and `norm_below` (the 2-norm of any gradient against `threshold`) and `shape` look
    at the incoming gradients, and stop before the node; with `of="outgoing"` they look at the
    outgoing gradients, and stop after it. `makes_not_finite` stops after a node that got finite
    gradients only and gave NaN or inf: the node where these arose, not one that passed them on.
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
    """A breakpoint, and how often its condition has held in this pass. `places` is the number of
    nodes of the pass that it looks at: 0 if no node has that id, op or module, -1 if there is no
    pass."""

    breakpoint: Breakpoint
    hits: int
    places: int = -1


class GradientEdit(Struct, frozen=True):
    """`expression` (Python, of `g`) replaces the gradient that comes in for output `output` of
    `node`, as a pre-hook would. `names` are the variables of the console that it uses."""

    node: int
    expression: str
    output: int = 0
    names: tuple[str, ...] = ()


class PendingGradient(Struct, frozen=True):
    """The gradient at a node that has not run: `arrived` of `expected` contributions have come, and
    `gradients` are their sums so far (one per output of the node; None if undefined)."""

    node: int
    arrived: int
    expected: int
    gradients: tuple[TensorSummary | None, ...]


class NextNode(Struct, frozen=True):
    """The node that runs next. `incoming` are the gradients it gets, before the node's hooks;
    `edited` are these after the edits (empty if there are none). `problem` says why the edits
    cannot be applied. `hooks` describes the hooks on it."""

    node: int
    incoming: tuple[Value | None, ...]
    edited: tuple[Value | None, ...] = ()
    problem: str = ""
    hooks: str = ""
