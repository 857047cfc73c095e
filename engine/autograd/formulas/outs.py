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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Protocol

import torch
from torch import Tensor

from .expression import Expression, expression, pretty
from .given import Given, NotKept, Values
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


class Out(Protocol):
    """The rule for one input. `label` is the input's symbol, `text` the formula."""

    label: str

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


Align = Callable[[Given, Tensor], tuple[Tensor, tuple[int, ...]]]
"""Puts a saved tensor where it broadcasts against the input: the tensor, and which of its
dimensions are its own."""


@dataclass(frozen=True)
class Let:
    """A figure worked out before the formula, such as a sum along a dimension."""

    text: str
    value: Callable[[Any], Any]


@dataclass(frozen=True)
class _Symbol:
    value: Any
    own: tuple[int, ...] = ()
    conj: bool = False


@dataclass(frozen=True)
class Setting:
    """What the formulas of one node share: where their symbols come from."""

    names: Mapping[str, str] = field(default_factory=dict)
    lets: Mapping[str, Let] = field(default_factory=dict)
    align: Mapping[str, Align] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    holomorphic: bool = True
    """Whether for complex numbers the formula holds with its saved tensors conjugated."""


class _Lookup(Values):
    """Finds symbols as they are asked for, by name or as attributes."""

    def __init__(self, setting: Setting, given: Given) -> None:
        super().__init__()
        self.__dict__.update(given=given, _setting=setting, _found={})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self.symbol(name).value

    def symbol(self, name: str) -> _Symbol:
        if name not in self._found:
            self._found[name] = self._find(name)
        return self._found[name]

    def _find(self, name: str) -> _Symbol:
        let = self._setting.lets.get(name)
        if let is not None:
            value = let.value(self)
            if not torch.is_tensor(value):
                return _Symbol(value)
            return _Symbol(value, tuple(d for d, n in enumerate(value.shape) if n != 1))
        if name in self._setting.defaults and not self.given.has(name):
            torch_name = self.given.torch_name(name)
            return _Symbol(self.given.number(torch_name, self._setting.defaults[name]))
        value = self.given[name]
        if not torch.is_tensor(value):
            return _Symbol(value)
        if value.is_sparse:
            value = value.to_dense()
        align = self._setting.align.get(name)
        value, own = (
            (value, tuple(range(value.dim()))) if align is None else align(self.given, value)
        )
        conj = value.is_complex() and self._setting.holomorphic and not name.startswith("g")
        return _Symbol(value.conj() if conj else value, own, conj)


@dataclass(frozen=True)
class Pointwise:
    """One formula for all elements. Where forward broadcast the input, its gradients are summed."""

    label: str
    source: str
    setting: Setting

    @property
    def _expression(self) -> Expression:
        return expression(self.source)

    @property
    def text(self) -> str:
        return self._expression.text()

    @property
    def symbols(self) -> tuple[str, ...]:
        return self._expression.symbols

    def _values(self, given: Given) -> dict[str, _Symbol]:
        lookup = _Lookup(self.setting, given)
        return {name: lookup.symbol(name) for name in self._expression.symbols}

    def _aligned(self, given: Given, number: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The input's shape as it broadcasts against g, and which dimensions are its own."""
        shape = tuple(given.target(number).shape)
        align = self.setting.align.get(self.label)
        if align is None:
            return shape, tuple(range(len(shape)))
        stretched, own = align(given, torch.empty(()).expand(shape))
        return tuple(stretched.shape), own

    def compute(self, given: Given, number: int) -> Tensor | None:
        target = given.target(number)
        shape, _ = self._aligned(given, number)
        values = {name: s.value for name, s in self._values(given).items()}
        found = torch.as_tensor(self._expression.evaluate(values))
        full = torch.broadcast_shapes(found.shape, shape)
        summed = found.expand(full).sum_to_size(shape)
        return fitted(summed.reshape(tuple(target.shape)), target)

    def numbers(self, given: Given, number: int, element: Element) -> Numbers | None:
        target = given.target(number)
        shape, own = self._aligned(given, number)
        left = f"∂L/∂{at(self.label, element)}"
        place_of = dict(zip(own, element, strict=True))
        element = tuple(place_of.get(d, 0) for d in range(len(shape)))
        symbols = self._values(given)
        tensors = {name: s.value for name, s in symbols.items() if torch.is_tensor(s.value)}
        full = torch.broadcast_shapes(shape, *(t.shape for t in tensors.values()))
        lead = len(full) - len(shape)
        place: list[int | slice] = [
            slice(None)
            if d < lead or (shape[d - lead] == 1 and full[d] != 1)
            else element[d - lead]
            for d in range(len(full))
        ]
        values = {
            name: s.value.expand(full)[tuple(place)] if name in tensors else s.value
            for name, s in symbols.items()
        }
        found = torch.as_tensor(self._expression.evaluate(values))
        if not found.is_complex():
            found = found.double()
        summed = [d for d, p in enumerate(place) if isinstance(p, slice)]
        found = found.expand([full[d] for d in summed])
        terms = []
        for chosen in _first(product(*(range(full[d]) for d in summed))):
            index = [p if isinstance(p, int) else 0 for p in place]
            for d, i in zip(summed, chosen, strict=True):
                index[d] = i
            terms.append(self._term(symbols, tuple(index), len(terms), found.numel()))
        total = item(found.sum())
        if isinstance(total, complex) and not target.dtype.is_complex:
            total = total.real
        return write_sum(left, terms, found.numel(), total, None)

    def _term(self, symbols: Mapping[str, _Symbol], index: Element, place: int, count: int) -> Term:
        numbers: dict[str, Any] = {}
        names: dict[str, str] = {}
        for name, symbol in symbols.items():
            if not torch.is_tensor(symbol.value):
                numbers[name], names[name] = symbol.value, pretty(name)
                continue
            own_shape = symbol.value.shape
            here = index[len(index) - len(own_shape) :]
            here = tuple(i if n != 1 else 0 for i, n in zip(here, own_shape, strict=True))
            numbers[name] = item(symbol.value[here])
            shown = at(pretty(name), [here[d] for d in symbol.own])
            names[name] = f"conj({shown})" if symbol.conj else shown
        within = count > 1
        value = self._expression.evaluate(numbers)
        return Term(
            self._expression.text(lambda n: names[n], within_sum=within),
            self._expression.text(lambda n: _figure(numbers[n]), within_sum=within),
            item(value) if torch.is_tensor(value) else value,
        )


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
        flat = flat_of(element, given.shape(number))
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
                terms.append(weighted(at("g", index), g, factor))
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
        coefficients = torch.autograd.grad(rule(live)[element], live, allow_unused=True)
    terms: list[Term] = []
    count, total = 0, 0.0
    for output, (gradient, weights) in enumerate(zip(gradients, coefficients, strict=True)):
        if weights is None:
            continue
        found = weights.nonzero()
        count += len(found)
        total += (
            item((weights.double().conj() * gradient.double()).sum())
            if not (weights.is_complex())
            else item((weights.conj() * gradient).sum())
        )
        name = "g" if len(gradients) == 1 else f"g{output}"
        for index in found[: SHOWN_TERMS - len(terms)].tolist():
            weight = item(weights[tuple(index)].conj())
            terms.append(weighted(at(name, index), item(gradient[tuple(index)]), weight))
    return write_sum(f"∂L/∂{at(label, element)}", terms, count, total, None)


def weighted(name: str, gradient: complex, weight: complex) -> Term:
    """`g[0] · 0.25`; without the factor where it is 1."""
    value = gradient * weight
    if weight == 1:
        return Term(name, number_text(gradient), value)
    return Term(
        f"{name} · {factor_text(weight)}", f"{number_text(gradient)} · {factor_text(weight)}", value
    )


def fitted(found: Tensor, target: Any) -> Tensor:
    """As the engine passes a gradient on: summed to the input's shape, cast to its dtype (of a
    complex gradient for a real input the real part)."""
    if found.is_complex() and not target.dtype.is_complex:
        found = found.real
    if tuple(found.shape) != tuple(target.shape):
        found = found.sum_to_size(tuple(target.shape))
    return found.to(target.dtype)


def flat_of(element: Element, shape: Sequence[int]) -> int:
    flat = 0
    for i, n in zip(element, shape, strict=True):
        flat = flat * n + i
    return flat


def _first(chosen: Any) -> Any:
    for _, each in zip(range(SHOWN_TERMS), chosen, strict=False):
        yield each


def _figure(value: Any) -> str:
    return number_text(value)


__all__ = [
    "Align",
    "Computed",
    "Let",
    "Moves",
    "NotKept",
    "Out",
    "Pointwise",
    "Setting",
    "Told",
    "Transposed",
    "linear_numbers",
]
