"""What torch's usual errors mean, in plain words, and what usually helps (`errors.toml`).

The help is shown under torch's own message. The patterns are written for the messages of torch 2.x.
A message that no pattern matches gets no help.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

import msgspec

NO_DEBUGGER = (
    "Only cells, files and the steps of Train are held. To go through code line by line, forward"
    " and back, trace it: Autograd, “Forward, op by op”."
)
PATH = Path(__file__).with_name("errors.toml")


class _Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    says: str
    what: str
    fix: str
    from_the_end: bool = False


class _Found(str):
    """A group of a pattern. The format `{0:-1}` subtracts 1 from its number, `{0:shape}` makes
    `(3, 4)` or `(3,)` of the sizes."""

    def __format__(self, form: str) -> str:
        if form == "shape":
            return f"({self},)" if self and "," not in self else f"({self})"
        return str(int(self) + int(form)) if form else self


def explain_error(error: BaseException) -> str:
    """What is wrong, and the usual fix; "" for an error that is not known here."""
    if type(error).__name__ == "BdbQuit":
        return NO_DEBUGGER
    message = error.args[0] if error.args and type(error.args[0]) is str else ""
    return " ".join(filter(None, meaning_of(message) or ()))


def meaning_of(message: str) -> tuple[str, str] | None:
    """What is wrong, and the usual fix; None for a message that is not known here."""
    for pattern, row in _known():
        match = pattern.search(message)
        if match and (not row.from_the_end or int(match[1]) >= -int(match[3])):
            found = [_Found(group or "") for group in match.groups()]
            return row.what.format(*found), row.fix.format(*found)
    return None


@cache
def _known() -> list[tuple[re.Pattern[str], _Row]]:
    rows = msgspec.convert(tomllib.loads(PATH.read_text(encoding="utf-8"))["errors"], list[_Row])
    return [(re.compile(row.says, re.IGNORECASE), row) for row in rows]
