"""The functions that go element by element, each with the dtype it gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from .layout import Layout, preserved_stride
from .pointwise_rules import (
    as_layouts,
    broadcast_shape,
    common_device,
    elementwise,
    same_cells,
    written,
)
from .promotion import Operand, category, result_dtype
from .registry import NotCovered, Outcome, Refusal, copy, rule

Typing = Callable[[Sequence[Operand]], tuple[torch.dtype, str]]


def _floating(operands: Sequence[Operand]) -> tuple[torch.dtype, str]:
    dtype, why = result_dtype(operands)
    if category(dtype) >= 2:
        return dtype, why
    default = torch.get_default_dtype()
    return default, f"the result is a fraction: whole numbers give the default dtype, {default}."


def _real_floating(operands: Sequence[Operand]) -> tuple[torch.dtype, str]:
    _real_order(operands)
    return _floating(operands)


def _rounded(operands: Sequence[Operand]) -> tuple[torch.dtype, str]:
    dtype, why = _real_order(operands)
    if dtype == torch.bool:
        raise Refusal("bool has nothing to cut off.", "Convert it first: .int().")
    return dtype, why


def _fraction(operands: Sequence[Operand]) -> tuple[torch.dtype, str]:
    dtype, why = result_dtype(operands)
    if category(dtype) != 2:
        raise Refusal(f"{dtype} has no fractions.", "Convert it first: .float().")
    return dtype, why


def _truth(operands: Sequence[Operand]) -> tuple[torch.dtype, str]:
    return torch.bool, "the answers are true or false: bool."


def _no_bool(operands: Sequence[Operand]) -> tuple[torch.dtype, str]:
    if any(x.dtype == torch.bool for x in as_layouts(operands)):
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
        ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal",
         "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh",
         "atanh", "sigmoid"),
        _floating,
    ),
    **dict.fromkeys(("erf", "erfc", "erfinv", "lgamma", "digamma", "logit"), _real_floating),
    **dict.fromkeys(("relu", "floor", "ceil", "round", "trunc"), _rounded),
    "sign": _real_order,
    "sgn": result_dtype,
    "frac": _fraction,
    "absolute": _magnitude,
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
    return typing not in (_truth, _compared, _magnitude) and common_device(operands) == "cpu"


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
        if name in ("isinf", "isfinite") and category(input.dtype) < 2:  # known without a look
            answer = input.fresh(stride=preserved_stride(input), dtype=torch.bool)
            return copy(answer, "whole numbers are finite: a new tensor of one answer.")
        done = elementwise([input], *typing([input]), converted=_converts(typing, [input]))
        if typing is _magnitude and category(input.dtype) == 3:  # torch makes it as a clone
            real = done.result.fresh(stride=preserved_stride(input))
            return copy(real, done.why, done.reasoning)
        return done

    def in_place(x: Layout) -> Outcome:
        if typing is _magnitude and category(x.dtype) == 3:
            raise Refusal("A magnitude is real: it does not fit into complex numbers.", "abs().")
        return written(x, (), typing([x])[0])

    rule(name)(new)
    if not name.startswith("is"):
        rule(f"{name}_")(in_place)


for _name, _typing in _BINARY.items():
    _add_binary(_name, _typing)
for _name, _typing in _UNARY.items():
    _add_unary(_name, _typing)


@rule("round")
def round_(input: Layout, *, decimals: int = 0) -> Outcome:
    dtype, why = _rounded([input])
    if decimals and category(dtype) < 2:
        raise NotCovered("decimals of whole numbers")
    return elementwise([input], dtype, why, converted=True)


@rule("gelu", "silu", "elu", "leaky_relu", "selu", "softplus", "mish")
def activation(input: Layout, *options: Any, inplace: bool = False, **named: Any) -> Outcome:
    if options or named or inplace:
        raise NotCovered("an activation with options")
    if category(input.dtype) == 3 or not input.numel:
        raise NotCovered("an activation of such a tensor")
    return elementwise([input], *_fraction([input]))


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
