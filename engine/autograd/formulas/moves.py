"""Rules of operations that only move elements: gradients move back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .input_rules import fitted
from .node_values import NodeValues
from .numbers import Element, Numbers, Term, at, item, number_text, sum_over_gradients

Positions = Sequence[Tensor | None]


@dataclass(frozen=True)
class Moves:
    """Forward moved, dropped, repeated or filled in elements, and computed nothing. Backward adds
    each element of g to the input's element that forward moved there.

    `forward(given, positions)` runs the operation on tensors whose elements are numbered from 1
    through all inputs; 0 is an element that comes from no input. An input that gets no gradient is
    None: its shape is not known.
    """

    label: str
    text: str
    forward: Callable[[NodeValues, Positions], Tensor | Sequence[Tensor]]
    symbols: tuple[str, ...] = ()

    def _origins(self, given: NodeValues, number: int) -> tuple[tuple[Tensor, ...], Tensor]:
        """The element numbers that `forward` moved to each output, and those of input `number`."""
        count, positions = 1, []
        for i in range(len(given.node.fn.next_functions)):
            target = given.target(i)
            if target is None:
                positions.append(None)
                continue
            shape = tuple(target.shape)
            size = torch.Size(shape).numel()
            positions.append(torch.arange(count, count + size, dtype=torch.float64).reshape(shape))
            count += size
        found = self.forward(given, positions)
        return ((found,) if torch.is_tensor(found) else tuple(found)), positions[number]

    def compute(self, given: NodeValues, number: int) -> Tensor | None:
        origins, own = self._origins(given, number)
        target = given.target(number)
        size = own.numel()
        first = int(own.flatten()[0]) if size else 0
        gradients = given.gradients
        found = torch.zeros(size, dtype=gradients[0].dtype)
        for gradient, origin in zip(gradients, origins, strict=True):
            mine = (origin >= first) & (origin < first + size)
            places = origin[mine].long() - first
            found = found.index_add(0, places, gradient.expand(origin.shape)[mine].to(found.dtype))
        return fitted(found.reshape(tuple(target.shape)), target)

    def numbers(self, given: NodeValues, number: int, element: Element) -> Numbers | None:
        origins, own = self._origins(given, number)
        mine = own[element]
        gradients = [g.expand(o.shape) for g, o in zip(given.gradients, origins, strict=True)]

        def term(name: str, output: int, index: Element) -> Term:
            value = item(gradients[output][index])
            return Term(name, number_text(value), value)

        found = [(o == mine, g[o == mine]) for g, o in zip(gradients, origins, strict=True)]
        return sum_over_gradients(f"∂L/∂{at(self.label, element)}", found, term)
