"""The breakpoints at which a stepped backward pass stops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import torch

from ...protocol import Breakpoint, BreakpointState
from ...tensors.readable import readable
from ..graph.engine_run import Gradients
from ..graph.reading import Node
from .stepping import Step, SteppedPass


class Breakpoints:
    """A list of breakpoints with their hit counts.

    Whether a breakpoint holds depends only on where the pass stands, so it is the same whether the
    pass went forward or back. `modules` maps node ids to dotted module paths ("" or missing for a
    node outside of all modules).
    """

    def __init__(self, breakpoints: Iterable[Breakpoint] = ()) -> None:
        self.modules: Mapping[int, str] = {}
        self._all: list[Breakpoint] = list(breakpoints)
        self._hits = [0] * len(self._all)
        self._places: dict[tuple[str, str], int] = {}

    def replace(self, breakpoints: Iterable[Breakpoint]) -> None:
        """Replace the list. Breakpoints that were in it, enabled or not, keep their counts."""
        known = {_identity(b): hits for b, hits in zip(self._all, self._hits, strict=True)}
        self._all = list(breakpoints)
        self._hits = [known.get(_identity(b), 0) for b in self._all]

    def begin(self, modules: Mapping[int, str]) -> None:
        """Set all counts to 0, for a new pass."""
        self.modules = modules
        self._hits = [0] * len(self._all)
        self._places.clear()

    @property
    def states(self) -> tuple[BreakpointState, ...]:
        return tuple(map(BreakpointState, self._all, self._hits))

    def states_in(self, plan: Sequence[Node]) -> tuple[BreakpointState, ...]:
        """As `states`, with the number of nodes in the plan that each breakpoint is on."""
        for breakpoint in self._all:
            where = breakpoint.on, breakpoint.target
            if where not in self._places:
                self._places[where] = sum(self.is_at(breakpoint, node) for node in plan)
        places = (self._places[b.on, b.target] for b in self._all)
        return tuple(map(BreakpointState, self._all, self._hits, places))

    def reach(self, stepped: SteppedPass) -> str:
        """Count the breakpoints that hold where the pass stands. Returns why it should stop, "" if
        none holds."""
        reasons = [self._reason(b, stepped) for b in self._all]
        self._hits = [hits + bool(r) for hits, r in zip(self._hits, reasons, strict=True)]
        return " ".join(filter(None, reasons))

    def reason(self, stepped: SteppedPass) -> str:
        """As `reach`, without counting the hits."""
        return " ".join(filter(None, (self._reason(b, stepped) for b in self._all)))

    def _reason(self, breakpoint: Breakpoint, stepped: SteppedPass) -> str:
        if not breakpoint.enabled:
            return ""
        last, after = stepped.last, stepped.next_node
        at_last = last is not None and self.is_at(breakpoint, last.node)
        always = breakpoint.condition == "always"
        if breakpoint.condition == "makes_not_finite" or (
            breakpoint.of == "outgoing" and not always
        ):
            found = _found(breakpoint, last) if last is not None and at_last else ""
            return (
                f"Paused after {self._words(last.node)}: {found}."
                if last is not None and found
                else ""
            )
        if after is None or not self.is_at(breakpoint, after):
            return ""
        if always and breakpoint.on == "module":
            return "" if at_last else f"Paused before the first node of {breakpoint.target}."
        if always:
            return f"Paused before {self._words(after)}."
        found = _check(breakpoint, stepped.pending(after), "coming in")
        return f"Paused before {self._words(after)}: {found}." if found else ""

    def _words(self, node: Node) -> str:
        if node.label:
            return f"{node.name} of {node.label}"
        module = self.modules.get(node.id)
        return f"{node.name} in {module}" if module else node.name

    def is_at(self, breakpoint: Breakpoint, node: Node) -> bool:
        """Whether a breakpoint is on this node, whatever its condition."""
        match breakpoint.on:
            case "node":
                return str(node.id) == breakpoint.target
            case "op":
                return breakpoint.target in (node.op, node.name)
            case "module":
                return is_inside(self.modules.get(node.id, ""), breakpoint.target)
        return True


def is_inside(path: str, module: str) -> bool:
    """Whether a dotted module path is `module` or one inside it."""
    return path == module or path.startswith(f"{module}.")


def _identity(breakpoint: Breakpoint) -> tuple[object, ...]:
    b = breakpoint
    return b.on, b.target, b.condition, b.of, b.threshold, b.shape


def _found(breakpoint: Breakpoint, step: Step) -> str:
    if breakpoint.condition != "makes_not_finite":
        return _check(breakpoint, step.outgoing, "going out")
    if _not_finite(step.incoming):
        return ""
    bad = _not_finite(step.outgoing)
    return f"it was given finite numbers and made {bad}" if bad else ""


def _check(breakpoint: Breakpoint, gradients: Gradients, way: str) -> str:
    """The finding of the condition in the gradients, in words; "" if it does not hold."""
    match breakpoint.condition:
        case "not_finite":
            bad = _not_finite(gradients)
            return f"{bad} {way}" if bad else ""
        case "shape":
            for gradient in gradients:
                if gradient is not None and readable(gradient).shape == breakpoint.shape:
                    return f"shape {breakpoint.shape} {way}"
            return ""
    for gradient in gradients:
        size = None if gradient is None else norm(gradient)
        if size is None:
            continue
        above = breakpoint.condition == "norm_above"
        if size > breakpoint.threshold if above else size < breakpoint.threshold:
            relation = "above" if above else "below"
            return f"norm {size:.4g} {way}, {relation} {breakpoint.threshold:g}"
    return ""


def norm(gradient: torch.Tensor) -> float | None:
    """The 2-norm in double precision; None where the data cannot be read."""
    dense = readable(gradient).dense
    if dense is None:
        return None
    wide = torch.complex128 if dense.is_complex() else torch.float64
    return torch.linalg.vector_norm(dense.to(wide)).item()


def _not_finite(gradients: Sequence[torch.Tensor | None]) -> str:
    """The numbers of NaN and inf in words, "" if there are none."""
    nans = infs = 0
    for gradient in gradients:
        dense = None if gradient is None else readable(gradient).dense
        if dense is None or dense.isfinite().all():
            continue
        nans += int(dense.isnan().sum())
        infs += int(dense.isinf().sum())
    parts = ((nans, "NaN"), (infs, "inf"))
    return " and ".join(f"{n:,} {what}" for n, what in parts if n)
