"""Rules that are linear maps of the incoming gradient, such as products and averages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .expression import pretty
from .input_rules import fitted
from .node_values import MissingValue, NodeValues
from .numbers import (
    SHOWN_TERMS,
    Element,
    Numbers,
    Term,
    at,
    factor_text,
    item,
    number_text,
    sum_over_gradients,
    write_sum,
)


@dataclass(frozen=True)
class Transposed:
    """Forward is linear in this input: `forward(given, z, other)`. `other` is the symbol of the
    tensor that the input is multiplied with, if any. Backward is the transposed map.

    The coefficients of an element are `forward` of a tensor that is 1 there and 0 elsewhere. In a
    product, `other` is then numbered 1, 2, ...: the results say which of its elements the
    coefficients are. `rule(given)` computes the gradient; without it, autograd transposes
    `forward`. `factor` is the symbol of a number that multiplies the gradient; `shown` are
    further symbols of the text.
    """

    label: str
    text: str
    forward: Callable[[NodeValues, Tensor, Any], Tensor]
    other: str = ""
    factor: str = ""
    rule: Callable[[NodeValues], Tensor] | None = None
    shown: tuple[str, ...] = ()

    @property
    def symbols(self) -> tuple[str, ...]:
        return ("g", *(name for name in (self.other, self.factor, *self.shown) if name))

    def compute(self, given: NodeValues, number: int) -> Tensor | None:
        target = given.target(number)
        if self.rule is not None:
            found = self.rule(given)
        else:
            other = given[self.other] if self.other else None
            with torch.enable_grad():
                z = torch.zeros(tuple(target.shape), dtype=target.dtype, requires_grad=True)
                (found,) = torch.autograd.grad(self.forward(given, z, other), z, given.gradient())
        if self.factor:
            found = found * given[self.factor]
        return fitted(found, target)

    def numbers(self, given: NodeValues, number: int, element: Element) -> Numbers | None:
        gradient = given.gradient()
        shape = given.shape(number)
        other: Tensor | None = given[self.other] if self.other else None
        one = torch.zeros(shape, dtype=torch.float64)
        one[element] = 1
        if other is None:
            places = self.forward(given, one, None)
        else:
            numbered = torch.arange(1, other.numel() + 1, dtype=torch.float64)
            places = self.forward(given, one, numbered.reshape(other.shape))
        found = places.broadcast_to(gradient.shape).nonzero()
        factors = places.broadcast_to(gradient.shape)[tuple(found.T)]
        at_gradient = gradient[tuple(found.T)]
        if other is not None:
            of_other = factors.round().long() - 1
            factors = other.reshape(-1)[of_other].conj()
        wide = torch.promote_types(torch.promote_types(gradient.dtype, factors.dtype), torch.double)
        products = at_gradient.to(wide) * factors.to(wide)
        terms = []
        nonzero_first = torch.argsort((products == 0).to(torch.uint8), stable=True)
        for i in nonzero_first[:SHOWN_TERMS].tolist():
            index = found[i].tolist()
            g, factor, value = item(at_gradient[i]), item(factors[i]), item(products[i])
            if other is not None:
                index_of_other = torch.unravel_index(of_other[i], other.shape)
                partner = at(pretty(self.other), [int(n) for n in index_of_other])
                if isinstance(factor, complex):
                    partner = f"conj({partner})"
                symbols = f"{at('g', index)} · {partner}"
                terms.append(Term(symbols, f"{number_text(g)} · {factor_text(factor)}", value))
            else:
                terms.append(_weighted(at("g", index), g, factor))
        factor = (pretty(self.factor), given[self.factor]) if self.factor else None
        left = f"∂L/∂{at(self.label, element)}"
        return write_sum(left, terms, len(found), item(products.sum()), factor)


@dataclass(frozen=True)
class Computed:
    """A linear function of g that `rule(given)` computes with differentiable functions of torch.
    The coefficients of an element are its derivative with respect to g."""

    label: str
    text: str
    rule: Callable[[NodeValues], Tensor]
    symbols: tuple[str, ...] = ("g",)

    def compute(self, given: NodeValues, number: int) -> Tensor | None:
        return fitted(self.rule(given), given.target(number))

    def numbers(self, given: NodeValues, number: int, element: Element) -> Numbers | None:
        return linear_numbers(
            lambda gradients: self.rule(given.with_gradients(gradients)),
            given.gradients,
            self.label,
            element,
        )


def linear_numbers(
    rule: Callable[[tuple[Tensor, ...]], Tensor],
    gradients: Sequence[Tensor],
    label: str,
    element: Element,
) -> Numbers:
    """The sum that gives one element of a linear function of the gradients. Its derivative gives
    the coefficients. Raises RuntimeError if it has none."""
    with torch.enable_grad():
        live = tuple(g.detach().requires_grad_() for g in gradients)
        one = rule(live)[element]
        if one.is_complex() or any(g.is_complex() for g in gradients):
            return _complex_numbers(one, live, label, element)
        coefficients = torch.autograd.grad(one, live, allow_unused=True)
    if item(one) != 0 and all(weights is None for weights in coefficients):
        raise MissingValue(
            "autograd cannot differentiate this rule (once_differentiable, or computed outside"
            " torch)"
        )
    weights = [
        torch.zeros_like(g) if w is None else w for g, w in zip(live, coefficients, strict=True)
    ]
    return sum_over_gradients(
        f"∂L/∂{at(label, element)}",
        [(w != 0, w.double() * g.double()) for w, g in zip(weights, gradients, strict=True)],
        lambda name, n, i: _weighted(name, item(gradients[n][i]), item(weights[n][i])),
    )


def _complex_numbers(one: Tensor, live: Sequence[Tensor], label: str, element: Element) -> Numbers:
    """A complex rule need not multiply the gradient (it may conjugate it, or take a part of it):
    each term is the whole share of one gradient element."""
    parts = (one.real, one.imag) if one.is_complex() else (one,)
    slopes = [torch.autograd.grad(p, live, retain_graph=True, allow_unused=True) for p in parts]
    shares: list[Tensor] = []
    for output, gradient in enumerate(live):
        found = [
            torch.zeros(gradient.shape)
            if slope[output] is None
            else (slope[output].conj() * gradient.detach()).real
            for slope in slopes
        ]
        shares.append(torch.complex(*found) if len(found) == 2 else found[0])

    def term(name: str, output: int, index: Element) -> Term:
        value = item(shares[output][index])
        return Term(f"share of {name}", number_text(value), value)

    return sum_over_gradients(
        f"∂L/∂{at(label, element)}", [(share != 0, share) for share in shares], term
    )


def _weighted(name: str, gradient: complex, weight: complex) -> Term:
    """`g[0] · 0.25`, or `g[0]` where the weight is 1."""
    value = gradient * weight
    if weight == 1:
        return Term(name, number_text(gradient), value)
    return Term(
        f"{name} · {factor_text(weight)}", f"{number_text(gradient)} · {factor_text(weight)}", value
    )
