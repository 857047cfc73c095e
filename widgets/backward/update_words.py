"""The optimizer's update of one number, as its rule with the numbers filled in."""

from __future__ import annotations

import re

from engine.protocol import ParameterUpdate
from widgets.text import format_number

DIGITS = 6
"""Enough digits to do the sum again by hand."""


def update_text(update: ParameterUpdate) -> str:
    """Two lines: the rule in names, and in numbers."""
    names = "|".join(sorted(map(re.escape, update.numbers), key=len, reverse=True))
    numbers = re.sub(rf"\b({names})\b", lambda name: _number(update.numbers[name[1]]), update.rule)
    place = f" at [{', '.join(map(str, update.index))}]" if update.index else ""
    return (
        f"{update.optimizer}'s first step{place}: new = {update.rule}\n"
        f"= {numbers} = {format_number(update.new, DIGITS)}"
    )


def _number(value: float) -> str:
    text = format_number(value, DIGITS)
    return f"({text})" if value < 0 else text
