"""Products of matrices, einsum, linear layers and convolutions whose inner sizes differ."""

from __future__ import annotations

from collections.abc import Sequence

from ...protocol import FailedOperands
from ...system.errors import LabError
from ..shapes.products import Letters, letters_of
from .call import Call, CallTensor, counted, headings_of, row


def product_marks(call: Call) -> FailedOperands | None:
    """Products: the dimensions that are summed over together are in one column."""
    name, tensors = call.name.removesuffix("_"), call.tensors
    equation = ""
    if name == "einsum":
        equation = next((a for a in (*call.args, *call.kwargs.values()) if type(a) is str), "")
    elif name in ("addmm", "baddbmm", "addmv", "addbmm"):
        tensors = tensors[1:]
    op = {"__matmul__": "matmul", "__rmatmul__": "matmul", "linear": "linear"}.get(name, name)
    op = {"addmm": "mm", "baddbmm": "bmm", "addbmm": "bmm", "addmv": "mv", "vdot": "dot"}.get(
        op, op
    )
    if op != "einsum":
        tensors = tensors[:2]
    shapes = [seen.shape for seen in tensors]
    try:
        letters = (
            _linear(tensors)
            if op == "linear"
            else letters_of(op, [seen.shape for seen in tensors], equation)
        )
    except LabError:  # the equation cannot be read
        return None
    if letters is None or len(letters.operands) != len(tensors):
        return None
    sizes = letters.sizes(shapes)
    conflicts = [letter for letter, found in sizes.items() if len(found) > 1]
    if not conflicts:
        return None
    order = letters.operands[0] + "j" if op == "linear" else _order(letters)
    rows = []
    for seen, own in zip(tensors, letters.operands, strict=True):
        failing = [
            d
            for d, letter in enumerate(own)
            if letter in conflicts and not (letter in letters.stretches and seen.shape[d] == 1)
        ]
        rows.append(row(seen, seen.shape, [order.index(letter) for letter in own], failing))
    headings = [letter if op == "einsum" else _called(letter, own_op=op) for letter in order]
    first = conflicts[0]
    texts = [
        f"{seen.text} has {seen.shape[own.index(first)]}"
        for seen, own in zip(tensors, letters.operands, strict=True)
        if first in own
    ]
    where = f"The letter {first}" if op == "einsum" else _PLACES.get(first, "A batch dimension")
    text = f"{where} must have one size: {', '.join(texts)}."
    return FailedOperands("product", call.name, tuple(rows), tuple(headings), text)


_PLACES = {"k": "The inner dimension"}


def _called(letter: str, own_op: str) -> str:
    columns = "out" if own_op == "linear" else "columns"
    return {"i": "rows", "k": "inner", "j": columns}.get(letter, "batch")


def _linear(tensors: Sequence[CallTensor]) -> Letters | None:
    """The letters of F.linear's input `(*, in)` and weight `(out, in)`."""
    if len(tensors) != 2 or not tensors[0].shape or len(tensors[1].shape) != 2:
        return None
    ahead = len(tensors[0].shape) - 1
    batch = "bcdefgh"[: max(0, ahead - 1)] + "i" * min(ahead, 1)
    return Letters((f"{batch}k", "jk"), f"{batch}j", "")


def _order(letters: Letters) -> str:
    """The letters as columns from left to right: each operand's dimensions in order, if
    possible."""
    order = ""
    for own in letters.operands:
        place = 0
        for letter in own:
            if letter in order:
                place = order.index(letter) + 1
            else:
                order = order[:place] + letter + order[place:]
                place += 1
    return order


def convolution_marks(call: Call) -> FailedOperands | None:
    """Convolutions: the weight is for another number of channels than the input has."""
    if len(call.tensors) < 2:
        return None
    seen, weight = call.tensors[:2]
    spatial = int(call.name[-2])
    transposed = "transpose" in call.name
    groups = call.given(6, "groups", default=1)
    if len(weight.shape) != spatial + 2 or type(groups) is not int:
        return None
    places = ["batch", "channels", *["depth", "height", "width"][3 - spatial :]]
    if len(seen.shape) not in (spatial + 1, spatial + 2):
        rows = [row(seen, failing=range(len(seen.shape))), row(weight)]
        text = (
            f"{seen.text} has {counted(len(seen.shape), 'dimension')}, but (batch, channels,"
            f" {', '.join(places[2:])}) are needed."
        )
        return FailedOperands("product", call.name, tuple(rows), headings_of(rows), text)
    wanted = weight.shape[0] if transposed else weight.shape[1] * groups
    channel = len(seen.shape) - spatial - 1
    if seen.shape[channel] == wanted:
        return None
    columns = range(spatial + 2 - len(seen.shape), spatial + 2)
    kept, inner = (1, 0) if transposed else (0, 1)
    # Column 1 is for the channels of input and weight that must agree; the weight's other
    # channels are in column 0, with the batch.
    placed = [0, 0, *range(2, spatial + 2)]
    placed[kept], placed[inner] = 0, 1
    note = f"{groups} groups: {wanted} channels" if groups != 1 and not transposed else ""
    rows = [
        row(seen, seen.shape, columns, [channel]),
        row(weight, weight.shape, placed, [inner], note=note),
    ]
    text = f"{seen.text} has {seen.shape[channel]} channels, but the weight is for {wanted}."
    headings = ("batch/out", *places[1:])
    return FailedOperands("product", call.name, tuple(rows), headings, text)
