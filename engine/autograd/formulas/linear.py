"""Rules that are linear maps of the incoming gradient: products, averages, and all others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .expression import pretty
from .given import Given, NotKept
from .numbers import (
    SHOWN_TERMS,
    Element,
    Numbers,
    Term,
    at,
    factor_text,
    item,
    number_text,
    unravel,
    write_sum,
)
from .outs import fitted


@dataclass(frozen=True)
class Transposed:
    """Forward is linear in this input: `forward(given, z, other)`, where `other` (a symbol) is
    what it is multiplied with, if anything. Backward is the transposed map.

    The coefficients of an element are what forward makes of a tensor with one 1; in a product,
    forward on numbered elements of `other` tells which of them those are. `rule(given)` computes
    the whole; without it, it is the transpose by autograd of `forward`. `factor` names a number
    before it; `shown` are further symbols of the text.
    """

    label: str
    text: str
    forward: Callable[[Given, Tensor, Any], Tensor]
    other: str = ""
    factor: str = ""
    rule: Callable[[Given], Tensor] | None = None
    shown: tuple[str, ...] = ()

    @property
    def symbols(self) -> tuple[str, ...]:
        return ("g", *(name for name in (self.other, self.factor, *self.shown) if name))

    def compute(self, given: Given, number: int) -> Tensor | None:
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

    def numbers(self, given: Given, number: int, element: Element) -> Numbers | None:
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
        told = torch.argsort((products == 0).to(torch.uint8), stable=True)[:SHOWN_TERMS].tolist()
        for i in told:  # those that are not zero say more
            index = found[i].tolist()
            g, factor, value = item(at_gradient[i]), item(factors[i]), item(products[i])
            if other is not None:
                partner = at(pretty(self.other), unravel(int(of_other[i]), other.shape))
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
    """A linear function of g that `rule(given)` computes as a whole, all in torch functions that
    have a derivative: an element's coefficients are its derivative with respect to g."""

    label: str
    text: str
    rule: Callable[[Given], Tensor]
    symbols: tuple[str, ...] = ("g",)

    def compute(self, given: Given, number: int) -> Tensor | None:
        return fitted(self.rule(given), given.target(number))

    def numbers(self, given: Given, number: int, element: Element) -> Numbers | None:
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
    """The sum for one element of a linear function of the gradients, by its derivative. Raises
    RuntimeError where that has none."""
    with torch.enable_grad():
        live = tuple(g.detach().requires_grad_() for g in gradients)
        one = rule(live)[element]
        if one.is_complex() or any(g.is_complex() for g in gradients):
            return _complex_numbers(one, live, label, element)
        coefficients = torch.autograd.grad(one, live, allow_unused=True)
    if item(one) != 0 and all(weights is None for weights in coefficients):
        raise NotKept(
            "the rule does not tell autograd how it uses the gradient (once_differentiable, or"
            " computed outside torch)"
        )
    terms: list[Term] = []
    count, total = 0, 0.0
    for output, (gradient, weights) in enumerate(zip(gradients, coefficients, strict=True)):
        if weights is None:
            continue
        found = weights.nonzero()
        count += len(found)
        total += item((weights.double() * gradient.double()).sum())
        for index in found[: SHOWN_TERMS - len(terms)].tolist():
            place = tuple(index)
            name = at(_name(output, gradients), index)
            terms.append(_weighted(name, item(gradient[place]), item(weights[place])))
    return write_sum(f"∂L/∂{at(label, element)}", terms, count, total, None)


def _complex_numbers(one: Tensor, live: Sequence[Tensor], label: str, element: Element) -> Numbers:
    """Of complex numbers a rule need not be a multiple (it may conjugate, or take a part): what
    each gradient contributes is told as a whole."""
    parts = (one.real, one.imag) if one.is_complex() else (one,)
    slopes = [torch.autograd.grad(p, live, retain_graph=True, allow_unused=True) for p in parts]
    terms: list[Term] = []
    count, total = 0, 0.0
    for output, gradient in enumerate(live):
        shares = [
            torch.zeros(gradient.shape)
            if slope[output] is None
            else (slope[output].conj() * gradient.detach()).real
            for slope in slopes
        ]
        share = torch.complex(*shares) if len(shares) == 2 else shares[0]
        found = share.nonzero()
        count += len(found)
        total += item(share.sum())
        for index in found[: SHOWN_TERMS - len(terms)].tolist():
            value = item(share[tuple(index)])
            name = at(_name(output, live), index)
            terms.append(Term(f"share of {name}", number_text(value), value))
    return write_sum(f"∂L/∂{at(label, element)}", terms, count, total, None)


def _name(output: int, gradients: Sequence[Tensor]) -> str:
    return "g" if len(gradients) == 1 else f"g{output}"


def _weighted(name: str, gradient: complex, weight: complex) -> Term:
    """`g[0] · 0.25`; without the factor where it is 1."""
    value = gradient * weight
    if weight == 1:
        return Term(name, number_text(gradient), value)
    return Term(
        f"{name} · {factor_text(weight)}", f"{number_text(gradient)} · {factor_text(weight)}", value
    )
