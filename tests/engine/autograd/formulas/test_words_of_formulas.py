"""What a reader is told of each node of the book, as kept in `words/formulas.txt`.

`UPDATE_PICTURES=1` writes the words anew; read the difference before you commit it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from engine.autograd.formulas import names
from engine.autograd.formulas.book import _BOOK, Formula, words_of

KEPT = Path(__file__).parents[3] / "words" / "formulas.txt"


def told() -> Iterator[str]:
    """The formulas of a name in the order in which they are tried; each is written out once."""
    seen: list[Formula] = []
    for name in names():
        for formula in _BOOK[name]:
            if any(formula is each for each in seen):
                continue
            seen.append(formula)
            yield f"{' '.join(formula.names)}{' (in some cases)' if formula.when else ''}"
            yield f"    {formula.words}"
            yield from (f"    {line}" for line in lines_of(formula))


def lines_of(formula: Formula) -> Iterator[str]:
    """The formula of each input, and what its symbols stand for."""
    symbols: dict[str, None] = {}
    for number, rule in enumerate(formula.rules):
        found = formula.rule_for(number)
        assert found is not None
        yield f"∂L/∂{found.label} = {found.text}"
        symbols |= dict.fromkeys(rule.symbols)
    assert formula.each == (formula.rule_for(len(formula.rules)) is not None)
    meanings = formula.meanings or {}
    for symbol in symbols:
        let = formula.setting.lets.get(symbol)
        meaning = meanings.get(symbol, "") if let is None else let.text
        if meaning:
            yield f"{symbol}: {meaning}"


def test_each_node_is_told_in_the_same_words() -> None:
    text = "\n".join(told()) + "\n"
    if os.environ.get("UPDATE_PICTURES"):
        KEPT.write_text(text, encoding="utf-8")
        return
    assert text.splitlines() == KEPT.read_text(encoding="utf-8").splitlines()


def test_the_words_of_a_name_are_those_of_its_first_formula() -> None:
    assert list(names()) == sorted(_BOOK)
    assert all(words_of(name) == _BOOK[name][0].words for name in names())
    assert words_of("NoSuchBackward0") == ""
