"""What torch's usual errors mean, in plain words, and what usually helps (`errors.toml`).

Torch's own message stays whole; this stands under it. Messages are matched by the words torch
2.x uses; one that is not known gets no help rather than a guess.
"""

from __future__ import annotations

import builtins
import re
import tomllib
from functools import cache
from pathlib import Path

import msgspec

PATH = Path(__file__).with_name("errors.toml")


class _Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    says: str
    what: str
    fix: str
    classes: tuple[str, ...] = msgspec.field(default=("RuntimeError",), name="as")


class _Found(str):
    """A group of a pattern. `{0:-1}` gives the number that is one less."""

    def __format__(self, more: str) -> str:
        return str(int(self) + int(more)) if more else self


def explain_error(error: BaseException) -> str:
    """Plain words and the usual fix; empty when the error is not one that is known here."""
    return " ".join(filter(None, told(error) or ()))


def told(error: BaseException) -> tuple[str, str] | None:
    """What is wrong, and the usual fix; None when the error is not one that is known here."""
    message = error.args[0] if error.args and type(error.args[0]) is str else ""
    for pattern, classes, row in _known():
        match = pattern.search(message) if isinstance(error, classes) else None
        if match is not None:
            found = [_Found(group or "") for group in match.groups()]
            return row.what.format(*found), row.fix.format(*found)
    return None


@cache
def _known() -> list[tuple[re.Pattern[str], tuple[type[BaseException], ...], _Row]]:
    rows = msgspec.convert(tomllib.loads(PATH.read_text(encoding="utf-8"))["errors"], list[_Row])
    return [
        (
            re.compile(row.says, re.IGNORECASE),
            tuple(getattr(builtins, name) for name in row.classes),
            row,
        )
        for row in rows
    ]
