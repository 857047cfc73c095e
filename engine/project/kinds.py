"""What the rows of the catalogue are made of: parameters, ports, kinds of blocks and data sets."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from .document import ParamValue

ParamType = Literal["int", "float", "bool", "str", "choice", "ints", "floats", "shape", "dtype"]
"""`ints`: one int or a tuple of ints (kernel sizes). `floats`: a tuple of floats (betas).
`shape`: a tuple of ints, -1 allowed once. A type with `choices` also takes one of those words
(`padding="same"`); `choice` and `dtype` take nothing else."""

Call = Literal["module", "function", "method", "input", "output", "loss"]
Target = Literal["", "labels", "numbers", "shares", "signs", "lists"]
"""What a loss compares with: class labels; numbers; numbers from 0 to 1; 1 or -1; lists of
labels."""


class Param(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One argument of a torch class or function.

    `default` is torch's; a `required` parameter has none and a new block gets `initial`. A
    parameter with a default may have an `initial` too, where a new block had better start with
    something else (`batch_first=True`). `optional` says that None is a value. Bounds are
    inclusive, hold for each entry of a tuple, and are None when open.
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


class Port(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where a wire ends. Inputs are passed by position; `optional` ones come last and may stay
    open.

    torch packs some tensors in tuples: neighbouring ports with the same `pack` travel as one
    (the `h_n` and `c_n` of an LSTM, the tensors that `torch.cat` takes), wired all or none.
    """

    name: str
    doc: str = ""
    optional: bool = False
    pack: str = ""


class BlockKind(Struct, frozen=True, omit_defaults=True):
    """One row of the catalogue.

    `call` says how a block becomes a torch.fx node: a submodule, a function (`torch_name` is its
    full name), a tensor method, or one of the model's ends. `stem` is what names of new blocks
    start with (`"linear"` -> `linear1`). A `variadic` kind has a parameter `inputs`, which torch
    does not know: the number of its input ports (see `catalogue.ports`). `target` is of losses.
    """

    key: str
    torch_name: str
    title: str
    group: str
    summary: str
    icon: str
    call: Call
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    params: tuple[Param, ...]
    stem: str
    keywords: tuple[str, ...] = ()
    variadic: bool = False
    target: Target = ""

    def param(self, name: str) -> Param:
        """Raises KeyError when there is no such parameter."""
        for param in self.params:
            if param.name == name:
                return param
        raise KeyError(name)


class OtherLoss(Struct, frozen=True, forbid_unknown_fields=True):
    """A loss of torch's that takes more than a prediction and a target: what it `takes`, and the
    lines of a step of the user's own module with it. In them {loss} stands for the loss, or
    {module} for the part of the module that is one, which then has its arguments."""

    takes: str
    step: tuple[str, ...]
    params: tuple[Param, ...] = ()

    def source(self, loss: str, module: str) -> str:
        """The Python of the step."""
        lines = [line.format(loss=loss, module=module) for line in self.step]
        return "\n    ".join(["def step(batch):", *lines, "return loss"]) + "\n"


class DatasetKind(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A data set: float32 samples of `sample_shape` (without batch), with int64 labels from 0 to
    `classes` - 1, or with one number each if `classes` is 0. One that is read from `source` (a file
    or a folder, the points of the project, or an expression of the console) has neither a shape nor
    classes before it is read; `suffixes` are those of its files."""

    key: str
    title: str
    summary: str
    sample_shape: tuple[int, ...] = ()
    classes: int = 0
    source: Literal["", "file", "folder", "file or folder", "points", "console"] = ""
    suffixes: tuple[str, ...] = ()
    params: tuple[Param, ...] = ()

    @property
    def is_of_path(self) -> bool:
        """Whether it is read from a file or a folder."""
        return "file" in self.source or "folder" in self.source


class TransformKind(Struct, frozen=True, forbid_unknown_fields=True):
    """A change of the samples; of `images`, of shape (C, H, W), only."""

    key: str
    summary: str
    images: bool = False
    params: tuple[Param, ...] = ()
