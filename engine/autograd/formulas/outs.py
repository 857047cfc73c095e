"""The kinds of rules: how an outgoing gradient comes from the incoming ones.

Every rule of backward is linear in the incoming gradients, and most are one of these:

- `Pointwise`: a formula for each element (`g · (1 - y²)`), summed where forward broadcast;
- `Moves`: no number changes, each gradient goes back to where its element came from;
- `Transposed`: forward is a linear map (a product, a convolution, an average), backward its
  transpose;
- `Computed`: some other linear function of g, computed as a whole;
- `Told`: known in words and symbols only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor

from .given import Given
from .numbers import Element, Numbers


class Out(Protocol):
    """The rule for one input. `label` is the input's symbol, `text` the formula."""

    @property
    def label(self) -> str: ...

    @property
    def text(self) -> str: ...

    @property
    def symbols(self) -> tuple[str, ...]: ...

    def compute(self, given: Given, number: int) -> Tensor | None:
        """The outgoing gradient of input `number`; None where only words are known. Raises
        NotKept when a saved tensor that it takes is gone."""
        ...

    def numbers(self, given: Given, number: int, element: Element) -> Numbers | None:
        """How its element `element` comes about. Raises NotKept likewise."""
        ...


@dataclass(frozen=True)
class Told:
    """A rule in symbols and words; its numbers come from the engine's own derivative."""

    label: str
    text: str
    symbols: tuple[str, ...] = ("g",)

    def compute(self, given: Given, number: int) -> Tensor | None:
        return None

    def numbers(self, given: Given, number: int, element: Element) -> Numbers | None:
        return None


def fitted(found: Tensor, target: Any) -> Tensor:
    """As the engine passes a gradient on: summed to the input's shape, cast to its dtype (of a
    complex gradient for a real input the real part)."""
    if found.is_complex() and not target.dtype.is_complex:
        found = found.real
    if tuple(found.shape) != tuple(target.shape):
        found = found.sum_to_size(tuple(target.shape))
    return found.to(target.dtype)
