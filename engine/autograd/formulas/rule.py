"""The rule of one node: its formula from the book, with the node's gradients and saved values."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import torch
from torch import Tensor

from ...protocol import RuleSymbol
from ..graph.engine_run import run_node
from ..graph.reading import Node
from .book import Formula, choose
from .expression import pretty
from .input_rules import InputRule, TextOnly
from .linear import linear_numbers
from .node_values import MissingValue, NodeValues, gradient_number
from .numbers import Element, Numbers, number_text
from .pointwise import Pointwise

_GENERAL = (
    "A vector-Jacobian product: each input gets the incoming gradient times the derivatives of"
    " the outputs with respect to it. The program has no formula for how this node computes it."
)
_CUSTOM = (
    "A Python Function: its own backward() computes the gradient of each input. It should be the"
    " vector-Jacobian product of forward()."
)
_VJP = "Σ g · ∂y/∂x, over all elements of y"


class Rule:
    """The rule of one node for its incoming gradients. The number of an input is its index in
    `next_functions`."""

    def __init__(self, node: Node, incoming: Sequence[Tensor | None]) -> None:
        self.node = node
        found = choose(node.name, lambda formula: NodeValues(node, incoming, formula.setting.names))
        self._formula, self._given = found or (None, NodeValues(node, incoming))

    @property
    def general(self) -> bool:
        """Whether the book has no formula for this node, only the vector-Jacobian product."""
        return self._formula is None

    @property
    def words(self) -> str:
        if self._formula is not None:
            return self._formula.words
        return _CUSTOM if self.node.is_custom else _GENERAL

    @property
    def inputs(self) -> tuple[int, ...]:
        """The inputs that get a gradient."""
        return tuple(i for i, (fn, _) in enumerate(self.node.fn.next_functions) if fn is not None)

    def label(self, number: int) -> str:
        """The symbol of an input in the formula."""
        return self._input_rule(number).label

    def formula(self, number: int) -> str:
        """`∂L/∂a = g · b`."""
        rule = self._input_rule(number)
        return f"∂L/∂{rule.label} = {self._summed(rule, number) or rule.text}"

    def _summed(self, rule: InputRule, number: int) -> str:
        """The text of a rule that sums over dimensions in which forward broadcast the input."""
        if not isinstance(rule, Pointwise):
            return ""
        try:
            dims = rule.summed(self._given, number)
        except MissingValue:  # a saved tensor is gone, and its shape with it
            return ""
        if not dims:
            return ""
        return f"Σ {rule.text_in_sum}, over dim{'s' * (len(dims) > 1)} {', '.join(map(str, dims))}"

    def symbols(self, number: int) -> tuple[RuleSymbol, ...]:
        """The letters of the formula, in order of appearance."""
        return tuple(map(self._symbol, dict.fromkeys(self._input_rule(number).symbols)))

    def compute(self, number: int) -> Tensor | None:
        """The outgoing gradient of an input, computed by the formula, before tensor hooks; None
        where only words are known. Raises MissingValue when a saved tensor is gone."""
        with torch.no_grad():
            return self._input_rule(number).compute(self._given, number)

    def numbers(self, number: int, element: Element, *, may_run: bool = True) -> Numbers:
        """The sum that gives one element of an input's gradient. Without a formula that can be
        computed, the node runs once more in the engine, if it `may_run`, and its own derivative
        gives the sum. Raises MissingValue, IndexError, and RuntimeError if the node has no
        derivative."""
        shape = self._given.shape(number)
        if len(element) != len(shape) or any(
            not 0 <= i < n for i, n in zip(element, shape, strict=True)
        ):
            raise IndexError(f"there is no element {list(element)} in a gradient of shape {shape}")
        rule = self._input_rule(number)
        with torch.no_grad():
            found = rule.numbers(self._given, number, element)
        if found is not None:
            return found
        if not may_run:
            raise MissingValue("this node cannot run a second time now")
        return linear_numbers(
            lambda gradients: self._run(gradients, number),
            self._given.gradients,
            rule.label,
            element,
        )

    def _run(self, gradients: tuple[Tensor, ...], number: int) -> Tensor:
        with warnings.catch_warnings():  # the warning is about leaves, and no leaf runs here
            warnings.filterwarnings("ignore", "Using backward\\(\\) with create_graph=True")
            _, outgoing = run_node(
                self.node.fn, gradients, edit=lambda _: gradients, create_graph=True
            )
        found = outgoing[number]
        if found is None:
            raise MissingValue("this input got no gradient")
        return found

    def _input_rule(self, number: int) -> InputRule:
        rule = self._formula.rule_for(number) if self._formula is not None else None
        return rule or TextOnly("x" if len(self.inputs) == 1 else f"x{number}", _VJP)

    def _symbol(self, name: str) -> RuleSymbol:
        formula, given = self._formula, self._given
        meaning = (formula.meanings or {}).get(name, "") if formula else ""
        let = formula.setting.lets.get(name) if formula else None
        if let is not None:
            return RuleSymbol(pretty(name), let.text)
        output = gradient_number(name)
        if output is not None:
            shape = tuple(given.gradient(output).shape)
            return RuleSymbol(name, meaning or "the incoming gradient", shape=shape)
        saved = given.torch_name(name)
        try:
            value = given[name]
        except MissingValue as missing:
            default = _default(formula, name)
            if default is not None:
                return RuleSymbol(
                    pretty(name), meaning or "none given", saved, text=number_text(default)
                )
            return RuleSymbol(pretty(name), meaning or _meaning(saved), saved, note=str(missing))
        if torch.is_tensor(value):
            stale = given.stale.get(saved, "")
            shape = tuple(value.shape)
            return RuleSymbol(pretty(name), meaning or _meaning(saved), saved, shape, note=stale)
        meaning = meaning or "a parameter of the operation"
        if value is None:
            value = _default(formula, name)
        text = (
            "none"
            if value is None
            else (number_text(value) if isinstance(value, int | float | complex) else str(value))
        )
        return RuleSymbol(pretty(name), meaning, saved, text=text)


def _default(formula: Formula | None, name: str) -> float | None:
    return formula.setting.defaults.get(name) if formula else None


def _meaning(saved: str) -> str:
    words = {
        "self": "the input, as it was in forward",
        "other": "the other operand, as it was in forward",
        "input": "the input, as it was in forward",
        "result": "the result of forward",
        "weight": "the weight",
        "target": "the target",
    }
    return words.get(saved, f"{saved}, as it was in forward")


def rule_of(node: Node, incoming: Sequence[Tensor | None]) -> Rule:
    """The rule of `node` for its incoming gradients: one for each output of the forward operation,
    None where it is undefined."""
    return Rule(node, incoming)
