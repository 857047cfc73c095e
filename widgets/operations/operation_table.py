"""The operations that can be picked, each as a template of a line of Python."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Operation:
    """An operation. `template` is the expression after `y = `, or the whole statement if `changes`
    is set (the operation changes the tensor).

    Fields of the template: {x} the tensor, {other} a tensor of the same shape, {last} the size of
    the last dimension, {reversed} the dimensions from last to first, {twice} a 2 and then the
    shape, {ones} a 1 for each dimension.
    """

    name: str
    template: str
    tip: str
    changes: bool = False


GROUPS: dict[str, tuple[Operation, ...]] = {
    "View-like": (
        Operation("view", "{x}.view({last}, -1)", "Another shape over the same cells, or an error"),
        Operation("reshape", "{x}.reshape(-1)", "Another shape: a view if possible, else a copy"),
        Operation("flatten", "{x}.flatten()", "One dimension: a view if possible, else a copy"),
        Operation("squeeze", "{x}.squeeze()", "Without the dimensions of size 1"),
        Operation("unsqueeze", "{x}.unsqueeze(0)", "With one more dimension, of size 1"),
        Operation("transpose", "{x}.transpose(0, -1)", "Swaps two dimensions"),
        Operation("permute", "{x}.permute({reversed})", "The dimensions in another order"),
        Operation("T", "{x}.T", "The transpose of a matrix"),
        Operation("mT", "{x}.mT", "The transpose of each matrix: the last two dimensions"),
        Operation("movedim", "{x}.movedim(0, -1)", "Moves one dimension to another place"),
        Operation("expand", "{x}.expand({twice})", "Repeated without a copy, by stride 0"),
        Operation("narrow", "{x}.narrow(0, 0, 1)", "Some neighbouring indices of a dimension"),
        Operation("select", "{x}.select(0, 0)", "One index of a dimension, which disappears"),
        Operation("chunk", "{x}.chunk(2)", "A given number of pieces along a dimension"),
        Operation("split", "{x}.split(1)", "Pieces of a given size along a dimension"),
        Operation("unbind", "{x}.unbind(0)", "One tensor for each index of a dimension"),
        Operation("unfold", "{x}.unfold(-1, 2, 1)", "Windows that slide along a dimension"),
        Operation("as_strided", "{x}.as_strided((2, 2), (1, 1))", "Any shape and strides"),
        Operation("detach", "{x}.detach()", "The same memory, without autograd's graph"),
    ),
    "Copies": (
        Operation("clone", "{x}.clone()", "A copy in memory of its own"),
        Operation(
            "contiguous", "{x}.contiguous()", "In C order: the tensor itself if it is already"
        ),
        Operation("repeat", "{x}.repeat({ones}2)", "Repeated for real, in new memory"),
    ),
    "Index": (
        Operation("[0]", "{x}[0]", "An integer: one index, and the dimension disappears"),
        Operation("[::2]", "{x}[..., ::2]", "A slice: start, stop and step; a view"),
        Operation("[..., 0]", "{x}[..., 0]", "The ellipsis stands for all dimensions not named"),
        Operation("[None]", "{x}[None]", "None makes a dimension of size 1"),
        Operation("mask", "{x}[{x} > 0]", "A mask of bools picks elements one by one"),
        Operation("fancy", "{x}[[0, -1]]", "A list of indices picks one by one"),
        Operation(
            "gather",
            "{x}.gather(0, torch.zeros_like({x}, dtype=torch.int64))",
            "For each place of the index, the element it names along a dimension",
        ),
        Operation(
            "take_along_dim",
            "{x}.take_along_dim(torch.zeros_like({x}, dtype=torch.int64), 0)",
            "As gather, with an index that broadcasts",
        ),
        Operation(
            "index_select",
            "{x}.index_select(0, torch.tensor([0]))",
            "Whole slices, by their indices",
        ),
    ),
    "In place": (
        Operation("+=", "{x} += 1", "Adds to its own cells: tensors that share them change", True),
        Operation("[0] =", "{x}[0] = 0", "Writes to a part of the tensor", True),
        Operation("mul_", "{x}.mul_(2)", "A name that ends in _ changes the tensor itself", True),
        Operation("zero_", "{x}.zero_()", "Every element becomes 0", True),
        Operation("fill_", "{x}.fill_(1)", "Every element becomes one number", True),
        Operation(
            "copy_",
            "{x}.copy_({other})",
            "Copies the elements of another tensor, broadcast",
            True,
        ),
        Operation("clamp_", "{x}.clamp_(min=0)", "Limits every element to a range", True),
        Operation(
            "masked_fill_",
            "{x}.masked_fill_({x} < 0, 0)",
            "Writes one number where a mask is True",
            True,
        ),
        Operation(
            "scatter_",
            "{x}.scatter_(0, torch.zeros_like({x}, dtype=torch.int64), 0)",
            "Writes to the places that an index names: the reverse of gather",
            True,
        ),
        Operation("unsqueeze_", "{x}.unsqueeze_(0)", "Changes the shape, not the cells", True),
    ),
    "Combine": (
        Operation("cat", "torch.cat([{x}, {other}])", "One after the other along a dimension"),
        Operation("stack", "torch.stack([{x}, {other}])", "Joined along a new dimension"),
        Operation("+", "{x} + {other}", "Element by element, broadcast"),
        Operation(
            "where", "torch.where({x} > 0, {x}, {other})", "One or the other, chosen by a mask"
        ),
        Operation(
            "scatter",
            "{x}.scatter(0, torch.zeros_like({x}, dtype=torch.int64), {other})",
            "A copy with some elements replaced at the places that an index names",
        ),
    ),
    "Dtype and device": (
        Operation("to", "{x}.to(torch.float64)", "Another dtype or device"),
        Operation("half", "{x}.half()", "16 bits per element: half the memory, 3 digits"),
        Operation("long", "{x}.long()", "Whole numbers: the fraction is dropped"),
        Operation("bool", "{x}.bool()", "True where an element is not 0"),
        Operation("cpu", "{x}.cpu()", "On the CPU: the tensor itself if it is there already"),
        Operation("promotion", "{x} + 0.5", "Two dtypes meet: the result has one that holds both"),
    ),
}
"""Group -> its operations."""

_NAMES = ("y", "z", "w", "u", "v")


def line_for(
    operation: Operation,
    expression: str,
    shape: Sequence[int] | None,
    other: str = "",
    taken: Collection[str] = (),
) -> str:
    """The line that applies `operation` to the tensor `expression` (`y = x.view(3, -1)`).

    `shape` is the tensor's, None if it is not known. `other` is a tensor of the same shape; if it
    is empty, the tensor itself is used. The result gets a name that is not in `taken`.
    """
    sizes = (2, 3) if shape is None else tuple(shape)
    line = operation.template.format(
        x=expression,
        other=other or expression,
        last=sizes[-1] if sizes else 1,
        reversed=", ".join(map(str, reversed(range(len(sizes))))) or "()",
        twice=", ".join(map(str, (2, *sizes))),
        ones="1, " * (len(sizes) - 1),
    )
    return line if operation.changes else f"{_free_name(taken)} = {line}"


def _free_name(taken: Collection[str]) -> str:
    number = 2
    for name in _NAMES:
        if name not in taken:
            return name
    while f"y{number}" in taken:
        number += 1
    return f"y{number}"
