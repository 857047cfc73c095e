"""Names of blocks: Python identifiers that become attributes of an nn.Module. No torch."""

from __future__ import annotations

import itertools
import keyword
from collections.abc import Collection

from . import catalogue

CODE_NAMES = frozenset({"self", "torch", "nn", "F", "Model"})
"""Names that the generated Python uses itself."""


def name_problem(name: str, taken: Collection[str] = ()) -> str | None:
    """Say in words why `name` cannot name a block beside the names `taken`; None when it can."""
    if not name:
        return "A block needs a name."
    if not name.isidentifier():
        return f"“{name}” is no Python name: use letters, digits and underscores, no digit first."
    if keyword.iskeyword(name):
        return f"“{name}” is a word of Python itself. Try “{name}_”."
    if name.startswith("_"):
        return "A name that starts with an underscore is private to nn.Module. Leave it out."
    if name in catalogue.reserved_names():
        return f"“{name}” is already an attribute of nn.Module. Try “{name}1”."
    if name in CODE_NAMES:
        return f"“{name}” is used by the model's own code. Try “{name}1”."
    if name in taken:
        return f"Another block is named “{name}”. Names are unique: they are the state_dict's keys."
    return None


def fresh_name(stem: str, taken: Collection[str]) -> str:
    """The first of `stem1`, `stem2`, ... that is not taken."""
    return next(name for n in itertools.count(1) if (name := f"{stem}{n}") not in taken)
