"""Operations that go element by element: broadcasting, promotion, and writing in place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from .layout import Ints, Layout, elementwise_stride, preserved_stride
from .promotion import Operand, can_be_stored, category, number_dtype, result_dtype
from .registry import NotCovered, Outcome, Refusal, copy, rule


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


def _layouts(operands: Sequence[Operand]) -> list[Layout]:
    """Numbers take part as tensors without dimensions."""
    return [x if isinstance(x, Layout) else Layout((), (), 0, number_dtype(x)) for x in operands]


def _device(operands: Sequence[Operand]) -> str:
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
    layouts = _layouts(operands)
    if dtype == torch.complex32:
        raise NotCovered("complex32, which few operations know")
    shape = broadcast_shape([x.shape for x in layouts])
    if converted:
        layouts = [
            x if x.dtype == dtype else x.fresh(stride=preserved_stride(x), dtype=dtype)
            for x in layouts
        ]
    result = layouts[0].fresh(shape, elementwise_stride(layouts, shape), dtype, _device(operands))
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
    _device([x, *sources])
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


# -- dtypes of each family -----------------------------------------------------------------------

Typing = Callable[[Sequence[Operand]], tuple[torch.dtype, str]]


def _floating(operands: Sequence[Operand]) -> tuple[torch.dtype, str]:
    dtype, why = result_dtype(operands)
    if category(dtype) >= 2:
        return dtype, why
    default = torch.get_default_dtype()
    return default, f"the result is a fraction: whole numbers give the default dtype, {default}."


def _truth(operands: Sequence[Operand]) -> tuple[torch.dtype, str]:
    return torch.bool, "the answers are true or false: bool."


def _no_bool(operands: Sequence[Operand]) -> tuple[torch.dtype, str]:
    if any(x.dtype == torch.bool for x in _layouts(operands)):
        raise Refusal("bool tensors cannot be subtracted.", "Use ^ (exclusive or) or ~ (not).")
    return result_dtype(operands)


def _real_order(operands: Sequence[Operand]) -> tuple[torch.dtype, str]:
    dtype, why = result_dtype(operands)
    if category(dtype) == 3:
        raise Refusal("Complex numbers have no order.", "Compare their abs().")
    return dtype, why


def _compared(operands: Sequence[Operand]) -> tuple[torch.dtype, str]:
    _real_order(operands)
    return _truth(operands)


def _whole(operands: Sequence[Operand]) -> tuple[torch.dtype, str]:
    dtype, why = result_dtype(operands)
    if category(dtype) >= 2:
        raise Refusal(f"Bits of {dtype} cannot be combined.", "Use whole numbers or bool.")
    return dtype, why


def _powered(operands: Sequence[Operand]) -> tuple[torch.dtype, str]:
    exponent = operands[1]
    if isinstance(exponent, int) and exponent < 0 and category(result_dtype(operands)[0]) < 2:
        raise Refusal("Whole numbers to a negative power are no whole numbers.", "Use floats.")
    return result_dtype(operands)


def _magnitude(operands: Sequence[Operand]) -> tuple[torch.dtype, str]:
    dtype, why = result_dtype(operands)
    if category(dtype) == 3:
        return dtype.to_real(), "a magnitude is a real number."
    if dtype == torch.bool:
        raise Refusal("bool has no magnitude.", "Convert it first: .int().")
    return dtype, why


def _signed(operands: Sequence[Operand]) -> tuple[torch.dtype, str]:
    dtype, why = result_dtype(operands)
    if dtype == torch.bool:
        raise Refusal("bool has no negative.", "~x is the opposite of a bool tensor.")
    return dtype, why


_BINARY: dict[str, Typing] = {
    **dict.fromkeys(("add", "mul", "multiply"), result_dtype),
    **dict.fromkeys(("sub", "subtract"), _no_bool),
    **dict.fromkeys(("div", "divide", "true_divide", "atan2"), _floating),
    **dict.fromkeys(("floor_divide", "remainder", "fmod"), _real_order),
    **dict.fromkeys(("maximum", "minimum"), _real_order),
    "pow": _powered,
    **dict.fromkeys(("eq", "ne", "logical_and", "logical_or", "logical_xor"), _truth),
    **dict.fromkeys(("lt", "le", "gt", "ge"), _compared),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), _whole),
}
_UNARY: dict[str, Typing] = {
    **dict.fromkeys(
        ("exp", "log", "log2", "log10", "sqrt", "rsqrt", "sin", "cos", "tan", "tanh", "sigmoid",
         "reciprocal", "log1p", "expm1", "erf"),
        _floating,
    ),
    **dict.fromkeys(("relu", "sign", "floor", "ceil", "round", "trunc"), _real_order),
    "abs": _magnitude,
    "neg": _signed,
    "negative": _signed,
    "square": lambda operands: result_dtype([*operands, 2]),
    "logical_not": _truth,
    "bitwise_not": _whole,
    "isnan": _truth,
    "isinf": _truth,
    "isfinite": _truth,
}  # fmt: skip


def _tensor_or_number(value: object) -> Operand:
    if isinstance(value, Layout | bool | int | float | complex):
        return value
    raise Refusal(f"A tensor or a number is needed here, not {value!r}.")


def _converts(typing: Typing, operands: Sequence[Operand]) -> bool:
    return typing not in (_truth, _compared, _magnitude) and _device(operands) == "cpu"


def _add_binary(name: str, typing: Typing) -> None:
    def new(input: Operand, other: Any, *, alpha: Any = 1, rounding_mode: Any = None) -> Outcome:
        operands = [input, _tensor_or_number(other)]
        chosen = result_dtype if rounding_mode is not None and name == "div" else typing
        converted = _converts(chosen, operands)
        return elementwise(operands, *chosen(operands), converted=converted)

    def in_place(x: Layout, other: Any, *, alpha: Any = 1, rounding_mode: Any = None) -> Outcome:
        operands = [x, _tensor_or_number(other)]
        chosen = result_dtype if rounding_mode is not None and name == "div" else typing
        return written(x, operands[1:], chosen(operands)[0])

    rule(name)(new)
    if name not in ("maximum", "minimum"):
        rule(f"{name}_")(in_place)


def _add_unary(name: str, typing: Typing) -> None:
    def new(input: Layout) -> Outcome:
        done = elementwise([input], *typing([input]), converted=_converts(typing, [input]))
        if typing is _magnitude and category(input.dtype) == 3:  # torch makes it as a clone
            real = done.result.fresh(stride=preserved_stride(input))
            return copy(real, done.why, done.reasoning)
        return done

    def in_place(x: Layout) -> Outcome:
        return written(x, (), typing([x])[0])

    rule(name)(new)
    if not name.startswith("is"):
        rule(f"{name}_")(in_place)


for _name, _typing in _BINARY.items():
    _add_binary(_name, _typing)
for _name, _typing in _UNARY.items():
    _add_unary(_name, _typing)


@rule("clamp", "clip")
def clamp(input: Layout, min: Any = None, max: Any = None) -> Outcome:
    operands: list[Operand] = [input, *(b for b in (min, max) if b is not None)]
    if len(operands) == 1:
        raise Refusal("clamp needs a smallest or a largest number.")
    dtype, why = _real_order(operands)
    tensors = [x for x in operands if isinstance(x, Layout)]
    return elementwise(tensors, dtype, why)


@rule("clamp_", "clip_")
def clamp_(x: Layout, min: Any = None, max: Any = None) -> Outcome:
    bounds: list[Operand] = [b for b in (min, max) if b is not None]
    if not bounds:
        raise Refusal("clamp_ needs a smallest or a largest number.")
    return written(x, bounds, _real_order([x, *bounds])[0])


@rule("fill_")
def fill_(x: Layout, value: Any) -> Outcome:
    if isinstance(value, Layout) and value.ndim:
        raise Refusal("fill_ takes one number, not a tensor with dimensions.", "Use copy_.")
    return written(x, (), None, one_value=not isinstance(value, Layout))


@rule("zero_")
def zero_(x: Layout) -> Outcome:
    return written(x, (), None, one_value=True)


@rule("copy_")
def copy_(x: Layout, src: Layout, non_blocking: bool = False) -> Outcome:
    del non_blocking
    if same_cells(x, src) and not x.unwritable:
        return Outcome("in place", (x,), "copied onto itself, nothing changes.")
    moved = Layout(src.shape, src.stride, src.offset, src.dtype, x.device, src.memory)
    return written(x, [moved], None)


@rule("where")
def where(condition: Layout, input: Any = None, other: Any = None) -> Outcome:
    if input is None or other is None:
        raise NotCovered("where with a condition alone")
    if condition.dtype not in (torch.bool, torch.uint8):
        raise Refusal(
            f"The condition must be bool, not {condition.dtype}.", "Compare it, or .bool()."
        )
    branches = [_tensor_or_number(input), _tensor_or_number(other)]
    dtype, why = result_dtype(branches)
    return elementwise([condition, *branches], dtype, why)


@rule("masked_fill")
def masked_fill(x: Layout, mask: Layout, value: Any) -> Outcome:
    shape = broadcast_shape([x.shape, mask.shape])
    _check_mask(mask)
    del value
    return copy(x.fresh(shape), "a copy in C order, then filled where the mask is True.")


@rule("masked_fill_")
def masked_fill_(x: Layout, mask: Layout, value: Any) -> Outcome:
    del value
    _check_mask(mask)
    return written(x, [mask], None)


def _check_mask(mask: Layout) -> None:
    if mask.dtype != torch.bool:
        raise Refusal(f"A mask is bool, not {mask.dtype}.", "Compare it (mask > 0), or .bool().")
