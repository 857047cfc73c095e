"""The meaning of torch's usual errors, in plain words, and the usual fix (`errors.toml`).

The help is shown under torch's own message. The patterns are written for the messages of torch 2.x.
A message that no pattern matches gets no help.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from traceback import walk_tb

import msgspec
import torch.nn.functional as F
from torch import Tensor

NO_DEBUGGER = (
    "Only cells, files and the steps of Train are held. To go through code line by line, forward"
    " and back, trace it: Autograd, “Forward, op by op”."
)
_LABEL = re.compile(r"Target (-?\d+) is out of bounds")
_OF_LABELS = (F.cross_entropy.__code__, F.nll_loss.__code__)
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
    """The mistake, and the usual fix; "" for an error that is not known here."""
    if type(error).__name__ == "BdbQuit":
        return NO_DEBUGGER
    if told := _outside_of_table(error) or _whole_chances(error):
        return told
    message = error.args[0] if error.args and type(error.args[0]) is str else ""
    what, fix = meaning_of(message) or ("", "")
    return " ".join(filter(None, (_outside_of_classes(error, message) or what, fix)))


def _outside_of_table(error: BaseException) -> str:
    """Words for an index that an embedding's table does not have, with the numbers, which torch's
    message lacks. "" if it is not that, or the numbers cannot be read."""
    for frame, _ in walk_tb(error.__traceback__ if isinstance(error, IndexError) else None):
        if frame.f_code is not F.embedding.__code__:
            continue
        index, table = frame.f_locals.get("input"), frame.f_locals.get("weight")
        if type(index) is not Tensor or not isinstance(table, Tensor) or not index.numel():
            continue
        rows = len(table)
        try:
            least, most = int(index.min()), int(index.max())
        except RuntimeError:  # inside vmap
            continue
        if least >= 0 and most < rows:
            continue
        held = most if most >= rows else least
        way_on = f"choose from these, or give the embedding {held + 1:,} rows."
        if held < 0:
            way_on = "choose from these: a negative index does not count from the end here."
        return (
            f"The table (an embedding's weight) has {rows:,} rows, numbered 0 to {rows - 1}, and"
            f" the index holds {held}: {way_on}"
        )
    return ""


def _whole_chances(error: BaseException) -> str:
    """Words for a target of whole numbers where chances are compared: torch's message is about a
    write of its own. "" if it is not that."""
    for frame, _ in walk_tb(error.__traceback__ if isinstance(error, RuntimeError) else None):
        if frame.f_code is F.binary_cross_entropy_with_logits.__code__:
            target = frame.f_locals.get("target")
            if isinstance(target, Tensor) and not target.is_floating_point():
                dtype = str(target.dtype).removeprefix("torch.")
                return (
                    f"The target of this loss is a chance from 0.0 to 1.0, and here it is {dtype}."
                    " Write target.float()."
                )
    return ""


def _outside_of_classes(error: BaseException, message: str) -> str:
    """Words for a label of no class, with the number of classes, which torch's message lacks. "" if
    it is not that, or the number cannot be read."""
    label = _LABEL.match(message)
    for frame, _ in walk_tb(error.__traceback__ if label else None):
        if frame.f_code not in _OF_LABELS:
            continue
        scores = frame.f_locals.get("input")
        if label and isinstance(scores, Tensor) and scores.ndim:
            count = scores.shape[min(1, scores.ndim - 1)]
            return (
                f"The prediction has scores of {count:,} classes, numbered 0 to {count - 1}, and"
                f" a label is {label[1]}."
            )
    return ""


def meaning_of(message: str) -> tuple[str, str] | None:
    """The mistake, and the usual fix; None for a message that is not known here."""
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
