"""The list of gradients of a pass: what each tensor has, or why it gets none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice

from torch import Tensor

from ...protocol import MissingReason, ParameterGradient, TensorSummary
from ...system.errors import sendable
from ...tensors.summary import summarise
from ..graph.missing import MissingGradients
from ..graph.reading import Graph
from .roots import Subject

MAX_GRADIENTS = 500
"""Tensors whose `.grad` is in a snapshot."""


class GradientList:
    """`tensors` are those that the pass gives gradients, `parameters`, then those of the subject
    that get none; of a pass for some `inputs`, these alone. `gradient_of` gives what a tensor of
    `parameters` has now."""

    def __init__(
        self,
        subject: Subject,
        graph: Graph,
        parameters: Mapping[str, Tensor],
        gradient_of: Callable[[str], Tensor | None],
        only: bool,
    ) -> None:
        self.tensors = {**parameters, **({} if only else subject.unreached)}
        self._parameters, self._gradient_of = parameters, gradient_of
        self._retained = subject.retained
        root = subject.root or "loss"
        self._missing = MissingGradients(graph, subject.provenance, subject.names, root)
        self._reasons: dict[str, MissingReason] = {
            name: self._missing.why(name, t).reason for name, t in subject.unreached.items()
        }
        self._summaries: dict[str, tuple[Tensor, int, TensorSummary]] = {}

    def rows(self, at_end: bool) -> tuple[ParameterGradient, ...]:
        """The first MAX_GRADIENTS rows. `at_end`: all gradients that this pass gives are there."""
        return tuple(
            ParameterGradient(
                name=sendable(name),
                shape=tuple(t.shape),
                gradient=self._summary(name),
                retained=name in self._retained,
                missing=self._reason(name, at_end),
            )
            for name, t in islice(self.tensors.items(), MAX_GRADIENTS)
        )

    @property
    def more(self) -> int:
        """How many tensors `rows` leaves out."""
        return max(0, len(self.tensors) - MAX_GRADIENTS)

    def missing_words(self, name: str, at_end: bool) -> str:
        """Why a tensor gets no gradient, and what to write instead; empty if it has one, or one
        can come."""
        reason = self._reason(name, at_end) if name in self.tensors else None
        if reason is None:
            return ""
        if reason == "not_yet":
            return f"The pass is at its end: a function on the path to `{name}` gave None."
        told = self._missing.why(name, self.tensors[name])
        return f"{told.text} {told.hint}"

    def _gradient(self, name: str) -> Tensor | None:
        return self._gradient_of(name) if name in self._parameters else self.tensors[name].grad

    def _reason(self, name: str, at_end: bool) -> MissingReason | None:
        if name in self._reasons:
            return self._reasons[name]
        return "not_yet" if at_end and self._gradient(name) is None else None

    def _summary(self, name: str) -> TensorSummary | None:
        """The summary of a gradient, cached until the gradient changes: every snapshot shows all
        gradients."""
        gradient = self._gradient(name)
        if gradient is None:
            return None
        known = self._summaries.get(name)
        if known is None or known[0] is not gradient or known[1] != gradient._version:
            known = self._summaries[name] = gradient, gradient._version, summarise(gradient)
        return known[2]
