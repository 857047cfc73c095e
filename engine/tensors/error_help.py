"""What torch's usual errors mean, in plain words, and what usually helps (`errors.toml`).

Torch's own message stays whole; this stands under it. Messages are matched by the words torch
2.x uses; one that is not known gets no help rather than a guess.
"""

from __future__ import annotations

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


class _Found(str):
    """A group of a pattern. `{0:-1}` gives the number that is one less."""

    def __format__(self, more: str) -> str:
        return str(int(self) + int(more)) if more else self


def explain_error(error: BaseException) -> str:
    """Plain words and the usual fix; empty when the error is not one that is known here."""
    message = error.args[0] if error.args and type(error.args[0]) is str else ""
    return " ".join(filter(None, told(message) or ()))


def told(message: str) -> tuple[str, str] | None:
    """What is wrong, and the usual fix; None when the message is not one that is known here."""
    for pattern, row in _known():
        if match := pattern.search(message):
            found = [_Found(group or "") for group in match.groups()]
            return row.what.format(*found), row.fix.format(*found)
    return None


@cache
def _known() -> list[tuple[re.Pattern[str], _Row]]:
    rows = msgspec.convert(tomllib.loads(PATH.read_text(encoding="utf-8"))["errors"], list[_Row])
    return [(re.compile(row.says, re.IGNORECASE), row) for row in rows]
