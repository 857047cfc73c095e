"""The numbers on a graph's picture as texts: what forward computed, what backward brought."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from engine.protocol import NodeNumbers, TensorNumber
from widgets.text import format_number

_DIGITS = 4
MOST_CHARACTERS = 18


class Shown(NamedTuple):
    """A tensor in a line. `norm` is set where `text` is a norm: its size then has a mark in a
    colour."""

    text: str
    norm: float | None = None

    @property
    def is_bad(self) -> bool:
        """Whether it has NaN or infinity."""
        return "nan" in self.text or "inf" in self.text


def shown(number: TensorNumber | None) -> Shown | None:
    """All elements of a tiny tensor, `10` or `[22, 44]`, if they fit a node, else its norm."""
    if number is None:
        return None
    text = _elements(number)
    if not text or len(text) > MOST_CHARACTERS:
        return Shown(format_number(number.norm, 3), number.norm)
    return Shown(text)


def _elements(number: TensorNumber) -> str:
    texts = [format_number(element, _DIGITS) for element in number.elements]
    return _nested(texts, number.shape) if texts else ""


def _nested(texts: Sequence[str], shape: Sequence[int]) -> str:
    if not shape:
        return texts[0]
    each = len(texts) // shape[0]
    parts = [_nested(texts[i * each : (i + 1) * each], shape[1:]) for i in range(shape[0])]
    return f"[{', '.join(parts)}]"


def _joined(numbers: Sequence[TensorNumber | None]) -> Shown | None:
    """The tensors of a node with several outputs, if all of them are tiny."""
    found = [shown(number) for number in numbers]
    if len(found) == 1:
        return found[0]
    known = [each for each in found if each is not None]
    if not known or any(each.norm is not None for each in known):
        return None
    return Shown(" ; ".join("–" if each is None else each.text for each in found))


class GraphNumbers:
    """The numbers of nodes, by node id. All answers are None where nothing is known."""

    def __init__(self, numbers: Iterable[NodeNumbers] = ()) -> None:
        self._of: Mapping[int, NodeNumbers] = {each.node: each for each in numbers}

    def value(self, node: int) -> Shown | None:
        """The forward result of a node's operation, or a leaf's tensor."""
        found = self._of.get(node)
        return None if found is None else _joined(found.values)

    def incoming(self, node: int) -> Shown | None:
        """The gradient that a node is given, summed up."""
        found = self._of.get(node)
        return None if found is None else _joined(found.incoming)

    def outgoing(self, node: int, input_nr: int) -> Shown | None:
        """The gradient that a node gives to one of its inputs."""
        found = self._of.get(node)
        if found is None or input_nr >= len(found.outgoing):
            return None
        return shown(found.outgoing[input_nr])

    def grad(self, node: int) -> Shown | None:
        """A leaf's `.grad`."""
        found = self._of.get(node)
        return None if found is None else shown(found.grad)

    def lines(self, node: int) -> list[str]:
        """All numbers of a node in words, for its tooltip."""
        found = self._of.get(node)
        if found is None:
            return []
        named = (
            ("Forward gave", found.values),
            ("Gradient in", found.incoming),
            ("Gradient out", found.outgoing),
            (".grad", () if found.grad is None else (found.grad,)),
        )
        return [
            f"{name}: {', '.join(map(_in_words, numbers))}"
            for name, numbers in named
            if any(numbers)
        ]


def _in_words(number: TensorNumber | None) -> str:
    if number is None:
        return "none"
    return _elements(number) or f"norm {format_number(number.norm, 3)}"


LEAST_NORM, LARGEST_NORM = 1e-6, 1e2
"""The norms at the ends of the mark's colours."""


def strength(norm: float) -> float:
    """A norm's place on the logarithmic scale of the mark's colours, from 0 to 1."""
    low, high = math.log10(LEAST_NORM), math.log10(LARGEST_NORM)
    place = (math.log10(max(norm, LEAST_NORM)) - low) / (high - low)
    return min(max(place, 0.0), 1.0)
