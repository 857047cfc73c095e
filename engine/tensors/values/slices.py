"""A typed slice such as `0, :, ::2`, as one cut for each dimension."""

from __future__ import annotations

import ast

from ...protocol import DimCut
from ...system.errors import LabError

_HINT = "Write an integer, a slice (2:8, ::2) or ... for each dimension, such as 0, :, ::2."


def parse_slice(text: str, expression: str, shape: tuple[int, ...]) -> tuple[DimCut, ...]:
    """The part of each dimension of `shape` that `text` selects, by Python's rules.

    `text` is what is in the brackets, or all of `expression[...]`. Raises LabError for anything but
    integers, slices and one ellipsis, and for an index outside the shape.
    """
    items = _items(text, expression)
    dots = items.count(Ellipsis)
    if dots > 1:
        raise LabError("Only one ... can stand for the dimensions left out.", hint=_HINT)
    given = len(items) - dots
    if given > len(shape):
        raise LabError(
            f"{given} indices, but `{expression}` has {len(shape)} dimensions.",
            hint=f"Its shape is {shape}.",
        )
    at = items.index(Ellipsis) if dots else given
    items[at : at + 1] = [slice(None)] * (len(shape) - given)
    return tuple(
        _cut(item, size, dim) for dim, (item, size) in enumerate(zip(items, shape, strict=True))
    )


def _items(text: str, expression: str) -> list[object]:
    text = text.strip()
    if text.startswith(f"{expression}[") and text.endswith("]"):
        text = text[len(expression) + 1 : -1]
    elif text == expression:
        text = ""
    text = text.strip().rstrip(",")
    if not text:
        return []
    try:
        node = ast.parse(f"_[{text}]", mode="eval").body
    except (SyntaxError, ValueError):
        node = None
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
        raise LabError(f"`{text}` is not a slice.", hint=_HINT)
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return [_item(part) for part in parts]


def _item(node: ast.expr) -> object:
    if isinstance(node, ast.Slice):
        ends = (node.lower, node.upper, node.step)
        return slice(*(None if end is None else _whole_number(end) for end in ends))
    is_dots = isinstance(node, ast.Constant) and node.value is Ellipsis
    return Ellipsis if is_dots else _whole_number(node)


def _whole_number(node: ast.expr) -> int:
    try:
        number = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        number = None
    if type(number) is not int:
        raise LabError(
            f"`{ast.unparse(node)}` cannot be used in a slice here.",
            hint=f"{_HINT} The tab Index shows masks, lists and None.",
        )
    return number


def _cut(item: object, size: int, dim: int) -> DimCut:
    if isinstance(item, int):
        if not -size <= item < size:
            raise LabError(
                f"Index {item} is out of range: dim {dim} has {size:,} elements.",
                hint=f"Write {-size} to {size - 1}." if size else "This dimension is empty.",
            )
        return DimCut(size=size, start=item % size, step=1, count=1, fixed=True)
    assert isinstance(item, slice)
    if item.step is not None and item.step <= 0:
        raise LabError(
            "The step of a slice must be positive: torch has no negative strides.",
            hint=f"torch.flip(x, ({dim},)) reverses a dimension; it makes a copy.",
        )
    chosen = range(size)[item]
    return DimCut(size=size, start=chosen.start, step=chosen.step, count=len(chosen))
