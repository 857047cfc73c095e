"""The book of formulas: which backward node follows which rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .given import Given, NotKept
from .outs import Out
from .pointwise import Align, Let, Pointwise, Setting


@dataclass(frozen=True)
class Formula:
    """The rules of one kind of node: one Out per input, in the order of `next_functions`.

    `words` tell the rule in a sentence. `when` chooses between entries of the same name, by the
    node's parameters. With `each`, the one Out serves every input (cat, stack). `meanings` says
    in words what a symbol is.
    """

    names: tuple[str, ...]
    words: str
    outs: tuple[Out, ...]
    setting: Setting = field(default_factory=Setting)
    when: Callable[[Given], bool] | None = None
    each: bool = False
    meanings: Mapping[str, str] | None = None

    def out(self, number: int) -> Out | None:
        """The rule for input `number`; None where there is none."""
        if self.each:
            out: Any = self.outs[0]
            return replace(out, label=f"{out.label}{number}")
        return self.outs[number] if number < len(self.outs) else None


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
    when: Callable[[Given], bool] | None = None,
    meanings: Mapping[str, str] | None = None,
    **outs: str,
) -> None:
    """Enter formulas for each element: `a="g * b"` is that of the input called a. `names` may be
    several, with spaces between."""
    setting = Setting(saved or {}, lets or {}, align or {}, defaults or {}, holomorphic)
    rules = tuple(Pointwise(label, source, setting) for label, source in outs.items())
    write(Formula(tuple(names.split()), words, rules, setting, when, meanings=meanings))


def enter(
    names: str,
    words: str,
    *outs: Out,
    saved: Mapping[str, str] | None = None,
    when: Callable[[Given], bool] | None = None,
    each: bool = False,
    meanings: Mapping[str, str] | None = None,
) -> None:
    """Enter rules of other kinds, one per input."""
    setting = Setting(saved or {})
    write(Formula(tuple(names.split()), words, outs, setting, when, each, meanings))


def names() -> tuple[str, ...]:
    """All names of nodes with a formula, sorted."""
    return tuple(sorted(_BOOK))


def words_of(name: str) -> str:
    """A node's rule in a sentence, by its name: that of the first entry, which is the usual one;
    empty for one that is not in the book."""
    return _BOOK[name][0].words if name in _BOOK else ""


def entries(name: str) -> tuple[Formula, ...]:
    return tuple(_BOOK.get(name, ()))


def choose(name: str, given: Callable[[Formula], Given]) -> tuple[Formula, Given] | None:
    """The entry that holds for a node, with what it has to work with; None without one."""
    for formula in entries(name):
        mine = given(formula)
        if mine.is_complex and not formula.setting.holomorphic:
            continue
        try:
            if formula.when is None or formula.when(mine):
                return formula, mine
        except NotKept:
            continue
    return None
