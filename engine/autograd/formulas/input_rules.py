"""The kinds of rules by which the gradient of an input is computed from the incoming gradients.

Every rule is linear in the incoming gradients:

- `Pointwise`: a formula for each element (`g · (1 - y²)`), summed where forward broadcast;
- `Moves`: the elements of g go back to where forward took them from; no number changes;
- `Transposed`: forward is a linear map (a product, a convolution, an average), and backward is its
  transpose;
- `Computed`: any other linear function of g, computed as a whole;
- `TextOnly`: a formula and words, with nothing to compute.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor

from .node_values import NodeValues
from .numbers import Element, Numbers


class InputRule(Protocol):
    """The rule for one input. `label` is the input's symbol, `text` the formula."""

    @property
    def label(self) -> str: ...

    @property
    def text(self) -> str: ...

    @property
    def symbols(self) -> tuple[str, ...]: ...

    def compute(self, given: NodeValues, number: int) -> Tensor | None:
        """The outgoing gradient of input `number`; None for TextOnly. Raises MissingValue when a
        saved tensor is gone."""
        ...

    def numbers(self, given: NodeValues, number: int, element: Element) -> Numbers | None:
        """The sum that gives one element of the outgoing gradient of input `number`; None for
        TextOnly. Raises MissingValue when a saved tensor is gone."""
        ...


@dataclass(frozen=True)
class TextOnly:
    """A rule in symbols and words. Its numbers come from a run of the node in the engine."""

    label: str
    text: str
    symbols: tuple[str, ...] = ("g",)

    def compute(self, given: NodeValues, number: int) -> Tensor | None:
        return None

    def numbers(self, given: NodeValues, number: int, element: Element) -> Numbers | None:
        return None


def fitted(found: Tensor, target: Any) -> Tensor:
    """`found` as the engine passes it on: summed to the input's shape and cast to its dtype. A real
    input gets the real part of a complex gradient."""
    if found.is_complex() and not target.dtype.is_complex:
        found = found.real
    if tuple(found.shape) != tuple(target.shape):
        found = found.sum_to_size(tuple(target.shape))
    return found.to(target.dtype)
