"""The catalogue: which blocks, losses, optimizers and data sets there are, as data. No torch.

The rows are written by hand (`table.py`: group, icon, words, ports); the parameters come from
torch's own signatures and docstrings, read once by `engine.models.signatures` into
`signatures.json`, so that the window knows them before torch has loaded.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from .document import ParamValue

ParamType = Literal["int", "float", "bool", "str", "choice", "ints", "floats", "shape", "dtype"]
"""`ints`: one int or a tuple of ints (kernel sizes). `floats`: a tuple of floats (betas).
`shape`: a tuple of ints, -1 allowed once."""


class Param(Struct, frozen=True):
    """One argument of a torch class or function.

    `default` is torch's; a `required` parameter has none and a new block gets `initial`.
    `optional` says that None is a value. Bounds are inclusive and None when open.
    """

    name: str
    type: ParamType
    default: ParamValue = None
    required: bool = False
    initial: ParamValue = None
    optional: bool = False
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    doc: str = ""


class Port(Struct, frozen=True):
    """Where a wire ends. `optional` inputs may stay open."""

    name: str
    doc: str = ""
    optional: bool = False


class BlockKind(Struct, frozen=True):
    """One row of the catalogue.

    `call` says how a block becomes a torch.fx node: a submodule, a function (`torch_name` is its
    full name), a tensor method, or one of the model's ends. `stem` is what names of new blocks
    start with (`"linear"` -> `linear1`).
    """

    key: str
    torch_name: str
    title: str
    group: str
    summary: str
    icon: str
    call: Literal["module", "function", "method", "input", "output", "loss"]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    params: tuple[Param, ...]
    stem: str
    keywords: tuple[str, ...] = ()

    def param(self, name: str) -> Param:
        """Raises KeyError when there is no such parameter."""
        for param in self.params:
            if param.name == name:
                return param
        raise KeyError(name)
