"""Rules of operations that only move elements: gradients move back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .given import Given
from .numbers import SHOWN_TERMS, Element, Numbers, Term, at, item, number_text, write_sum
from .outs import fitted

Positions = Sequence[Tensor | None]


@dataclass(frozen=True)
class Moves:
    """Forward only moved elements (or dropped, repeated, filled in), so backward moves the
    gradients: each goes to the input's element that stood at its place, and they add up there.

    `forward(given, positions)` does the operation once more, on tensors in which every element is
    its own number, counted from 1 through all inputs; 0 is what comes from no input. An input
    whose shape is not known (it needs no gradient) is None.
    """

    label: str
    text: str
    forward: Callable[[Given, Positions], Tensor | Sequence[Tensor]]
    symbols: tuple[str, ...] = ()

    def _origins(self, given: Given, number: int) -> tuple[tuple[Tensor, ...], int]:
        """For each output where its elements come from, and the number before the input's first."""
        count, start, positions = 1, 0, []
        for i in range(len(given.node.fn.next_functions)):
            target = given.target(i)
            if target is None:
                positions.append(None)
                continue
            shape = tuple(target.shape)
            size = torch.Size(shape).numel()
            if i == number:
                start = count - 1
            positions.append(torch.arange(count, count + size, dtype=torch.float64).reshape(shape))
            count += size
        found = self.forward(given, positions)
        return ((found,) if torch.is_tensor(found) else tuple(found)), start

    def compute(self, given: Given, number: int) -> Tensor | None:
        origins, start = self._origins(given, number)
        target = given.target(number)
        size = torch.Size(target.shape).numel()
        gradients = given.gradients
        found = torch.zeros(size, dtype=gradients[0].dtype)
        for gradient, origin in zip(gradients, origins, strict=True):
            mine = (origin > start) & (origin <= start + size)
            places = origin[mine].long() - start - 1
            found = found.index_add(0, places, gradient.expand(origin.shape)[mine].to(found.dtype))
        return fitted(found.reshape(tuple(target.shape)), target)

    def numbers(self, given: Given, number: int, element: Element) -> Numbers | None:
        origins, start = self._origins(given, number)
        flat = _flat(element, given.shape(number))
        terms: list[Term] = []
        count, total = 0, 0.0
        for output, (gradient, origin) in enumerate(zip(given.gradients, origins, strict=True)):
            gradient = gradient.expand(origin.shape)
            here = origin == start + 1 + flat
            count += int(here.sum())
            total += item(gradient[here].sum())
            name = "g" if len(origins) == 1 else f"g{output}"
            for index in here.nonzero()[: SHOWN_TERMS - len(terms)].tolist():
                value = item(gradient[tuple(index)])
                terms.append(Term(at(name, index), number_text(value), value))
        return write_sum(f"∂L/∂{at(self.label, element)}", terms, count, total, None)


def _flat(element: Element, shape: Sequence[int]) -> int:
    flat = 0
    for i, n in zip(element, shape, strict=True):
        flat = flat * n + i
    return flat
