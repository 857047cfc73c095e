"""Which dtype comes out: torch's rules, written out (`ATen/native/TypeProperties.cpp`)."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from .layout import Layout

Operand = Layout | bool | int | float | complex

_CATEGORIES = ("bool", "integer", "floating", "complex")


def category(dtype: torch.dtype) -> int:
    """0 bool, 1 integer, 2 floating, 3 complex."""
    if dtype.is_complex:
        return 3
    if dtype.is_floating_point:
        return 2
    return 0 if dtype == torch.bool else 1


def number_dtype(value: bool | int | float | complex) -> torch.dtype:
    """What a Python number counts as."""
    if isinstance(value, bool):
        return torch.bool
    if isinstance(value, int):
        return torch.int64
    default = torch.get_default_dtype()
    return default if isinstance(value, float) else default.to_complex()


def result_dtype(operands: Sequence[Operand]) -> tuple[torch.dtype, str]:
    """The dtype that an operation on `operands` computes in, and why.

    Tensors with dimensions decide. A tensor without dimensions, and after it a Python number,
    changes the result only when it is of a higher category: bool < integer < floating < complex.
    """
    ranks: list[list[torch.dtype]] = [[], [], []]
    for x in operands:
        if isinstance(x, Layout):
            ranks[0 if x.ndim else 1].append(x.dtype)
        else:
            ranks[2].append(number_dtype(x))
    dtypes = [_promoted(rank) for rank in ranks]
    result = _combined(dtypes[0], _combined(dtypes[1], dtypes[2]))
    assert result is not None, "an operation has at least one operand"
    return result, _told(ranks, result)


def _promoted(dtypes: Sequence[torch.dtype]) -> torch.dtype | None:
    result = None
    for dtype in dtypes:
        result = dtype if result is None else torch.promote_types(result, dtype)
    return result


def _combined(higher: torch.dtype | None, lower: torch.dtype | None) -> torch.dtype | None:
    if higher is None or lower is None:
        return higher or lower
    if category(higher) >= category(lower) and higher != torch.bool:
        return higher
    if category(higher) == 2:
        return higher.to_complex()
    return torch.promote_types(higher, lower)


def _told(ranks: Sequence[Sequence[torch.dtype]], result: torch.dtype) -> str:
    tensors = sorted({str(d).removeprefix("torch.") for d in (*ranks[0], *ranks[1])})
    name = str(result).removeprefix("torch.")
    if tensors == [name]:
        return f"{name} stays {name}."
    if len(tensors) > 1:
        text = f"{' with '.join(tensors)} gives {name}"
        return text + (", the smallest dtype that holds both." if not ranks[1] else ".")
    number = _CATEGORIES[category(ranks[2][0])] if ranks[2] else "the result"
    return f"{tensors[0]} becomes {name}: {number} is the higher category."


def can_be_stored(computed: torch.dtype, target: torch.dtype) -> bool:
    """May an in-place operation put `computed` into `target`: never down a category, except into
    and out of what loses no kind of number (`c10::canCast`)."""
    if category(computed) == 3 and category(target) != 3:
        return False
    if category(computed) == 2 and category(target) < 2:
        return False
    return computed == torch.bool or target != torch.bool
