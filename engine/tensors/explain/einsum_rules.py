"""einsum: letters say which dimensions meet. Torch brings any equation to permutes, sums and one
batch product after the other, so it is asked itself how its result lies: with tensors on the meta
device, which have shape, strides and dtype but no numbers."""

from __future__ import annotations

import math
from typing import Any

import torch

from ...errors import LabError
from ..shapes.products import Letters, letters_of
from .layout import Layout
from .reduction_rules import check_known
from .registry import NotCovered, Outcome, Refusal, rule


@rule("einsum")
def einsum(equation: Any, *operands: Any) -> Outcome:
    if len(operands) == 1 and isinstance(operands[0], tuple | list):
        operands = tuple(operands[0])
    if (
        not isinstance(equation, str)
        or not equation.strip()
        or not all(isinstance(x, Layout) for x in operands)
    ):
        raise NotCovered("this form of einsum")
    check_known(*operands)
    if len(operands) > 1 and any(x.numel == 0 for x in operands):
        raise NotCovered("einsum of several operands without elements")
    shapes = [x.shape for x in operands]
    try:
        letters = letters_of("einsum", shapes, equation)
    except LabError as error:
        raise Refusal(str(error), error.hint, raises=RuntimeError) from None
    assert letters is not None, "einsum takes any number of dimensions"
    sizes = letters.sizes(shapes)
    for letter, found in sizes.items():
        if len(found) > 1:
            raise Refusal(
                f"The letter {letter} stands for {' and '.join(map(str, found))} elements.",
                "One letter, one size: dimensions that meet are equal, or 1.",
                raises=RuntimeError,
            )
    summed = [c for c in sizes if c not in letters.result]
    met = [c for c in summed if sum(c in own for own in letters.operands) > 1 and sizes[c] != [1]]
    if len(operands) > 1 and any(1 in x.shape for x in operands) and not (met and len(shapes) == 2):
        raise NotCovered("an element-wise einsum with dimensions of one element")
    _check_dtypes(operands, letters, summed)
    stand_ins = [_stand_in(x) for x in operands]
    try:
        made = torch.einsum(equation, *stand_ins)
    except RuntimeError as error:
        raise Refusal(f"torch refuses: {error}", raises=RuntimeError) from None
    return _told(operands, stand_ins, made, letters, math.prod(n[0] for n in sizes.values()))


def _check_dtypes(operands: tuple[Layout, ...], letters: Letters, summed: list[str]) -> None:
    """What the meta device does not know: which dtypes the CPU multiplies."""
    if len(operands) < 2 or not any(sum(c in own for own in letters.operands) > 1 for c in summed):
        return
    dtypes = {x.dtype for x in operands}
    if len(dtypes) > 1 or torch.bool in dtypes:
        ones = [1 in x.shape for x in operands]
        if any(ones) or len(operands) > 2:
            raise NotCovered("einsum of such dtypes")
        names = " and ".join(map(str, sorted(dtypes, key=str)))
        raise Refusal(
            f"Products are of one dtype, and not of bool: these are {names}.",
            "Convert one of them: .to(other.dtype).",
            raises=RuntimeError,
        )


def _stand_in(x: Layout) -> torch.Tensor:
    base = torch.empty(x.offset + x.extent(), dtype=x.dtype, device="meta")
    standing = base.as_strided(x.shape, x.stride, x.offset)
    if x.grad:
        standing.requires_grad_()
    return standing.conj() if x.conj else standing


def _told(
    operands: tuple[Layout, ...],
    stand_ins: list[torch.Tensor],
    made: torch.Tensor,
    letters: Letters,
    work: int,
) -> Outcome:
    shape, stride = tuple(made.shape), made.stride()
    reasoning = (f"written out: {letters.equation}",)
    storage = made.untyped_storage()._cdata
    for x, stand_in in zip(operands, stand_ins, strict=True):
        if stand_in.untyped_storage()._cdata == storage:
            result = x.view(shape, stride, int(made.storage_offset()))
            why = "nothing is added up: only the dimensions are named in another order."
            return Outcome("view", (result,), why, reasoning)
    result = operands[0].fresh(shape, stride, made.dtype)
    why = "products are added up over the letters that the result leaves out: a new tensor."
    return Outcome("copy", (result,), why, reasoning, work=work)
