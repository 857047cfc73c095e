"""A rule with its numbers: the sum that gives one element of an outgoing gradient, as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

Element = tuple[int, ...]

SHOWN_TERMS = 3


@dataclass(frozen=True)
class Numbers:
    """The sum that gives one element of an outgoing gradient.

    `left` names the element (`∂L/∂a[0, 2]`), `symbols` is the sum with indices
    (`g[0, 2] · b[0, 2]`), `figures` the sum with numbers, `value` its value. The sum has `terms`
    terms; the first SHOWN_TERMS are written out.
    """

    left: str
    symbols: str
    figures: str
    value: complex
    terms: int

    @property
    def lines(self) -> tuple[str, ...]:
        """`∂L/∂a[0, 2] = g[0, 2] · b[0, 2]`, `= 0.5 · 3`, `= 1.5`."""
        result = number_text(self.value)
        figures = () if self.figures == result else (f"= {self.figures}",)
        return f"{self.left} = {self.symbols}", *figures, f"= {result}"


@dataclass(frozen=True)
class Term:
    """One term of the sum: with indices, and with numbers."""

    symbols: str
    figures: str
    value: complex


def write_sum(
    left: str, terms: Sequence[Term], count: int, total: complex, factor: tuple[str, complex] | None
) -> Numbers:
    """`terms` are the first of `count` terms whose sum is `total`. `factor` (name, number)
    multiplies the sum; `total` is without it."""
    if not count:
        return Numbers(left, "0 (no gradient reaches it)", "0", 0.0, 0)
    symbols = " + ".join(term.symbols for term in terms)
    figures = " + ".join(_bracketed(term.figures, i) for i, term in enumerate(terms))
    if count > len(terms):
        rest = total - sum(term.value for term in terms)
        symbols += f" + … ({count - len(terms):,} more)"
        figures += f" + … ({count - len(terms):,} more: {number_text(rest)})"
    if factor is not None:
        name, number = factor
        several = count > 1
        symbols = f"{name} · ({symbols})" if several else f"{name} · {symbols}"
        figures = (
            f"{number_text(number)} · ({figures})"
            if several
            else (f"{number_text(number)} · {figures}")
        )
        total = total * number
    return Numbers(left, symbols, figures, total, count)


def sum_over_gradients(
    left: str,
    parts: Sequence[tuple[torch.Tensor, torch.Tensor]],
    term: Callable[[str, int, Element], Term],
) -> Numbers:
    """The sum over all incoming gradients. `parts` has for each of them a mask of the elements that
    take part, and the values to add. `term` makes the term of one element, from its text
    (`g[0, 2]`), the gradient's number and the element's index."""
    terms: list[Term] = []
    count, total = 0, 0.0
    for output, (mask, values) in enumerate(parts):
        name = "g" if len(parts) == 1 else f"g{output}"
        found = mask.nonzero()
        count += len(found)
        total += item(values.sum())
        for index in found[: SHOWN_TERMS - len(terms)].tolist():
            terms.append(term(at(name, index), output, tuple(index)))
    return write_sum(left, terms, count, total, None)


def at(name: str, index: Sequence[int]) -> str:
    """`at("g", (0, 2))` -> `g[0, 2]`; a scalar has no index."""
    return f"{name}[{', '.join(str(i) for i in index)}]" if len(index) else name


def number_text(value: complex | bool) -> str:
    """Five significant digits, without trailing zeros."""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, complex):
        return f"({value.real:.5g}{value.imag:+.5g}j)"
    if isinstance(value, int):
        return str(value)
    text = f"{value:.5g}"
    return "0" if text == "-0" else text


def factor_text(value: complex) -> str:
    """A number as a factor: in brackets if it is negative."""
    text = number_text(value)
    return f"({text})" if text.startswith("-") else text


def item(t: torch.Tensor) -> complex:
    """The only element of a tensor as a plain number."""
    return t.item()


def _bracketed(text: str, place: int) -> str:
    return f"({text})" if place and text.startswith("-") else text
