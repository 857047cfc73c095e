"""Broadcasting, one dimension at a time.

The rule (PyTorch's notes, "Broadcasting semantics"): shapes are aligned at their last dimension. At
each dimension the sizes are equal, or one of them is 1 or missing. A size that is 1 or missing is
stretched by stride 0: nothing is copied. In place, the first operand's shape must not change.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from ...protocol import BroadcastDim, BroadcastRole, BroadcastSnapshot, Cells
from ...system.errors import LabError
from .elements import computable, element_or_first, filled, slices, window, with_texts
from .operands import NAMES, Operand, Shape, refusal

TILES = 2
MAX_TRIED = 1 << 24
"""A failing in-place operation is tried on an empty tensor of up to this many elements."""


def broadcast_dims(shapes: Sequence[Shape], in_place: bool = False) -> tuple[BroadcastDim, ...]:
    """The rule for each dimension, the last dimension first."""
    return tuple(
        _one_dim(-k, tuple(s[-k] if k <= len(s) else None for s in shapes), in_place)
        for k in range(1, max(map(len, shapes)) + 1)
    )


def failing_dim(shapes: Sequence[Shape], in_place: bool = False) -> int:
    """The dimension at which torch fails (from the right, -1 is the last); 0 if all operands fit.

    torch adds operands from the left, and compares sizes from the last dimension. In place, the
    first operand is added last; whether the result has its shape is checked after all sizes.
    """
    added = shapes[1:] if in_place else shapes
    steps = [broadcast_dims(added[:count]) for count in range(2, len(added) + 1)]
    steps += [broadcast_dims(shapes), broadcast_dims(shapes, in_place)]
    return next((dim.dim for step in steps for dim in step if dim.size is None), 0)


def read_element(element: Shape, shape: Shape) -> Shape:
    """The element of an operand of `shape` from which an element of the result is computed."""
    aligned = element[len(element) - len(shape) :]
    return tuple(0 if size == 1 else at for at, size in zip(aligned, shape, strict=True))


def broadcast(
    operands: Sequence[Operand], in_place: bool = False, element: Shape | None = None
) -> BroadcastSnapshot:
    """All that a view shows of two to four operands. Raises LabError for another number of them."""
    if not 2 <= len(operands) <= 4:
        raise LabError("This view takes two to four operands.")
    shapes = tuple(operand.shape for operand in operands)
    dims = broadcast_dims(shapes, in_place)
    fails_at = failing_dim(shapes, in_place)
    stretched: Sequence[torch.Tensor] = ()
    error = None
    try:
        if fails_at:
            _raise_refusal(shapes, in_place)
        stretched = torch.broadcast_tensors(*(_strided(operand) for operand in operands))
    except RuntimeError as refused:
        error = refusal(refused, _hint(shapes, dims, fails_at))
    shape = tuple(stretched[0].shape) if stretched else None
    element = None if shape is None else element_or_first(element, shape)
    result = None
    if shape is not None:
        result = window(shape, element or (), TILES)
        shown = [o.dense.expand(shape)[slices(result)] for o in operands if o.dense is not None]
        if len(shown) == len(operands):
            first, *others = map(computable, shown)
            result = with_texts(result, sum(others, start=first))
    return BroadcastSnapshot(
        operands=tuple(operand.text for operand in operands),
        shapes=shapes,
        in_place=in_place,
        code=_code(operands, in_place),
        dims=dims,
        shape=shape,
        strides=tuple(t.stride() for t in stretched),
        cells=tuple(filled(_read_by(result, o.shape), o.dense) for o in operands),
        result=result,
        element=element,
        reads=() if element is None else tuple(read_element(element, s) for s in shapes),
        fails_at=fails_at,
        error=error,
    )


def _code(operands: Sequence[Operand], in_place: bool) -> str:
    if not in_place:
        return " + ".join(operand.code for operand in operands)
    first, others = operands[0], " + ".join(operand.code for operand in operands[1:])
    return f"{first.code}.add_({others})" if first.tensor is None else f"{first.code} += {others}"


def _one_dim(dim: int, sizes: tuple[int | None, ...], in_place: bool) -> BroadcastDim:
    wanted = {size for size in sizes if size is not None and size != 1}
    roles: tuple[BroadcastRole, ...]
    if len(wanted) > 1:
        roles = tuple("conflict" if s in wanted else _role(s, None) for s in sizes)
        who = [f"{NAMES[k]} has {size}" for k, size in enumerate(sizes) if size in wanted]
        none = "neither" if len(who) == 2 else "none"
        text = f"{' but '.join(who)}: {none} is 1, so {none} can be stretched."
        return BroadcastDim(dim, sizes, roles, None, text)
    size = wanted.pop() if wanted else 1
    roles = tuple(_role(s, size) for s in sizes)
    if in_place and sizes[0] != size:
        what = "has no such dimension" if sizes[0] is None else f"has {sizes[0]}"
        text = (
            f"a {what} and would have to grow to {size}: in place the result is written into a's"
            " own memory, which stays as it is."
        )
        return BroadcastDim(dim, sizes, ("conflict", *roles[1:]), None, text)
    grown = f" and is stretched to {size}" if size != 1 else ""
    changes = [
        f"{name}'s 1 is stretched to {size}"
        if role == "stretched"
        else f"{name} has no such dimension: it counts as 1{grown}"
        for name, role in zip(NAMES, roles, strict=False)
        if role != "same"
    ]
    alone = len(sizes) - sizes.count(None) == 1
    same = f"Only one operand has it: {size}." if alone else f"All are {size}."
    return BroadcastDim(dim, sizes, roles, size, f"{'; '.join(changes)}." if changes else same)


def _role(size: int | None, result: int | None) -> BroadcastRole:
    if size is None:
        return "added"
    return "same" if size == result else "stretched"


def _strided(operand: Operand) -> torch.Tensor:
    """A tensor with the operand's strides: the operand's own tensor if it is strided."""
    if operand.tensor is None:
        return torch.empty(operand.shape, device="meta")
    is_strided = operand.tensor.layout == torch.strided
    return operand.tensor.detach() if is_strided else operand.blank()


def _raise_refusal(shapes: Sequence[Shape], in_place: bool) -> None:
    """Raise torch's error for `a + b + c` or `a += b + c`, which must fail. Tensors over one
    element are added: the errors of meta tensors have other words."""
    blank = torch.zeros(())
    own, total, *others = shapes if in_place else ((), *shapes)
    for other in others:
        if failing_dim((total, other)):
            torch.add(blank.expand(total), blank.expand(other))
        total = tuple(torch.broadcast_shapes(total, other))
    device = "cpu" if math.prod(own) <= MAX_TRIED else "meta"
    torch.empty(own, device=device).add_(blank.to(device).expand(total))


def _hint(shapes: Sequence[Shape], dims: Sequence[BroadcastDim], fails_at: int) -> str:
    if not fails_at:
        return ""
    at = dims[-fails_at - 1]
    met = " and ".join(f"{name} {shape}" for name, shape in zip(NAMES, shapes, strict=False))
    fix = (
        "Check which dimensions should be aligned: unsqueeze adds one of size 1, transpose swaps"
        " two, keepdim=True keeps a reduced one."
    )
    if at.roles[0] == "conflict" and at.roles.count("conflict") == 1:
        fix = "Write a = a + b, which makes a new tensor, or reduce b to a's shape first."
    return f"{met} do not broadcast at dim {at.dim}: {at.text} {fix}"


def _read_by(result: Cells | None, shape: Shape) -> Cells:
    """The window of an operand from which the result's window is computed."""
    if result is None:
        return window(shape, (), TILES)
    sizes = zip(shape, result.size[len(result.shape) - len(shape) :], strict=True)
    return Cells(
        shape,
        read_element(result.start, shape),
        tuple(1 if size == 1 else count for size, count in sizes),
    )
