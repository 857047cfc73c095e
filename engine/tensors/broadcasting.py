"""Broadcasting, one dimension at a time.

The rule (PyTorch's notes, "Broadcasting semantics"): align the shapes at their last dimension;
at each, the sizes are equal, or one of them is 1, or one of them is not there. What is 1 or not
there is stretched by stride 0: nothing is copied. In place, the first operand's shape must not
change.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..errors import LabError, error_report
from ..protocol import BroadcastDim, BroadcastRole, BroadcastSnapshot, Cells, ErrorReport
from .cells import computable, dense_of, element_or_first, filled, slices, window, with_texts
from .operands import Operand

Shape = tuple[int, ...]
NAMES = "abcd"
TILES = 2
MAX_TRIED = 1 << 24
"""An in-place form that must fail is tried on an empty tensor of up to so many elements."""


def broadcast_dims(shapes: Sequence[Shape], in_place: bool = False) -> tuple[BroadcastDim, ...]:
    """The rule at each dimension, last dimension first."""
    ndim = max(len(shape) for shape in shapes)
    return tuple(_one_dim(shapes, -k, in_place) for k in range(1, ndim + 1))


def result_shape(dims: Sequence[BroadcastDim]) -> Shape | None:
    """None where the operands do not fit."""
    sizes = [dim.size for dim in reversed(dims)]
    return None if None in sizes else tuple(size for size in sizes if size is not None)


def failing_dim(shapes: Sequence[Shape], in_place: bool = False) -> int:
    """The dimension (from the right, -1 the last) at which torch gives up; 0 where all fit.

    Operands meet in pairs from the left, a pair from its last dimension; in place the first
    operand comes last.
    """
    first, *others = shapes[1:] if in_place else shapes
    pairs = [(other, False) for other in others] + ([(shapes[0], True)] if in_place else [])
    joined = first
    for shape, writes in pairs:
        dims = broadcast_dims((shape, joined), in_place=writes)
        found = result_shape(dims)
        if found is None:
            return next(dim.dim for dim in dims if dim.size is None)
        joined = found
    return 0


def read_element(element: Shape, shape: Shape) -> Shape:
    """The element of an operand of `shape` that an element of the result is made of."""
    aligned = element[len(element) - len(shape) :]
    return tuple(0 if size == 1 else at for at, size in zip(aligned, shape, strict=True))


def broadcast(
    operands: Sequence[Operand], in_place: bool = False, element: Shape | None = None
) -> BroadcastSnapshot:
    """Everything a view shows of two to four operands. Raises LabError on another number."""
    if not 2 <= len(operands) <= 4:
        raise LabError("Broadcasting takes two to four operands.")
    shapes = tuple(operand.shape for operand in operands)
    dims = broadcast_dims(shapes, in_place)
    fails_at = failing_dim(shapes, in_place)
    try:
        stretched, error = _by_torch(operands, in_place), None
    except RuntimeError as refusal:
        stretched, error = [], _explained(refusal, operands, dims, fails_at)
    shape = tuple(stretched[0].shape) if stretched else None
    element = None if shape is None else element_or_first(element, shape)
    reads = () if element is None else tuple(read_element(element, s) for s in shapes)
    numbers = [dense_of(operand) for operand in operands]
    result = None
    if shape is not None:
        result = window(shape, element or (), TILES)
        if all(dense is not None for dense in numbers):
            shown = [d.expand(shape)[slices(result)] for d in numbers if d is not None]
            result = with_texts(result, _sum(shown))
    return BroadcastSnapshot(
        operands=tuple(operand.text for operand in operands),
        shapes=shapes,
        in_place=in_place,
        code=code(operands, in_place),
        dims=dims,
        shape=shape,
        strides=tuple(tuple(t.stride()) for t in stretched),
        cells=tuple(
            filled(_aligned(s, result), dense) for s, dense in zip(shapes, numbers, strict=True)
        ),
        result=result,
        element=element,
        reads=reads,
        fails_at=fails_at,
        error=error,
    )


def code(operands: Sequence[Operand], in_place: bool) -> str:
    """The line of Python: with a typed shape in it, one that makes zeros of it."""
    texts = [o.text if o.tensor is not None else f"torch.zeros({o.shape})" for o in operands]
    if not in_place:
        return " + ".join(texts)
    others = " + ".join(texts[1:])
    if operands[0].tensor is None:
        return f"{texts[0]}.add_({others})"
    return f"{texts[0]} += {others}"


def _one_dim(shapes: Sequence[Shape], dim: int, in_place: bool) -> BroadcastDim:
    sizes = tuple(shape[dim] if -dim <= len(shape) else None for shape in shapes)
    there = [size for size in sizes if size is not None]
    wanted = {size for size in there if size != 1}
    if len(wanted) > 1:
        return _conflict(dim, sizes, wanted)
    size = wanted.pop() if wanted else 1
    if in_place and sizes[0] != size:
        return _refused(dim, sizes, size)
    roles: tuple[BroadcastRole, ...] = tuple(_role(s, size) for s in sizes)
    text = f"All are {size}." if len(there) > 1 else f"Only one operand has it: {size}."
    changes = [
        f"{NAMES[k]}'s 1 is stretched to {size}"
        if role == "stretched"
        else f"{NAMES[k]} has no such dimension: it counts as 1"
        + (f" and is stretched to {size}" if size != 1 else "")
        for k, role in enumerate(roles)
        if role != "same"
    ]
    if changes:
        text = f"{'; '.join(changes)}."
    return BroadcastDim(dim, sizes, roles, size, text)


def _role(size: int | None, result: int | None) -> BroadcastRole:
    if size is None:
        return "added"
    return "same" if size == result else "stretched"


def _conflict(dim: int, sizes: tuple[int | None, ...], wanted: set[int]) -> BroadcastDim:
    roles: tuple[BroadcastRole, ...] = tuple(
        "conflict" if size in wanted else _role(size, None) for size in sizes
    )
    who = [f"{NAMES[k]} has {size}" for k, size in enumerate(sizes) if size in wanted]
    none = "neither" if len(who) == 2 else "none"
    text = f"{' but '.join(who)}: {none} is 1, so {none} can be stretched."
    return BroadcastDim(dim, sizes, roles, None, text)


def _refused(dim: int, sizes: tuple[int | None, ...], size: int) -> BroadcastDim:
    """In place: the first operand would have to grow."""
    rest: tuple[BroadcastRole, ...] = tuple(_role(s, size) for s in sizes[1:])
    what = "has no such dimension" if sizes[0] is None else f"has {sizes[0]}"
    text = (
        f"a {what} and would have to grow to {size}: in place the result is written into a's own"
        " memory, which stays as it is."
    )
    return BroadcastDim(dim, sizes, ("conflict", *rest), None, text)


def _by_torch(operands: Sequence[Operand], in_place: bool) -> list[torch.Tensor]:
    """The operands as torch stretches them. Raises its error."""
    _in_pairs(operands[1:] if in_place else operands)
    if in_place:
        _try_in_place(operands)
    return list(torch.broadcast_tensors(*(_strided(operand) for operand in operands)))


def _strided(operand: Operand) -> torch.Tensor:
    """Something of the operand's strides to stretch: the tensor itself where it has strides."""
    if operand.tensor is not None and operand.tensor.layout == torch.strided:
        return operand.tensor.detach()
    if operand.tensor is not None:
        return operand.blank()
    return torch.empty_strided(operand.shape, _contiguous(operand.shape), device="meta")


def _contiguous(shape: Shape) -> Shape:
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def _in_pairs(operands: Sequence[Operand]) -> None:
    """Raise what `a + b + c` raises, of blanks where it is sure to fail."""
    shape = operands[0].shape
    for other in operands[1:]:
        dims = broadcast_dims((shape, other.shape))
        joined = result_shape(dims)
        if joined is None:
            torch.add(torch.zeros(()).expand(shape), torch.zeros(()).expand(other.shape))
            raise AssertionError(f"torch adds {shape} and {other.shape}")
        shape = joined


def _try_in_place(operands: Sequence[Operand]) -> None:
    """Raise what `a += b` raises, of blanks where it is sure to fail."""
    first = operands[0].shape
    added = torch.broadcast_shapes(*(other.shape for other in operands[1:]))
    if result_shape(broadcast_dims((first, tuple(added)), in_place=True)) is not None:
        return
    device = "cpu" if torch.Size(first).numel() <= MAX_TRIED else "meta"
    torch.empty(first, device=device).add_(torch.zeros((), device=device).expand(added))
    raise AssertionError(f"torch adds {added} to {first} in place")


def _explained(
    error: RuntimeError, operands: Sequence[Operand], dims: Sequence[BroadcastDim], fails_at: int
) -> ErrorReport:
    told = error_report(error)
    if not fails_at:
        return told
    at = dims[-fails_at - 1]
    shapes = " and ".join(f"{NAMES[k]} {o.shape}" for k, o in enumerate(operands))
    hint = f"{shapes} fail at dimension {at.dim}: {at.text} {_fix(at)}"
    return ErrorReport(type=told.type, message=told.message, hint=hint)


def _fix(dim: BroadcastDim) -> str:
    if dim.roles[0] == "conflict" and dim.roles.count("conflict") == 1:
        return "Write a = a + b, which makes a new tensor, or reduce b to a's shape first."
    return (
        "Check which dimension was meant to line up: unsqueeze adds one of size 1, transpose swaps"
        " two, keepdim=True keeps one that a reduction folds."
    )


def _aligned(shape: Shape, result: Cells | None) -> Cells:
    """The part of an operand that the result's window reads."""
    if result is None:
        return window(shape, (), TILES)
    start, size = (whole[len(result.shape) - len(shape) :] for whole in (result.start, result.size))
    return Cells(
        shape,
        tuple(0 if n == 1 else at for n, at in zip(shape, start, strict=True)),
        tuple(1 if n == 1 else count for n, count in zip(shape, size, strict=True)),
    )


def _sum(parts: Sequence[torch.Tensor]) -> torch.Tensor:
    total = computable(parts[0])
    for part in parts[1:]:
        total = total + computable(part)
    return total
