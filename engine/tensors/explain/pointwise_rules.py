"""Operations that go element by element: broadcasting, promotion, and writing in place."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from .layout import Ints, Layout, elementwise_stride, preserved_stride
from .promotion import Operand, can_be_stored, number_dtype
from .registry import NotCovered, Outcome, Refusal, copy


def broadcast_shape(shapes: Sequence[Ints]) -> Ints:
    """The shape that `shapes` stretch to, aligned from the right. Raises Refusal."""
    result: list[int] = []
    for place in range(1, max(map(len, shapes), default=0) + 1):
        sizes = [shape[-place] for shape in shapes if len(shape) >= place]
        wanted = {size for size in sizes if size != 1}
        if len(wanted) > 1:
            lists = " and ".join(str(shape) for shape in shapes)
            raise Refusal(
                f"{lists} do not broadcast: the sizes {' and '.join(map(str, sizes))}, dimension"
                f" {-place} counted from the right, differ and neither is 1.",
                "Make them equal, or make one of them 1 with unsqueeze or keepdim=True.",
            )
        result.append(wanted.pop() if wanted else 1)
    return tuple(reversed(result))


def as_layouts(operands: Sequence[Operand]) -> list[Layout]:
    """Numbers take part as tensors without dimensions."""
    return [x if isinstance(x, Layout) else Layout((), (), 0, number_dtype(x)) for x in operands]


def common_device(operands: Sequence[Operand]) -> str:
    """Where the result lies. Raises Refusal when tensors lie on different devices."""
    tensors = [x for x in operands if isinstance(x, Layout)]
    devices = {x.device for x in tensors if x.ndim or x.device != "cpu"}
    if len(devices) > 1:
        raise Refusal(
            f"The operands lie on different devices: {' and '.join(sorted(devices))}.",
            "Move one of them with .to(device).",
        )
    return devices.pop() if devices else "cpu"


def _stretching(operands: Sequence[Operand], shape: Ints) -> str:
    told = [
        f"{x.shape} is stretched to {shape}"
        for x in operands
        if isinstance(x, Layout) and x.shape != shape
    ]
    return "; ".join(told)


def elementwise(
    operands: Sequence[Operand], dtype: torch.dtype, dtype_why: str, converted: bool = False
) -> Outcome:
    """A new tensor computed from `operands`, element by element; `converted`: the CPU brings them
    to `dtype` first, in copies without gaps."""
    layouts = as_layouts(operands)
    if dtype == torch.complex32:
        raise NotCovered("complex32, which few operations know")
    shape = broadcast_shape([x.shape for x in layouts])
    if converted:
        layouts = [
            x if x.dtype == dtype else x.fresh(stride=preserved_stride(x), dtype=dtype)
            for x in layouts
        ]
    result = layouts[0].fresh(
        shape, elementwise_stride(layouts, shape), dtype, common_device(operands)
    )
    reasoning = [dtype_why]
    if stretching := _stretching(operands, shape):
        reasoning.insert(0, stretching + ".")
    if not result.is_contiguous:
        reasoning.append(f"the order of the operands' memory is kept: stride {result.stride}.")
    return copy(result, "new numbers need memory of their own.", reasoning)


def written(
    x: Layout, sources: Sequence[Operand], computed: torch.dtype | None, one_value: bool = False
) -> Outcome:
    """`x` changed in place by `sources`; `computed` is the dtype the numbers arrive in, None for
    any. With `one_value` in all of them, elements may share a cell. Raises Refusal where torch
    would."""
    if x.unwritable:
        raise Refusal(
            x.unwritable,
            "Write within torch.no_grad(), or use the form that gives a new tensor.",
        )
    shape = broadcast_shape([x.shape, *(s.shape for s in sources if isinstance(s, Layout))])
    if shape != x.shape:
        raise Refusal(
            f"The result has shape {shape}, but in place it must fit into {x.shape}: the tensor"
            " written to is never stretched.",
            "Use the form that gives a new tensor.",
        )
    common_device([x, *sources])
    if computed is not None and not can_be_stored(computed, x.dtype):
        raise Refusal(
            f"The result is {computed}, which a {x.dtype} tensor cannot take.",
            "Convert the tensor first, or use the form that gives a new tensor.",
        )
    if x.repeats and not one_value:
        raise Refusal(
            f"Several elements are the same cell (stride {x.stride}): they cannot be written one"
            " by one.",
            "clone() gives each element a cell of its own.",
        )
    for source in sources:
        if isinstance(source, Layout) and _overlaps_partly(x, source):
            raise Refusal(
                "Some cells would be read after they were written: both operands lie over the"
                " same memory in a different order.",
                "clone() one of them first.",
            )
    return Outcome(
        "in place",
        (x,),
        "the cells are overwritten: every tensor over this memory sees it, and its version counts"
        " one up.",
    )


def same_cells(x: Layout, y: Layout) -> bool:
    """Do both read the same cells in the same order: copying one to the other does nothing."""
    return x.memory is not None and (x.memory, x.shape, x.stride, x.offset, x.dtype) == (
        y.memory, y.shape, y.stride, y.offset, y.dtype
    )  # fmt: skip


def _overlaps_partly(x: Layout, y: Layout) -> bool:
    """`at::get_overlap_status` on two dense tensors: some, but not equal cells in equal order."""
    if x.memory != y.memory or not (x.is_dense and y.is_dense) or not (x.numel and y.numel):
        return False
    x_bytes = x.numel * x.dtype.itemsize
    y_bytes = y.numel * y.dtype.itemsize
    x_start, y_start = x.offset * x.dtype.itemsize, y.offset * y.dtype.itemsize
    if (x_start, x_bytes) == (y_start, y_bytes):
        return x.stride != y.stride
    return x_start < y_start + y_bytes and y_start < x_start + x_bytes
