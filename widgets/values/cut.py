"""Which element of a tensor a cell of its table or picture shows, when a slice is shown. No Qt.

`dims` has a DimCut for each dimension of the tensor. The cut is the tensor under the slice: it
lacks the dimensions that an integer index fixes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from engine.protocol import DimCut

Index = tuple[int, ...]
"""The index of an element: one integer per dimension of the tensor."""


def free_dims(dims: Sequence[DimCut]) -> list[int]:
    """The tensor's dimensions that the cut has."""
    return [number for number, dim in enumerate(dims) if not dim.fixed]


def cut_shape(dims: Sequence[DimCut]) -> Index:
    """The shape of the cut."""
    return tuple(dim.count for dim in dims if not dim.fixed)


def element_at(dims: Sequence[DimCut], position: Sequence[int]) -> Index:
    """The element at `position` in the cut: one integer per dimension of the cut."""
    left = iter(position)
    return tuple(dim.start + (0 if dim.fixed else next(left) * dim.step) for dim in dims)


def position_of(dims: Sequence[DimCut], element: Index) -> Index | None:
    """The position of `element` in the cut; None if the cut does not have it."""
    if len(element) != len(dims):
        return None
    position: list[int] = []
    for dim, at in zip(dims, element, strict=True):
        steps, between = divmod(at - dim.start, dim.step)
        if between or not 0 <= steps < dim.count:
            return None
        if not dim.fixed:
            position.append(steps)
    return tuple(position)


def cell_element(dims: Sequence[DimCut], row: int, column: int) -> Index:
    """The element in a cell of the table. Its columns are the last dimension of the cut, its rows
    all other dimensions in C order."""
    shape = cut_shape(dims)
    if not shape:
        return element_at(dims, ())
    return element_at(dims, (*unravel(row, shape[:-1]), column))


def element_cell(dims: Sequence[DimCut], element: Index) -> tuple[int, int] | None:
    """The (row, column) of an element in the table; None if the cut does not have it."""
    position = position_of(dims, element)
    if position is None:
        return None
    if not position:
        return 0, 0
    row = 0
    for size, at in zip(cut_shape(dims)[:-1], position[:-1], strict=True):
        row = row * size + at
    return row, position[-1]


def picture_element(dims: Sequence[DimCut], step: tuple[int, int], cell: tuple[int, ...]) -> Index:
    """The element in a cell of the picture, (row, column) or (image, row, column). `step` is
    `ValuesSnapshot.picture_step`."""
    shape = cut_shape(dims)
    image, row, column = cell if len(cell) == 3 else (0, *cell)
    inside = (row * step[0], column * step[1])
    position = (*unravel(image, shape[:-2]), *inside) if len(shape) > 1 else inside[1:]
    return element_at(dims, position[: len(shape)])


def row_label(dims: Sequence[DimCut], row: int) -> str:
    """The index of a row of the table without its last dimension (`0, 3`); empty for a vector."""
    free = free_dims(dims)
    if len(free) < 2:
        return ""
    element = cell_element(dims, row, 0)
    return ", ".join(str(element[number]) for number in free[:-1])


def column_label(dims: Sequence[DimCut], column: int) -> str:
    """The index of a column along the last dimension of the cut, as text; empty for a scalar."""
    free = free_dims(dims)
    return str(element_at(dims, (*(0,) * (len(free) - 1), column))[free[-1]]) if free else ""


def slice_text(dims: Sequence[DimCut]) -> str:
    """The slice as Python code between brackets (`0, :, ::2`)."""
    return ", ".join(dim_text(dim) for dim in dims)


def dim_text(dim: DimCut) -> str:
    """The part of a dimension that is shown, as Python code (`3`, `:`, `2:8:2`)."""
    if dim.fixed:
        return str(dim.start)
    stop = dim.start + dim.count * dim.step
    first = str(dim.start) if dim.start else ""
    last = "" if dim.count and stop >= dim.size else str(min(stop, dim.size))
    return f"{first}:{last}" + (f":{dim.step}" if dim.step > 1 else "")


def unravel(flat: int, shape: Sequence[int]) -> Index:
    """The index of the element number `flat`, counted in C order, of a tensor of this shape."""
    index: list[int] = []
    for size in reversed(shape):
        flat, at = divmod(flat, size)
        index.append(at)
    return tuple(reversed(index))


def element_text(expression: str, element: Index) -> str:
    """An element as Python code (`x[0, 2]`); for a scalar, the tensor's own expression."""
    return f"{expression}[{', '.join(map(str, element))}]" if element else expression


def assignment(expression: str, element: Index, literal: str, under_no_grad: bool) -> str:
    """The Python code that assigns `literal` to an element."""
    if element:
        line = f"{element_text(expression, element)} = {literal}"
    else:
        line = f"{expression}.fill_({literal})"
    return f"with torch.no_grad(): {line}" if under_no_grad else line


def literal_for(dtype: str, text: str) -> str:
    """The typed text as a Python literal for an element of `dtype`. Raises ValueError, with the
    reason in words, for a text that is not a value of `dtype`."""
    text = text.strip()
    if dtype == "bool":
        if text.lower() in ("true", "1"):
            return "True"
        if text.lower() in ("false", "0"):
            return "False"
        raise ValueError("A bool is True or False.")
    if dtype.startswith(("int", "uint")):
        return _whole(dtype, text)
    try:
        if dtype.startswith("complex"):
            number = complex(text.replace(" ", ""))
            parts = (number.real, number.imag)
            return f"complex({', '.join(map(_real_literal, parts))})"
        real = float(text)
    except ValueError:
        example = "1+2j" if dtype.startswith("complex") else "0.5, 1e-3, nan or inf"
        raise ValueError(f"`{text}` is not a number. Write one such as {example}.") from None
    return _real_literal(real)


def _real_literal(number: float) -> str:
    return repr(number) if math.isfinite(number) else f'float("{number}")'


def _whole(dtype: str, text: str) -> str:
    try:
        number = int(text, 0)
    except ValueError:
        raise ValueError(f"`{text}` is not a whole number: {dtype} holds no others.") from None
    signed = dtype.startswith("int")
    bits = int(dtype.removeprefix("u").removeprefix("int"))
    low = -(1 << (bits - 1)) if signed else 0
    high = (1 << (bits - 1 if signed else bits)) - 1
    if not low <= number <= high:
        raise ValueError(f"{number:,} does not fit: {dtype} holds {low:,} to {high:,}.")
    return str(number)
