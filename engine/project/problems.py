"""Problems of a model: the words, the place, and the edit that would cure it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from .document import Model, ParamValue, replace

LOSS = "loss"


class Fix(Struct, frozen=True):
    """An edit that would cure a problem: set parameter `param` of block `block` to `value`. The
    parameter LOSS is the loss of training."""

    text: str
    block: str
    param: str
    value: ParamValue


class Problem(Struct, frozen=True):
    """Something wrong with the model, in words, where it is, and what to try.

    `detail` keeps torch's own message whole. `port` names the input port at fault, if one is.
    """

    message: str
    block: str | None = None
    port: str | None = None
    detail: str = ""
    fix: Fix | None = None
    severity: Literal["error", "warning"] = "error"


def located(problems: Iterable[Problem], model: Model) -> list[Problem]:
    """The problems, with each message after the name of the block that has it."""
    names = {block.id: f"“{block.name}”: " for block in model.blocks}
    return [
        replace(problem, message=names.get(problem.block or "", "") + problem.message)
        for problem in problems
    ]
