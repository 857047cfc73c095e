"""Rules with one formula for all elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Any

import torch
from torch import Tensor

from .expression import Expression, expression, pretty
from .input_rules import fitted
from .node_values import NodeValues
from .numbers import SHOWN_TERMS, Element, Numbers, Term, at, item, number_text, write_sum

Align = Callable[[NodeValues, Tensor], tuple[Tensor, tuple[int, ...]]]
"""Shapes a saved tensor so that it broadcasts against the input. Returns it, and which of the
dimensions it had before."""


@dataclass(frozen=True)
class Let:
    """A value that is computed before the formula, such as a sum along a dimension. `text` says
    what it is."""

    text: str
    value: Callable[[Any], Any]


@dataclass(frozen=True)
class _SymbolValue:
    """A symbol's value, its dimensions that are not added by an Align, and whether it is
    conjugated."""

    value: Any
    own: tuple[int, ...] = ()
    conj: bool = False


@dataclass(frozen=True)
class Setting:
    """Where the symbols of a node's formulas come from: torch's names of saved values, Lets,
    Aligns, and defaults for what was not saved."""

    names: Mapping[str, str] = field(default_factory=dict)
    lets: Mapping[str, Let] = field(default_factory=dict)
    align: Mapping[str, Align] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    holomorphic: bool = True
    """Whether the formula holds for complex numbers with its saved tensors conjugated."""


class _Symbols:
    """The values of symbols, found when asked for: by name, or in a Let as `v.g * v.y`."""

    def __init__(self, setting: Setting, given: NodeValues) -> None:
        self.given, self._setting = given, setting
        self._found: dict[str, _SymbolValue] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self.symbol(name).value

    def symbol(self, name: str) -> _SymbolValue:
        if name not in self._found:
            self._found[name] = self._find(name)
        return self._found[name]

    def _find(self, name: str) -> _SymbolValue:
        let = self._setting.lets.get(name)
        if let is not None:
            value = let.value(self)
            if not torch.is_tensor(value):
                return _SymbolValue(value)
            return _SymbolValue(value, tuple(d for d, n in enumerate(value.shape) if n != 1))
        if name in self._setting.defaults and not self.given.has(name):
            torch_name = self.given.torch_name(name)
            return _SymbolValue(self.given.number(torch_name, self._setting.defaults[name]))
        value = self.given[name]
        if not torch.is_tensor(value):
            return _SymbolValue(value)
        if value.is_sparse:
            value = value.to_dense()
        align = self._setting.align.get(name)
        value, own = (
            (value, tuple(range(value.dim()))) if align is None else align(self.given, value)
        )
        conj = value.is_complex() and self._setting.holomorphic and not name.startswith("g")
        return _SymbolValue(value.conj() if conj else value, own, conj)


@dataclass(frozen=True)
class Pointwise:
    """One formula for all elements, summed over the dimensions in which forward broadcast."""

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
    def text_in_sum(self) -> str:
        """The text as a term of a sum, in brackets if it has terms of its own."""
        text = self._expression.text(within_sum=True)
        own = any(sign in text for sign in (" + ", " - "))
        return f"({text})" if own and not text.startswith("(") else text

    @property
    def symbols(self) -> tuple[str, ...]:
        return self._expression.symbols

    def summed(self, given: NodeValues, number: int) -> tuple[int, ...]:
        """The dimensions of g over which the formula is summed: those that forward stretched.
        Raises MissingValue when a saved tensor is gone."""
        shape, _ = self._aligned(given, number)
        values = (symbol.value for symbol in self._values(given).values())
        full = torch.broadcast_shapes(shape, *(v.shape for v in values if torch.is_tensor(v)))
        lead = len(full) - len(shape)
        stretched = (d for d in range(lead, len(full)) if shape[d - lead] == 1 and full[d] != 1)
        return (*range(lead), *stretched)

    def _values(self, given: NodeValues) -> dict[str, _SymbolValue]:
        values = _Symbols(self.setting, given)
        return {name: values.symbol(name) for name in self.symbols}

    def _aligned(self, given: NodeValues, number: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The input's shape as it broadcasts against g, and which dimensions the input has."""
        shape = tuple(given.target(number).shape)
        align = self.setting.align.get(self.label)
        if align is None:
            return shape, tuple(range(len(shape)))
        stretched, own = align(given, torch.empty(()).expand(shape))
        return tuple(stretched.shape), own

    def compute(self, given: NodeValues, number: int) -> Tensor | None:
        target = given.target(number)
        shape, _ = self._aligned(given, number)
        values = {name: s.value for name, s in self._values(given).items()}
        found = torch.as_tensor(self._expression.evaluate(values))
        full = torch.broadcast_shapes(found.shape, shape)
        summed = found.expand(full).sum_to_size(shape)
        return fitted(summed.reshape(tuple(target.shape)), target)

    def numbers(self, given: NodeValues, number: int, element: Element) -> Numbers | None:
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
        for chosen in islice(product(*(range(full[d]) for d in summed)), SHOWN_TERMS):
            index = [p if isinstance(p, int) else 0 for p in place]
            for d, i in zip(summed, chosen, strict=True):
                index[d] = i
            terms.append(self._term(symbols, tuple(index), found.numel() > 1))
        total = item(found.sum())
        if isinstance(total, complex) and not target.dtype.is_complex:
            total = total.real
        return write_sum(left, terms, found.numel(), total, None)

    def _term(self, symbols: Mapping[str, _SymbolValue], index: Element, within_sum: bool) -> Term:
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
        value = self._expression.evaluate(numbers)
        return Term(
            self._expression.text(lambda n: names[n], within_sum=within_sum),
            self._expression.text(lambda n: number_text(numbers[n]), within_sum=within_sum),
            item(value) if torch.is_tensor(value) else value,
        )
