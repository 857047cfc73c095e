"""The book of formulas: the rules of each kind of backward node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .input_rules import InputRule
from .node_values import MissingValue, NodeValues
from .pointwise import Align, Let, Pointwise, Setting


@dataclass(frozen=True)
class Formula:
    """The rules of one kind of node: one for each input, in the order of `next_functions`.

    `words` say the rule in a sentence. `when` chooses among entries of one name by the node's
    parameters. With `each`, the only rule serves every input (cat, stack). `meanings` explains
    symbols.
    """

    names: tuple[str, ...]
    words: str
    rules: tuple[InputRule, ...]
    setting: Setting = field(default_factory=Setting)
    when: Callable[[NodeValues], bool] | None = None
    each: bool = False
    meanings: Mapping[str, str] | None = None

    def rule_for(self, number: int) -> InputRule | None:
        """The rule for input `number`; None where there is none."""
        if self.each:
            rule: Any = self.rules[0]
            return replace(rule, label=f"{rule.label}{number}")
        return self.rules[number] if number < len(self.rules) else None


_BOOK: dict[str, list[Formula]] = {}


def write(formula: Formula) -> None:
    """Enter a formula under its names."""
    for name in formula.names:
        _BOOK.setdefault(name, []).append(formula)


def pointwise(
    names: str,
    words: str,
    *,
    saved: Mapping[str, str] | None = None,
    lets: Mapping[str, Let] | None = None,
    align: Mapping[str, Align] | None = None,
    defaults: Mapping[str, Any] | None = None,
    holomorphic: bool = True,
    when: Callable[[NodeValues], bool] | None = None,
    meanings: Mapping[str, str] | None = None,
    **formulas: str,
) -> None:
    """Enter formulas for each element: `a="g * b"` is the one of the input called a. `names` are
    one or several, with spaces between them."""
    setting = Setting(saved or {}, lets or {}, align or {}, defaults or {}, holomorphic)
    rules = tuple(Pointwise(label, source, setting) for label, source in formulas.items())
    write(Formula(tuple(names.split()), words, rules, setting, when, meanings=meanings))


def enter(
    names: str,
    words: str,
    *rules: InputRule,
    saved: Mapping[str, str] | None = None,
    defaults: Mapping[str, Any] | None = None,
    when: Callable[[NodeValues], bool] | None = None,
    each: bool = False,
    meanings: Mapping[str, str] | None = None,
) -> None:
    """Enter rules of any kind, one for each input."""
    setting = Setting(saved or {}, defaults=defaults or {})
    write(Formula(tuple(names.split()), words, rules, setting, when, each, meanings))


def names() -> tuple[str, ...]:
    """The names of all nodes that have a formula, sorted."""
    return tuple(sorted(_BOOK))


def words_of(name: str) -> str:
    """The rule of a node of this name in a sentence, from its first (usual) entry; "" for a name
    that is not in the book."""
    return _BOOK[name][0].words if name in _BOOK else ""


def choose(name: str, given: Callable[[Formula], NodeValues]) -> tuple[Formula, NodeValues] | None:
    """The first entry of this name that holds for the node, and its values; None if none holds."""
    for formula in _BOOK.get(name, ()):
        mine = given(formula)
        if mine.is_complex and not formula.setting.holomorphic:
            continue
        try:
            if formula.when is None or formula.when(mine):
                return formula, mine
        except MissingValue:
            continue
    return None
