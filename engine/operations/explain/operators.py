"""Python's operators with torch's names for them, and the functions of torch that are explained."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

OPERATORS: dict[type, tuple[str, Callable[..., Any]]] = {
    ast.Add: ("add", operator.add),
    ast.Sub: ("sub", operator.sub),
    ast.Mult: ("mul", operator.mul),
    ast.Div: ("div", operator.truediv),
    ast.FloorDiv: ("floor_divide", operator.floordiv),
    ast.Mod: ("remainder", operator.mod),
    ast.Pow: ("pow", operator.pow),
    ast.MatMult: ("matmul", operator.matmul),
    ast.LShift: ("bitwise_left_shift", operator.lshift),
    ast.RShift: ("bitwise_right_shift", operator.rshift),
    ast.BitAnd: ("bitwise_and", operator.and_),
    ast.BitOr: ("bitwise_or", operator.or_),
    ast.BitXor: ("bitwise_xor", operator.xor),
    ast.Eq: ("eq", operator.eq),
    ast.NotEq: ("ne", operator.ne),
    ast.Lt: ("lt", operator.lt),
    ast.LtE: ("le", operator.le),
    ast.Gt: ("gt", operator.gt),
    ast.GtE: ("ge", operator.ge),
    ast.USub: ("neg", operator.neg),
    ast.UAdd: ("positive", operator.pos),
    ast.Invert: ("bitwise_not", operator.invert),
}

CREATORS = frozenset(
    {"tensor", "zeros", "ones", "full", "arange", "linspace", "logspace", "eye", "empty"}
    | {"zeros_like", "ones_like", "full_like", "empty_like", "rand", "randn", "randint"}
    | {"rand_like", "randn_like", "randperm"}
)
"""Factories that an expression may call: they change nothing, but take memory."""

_PYTHON_METHODS = frozenset(
    {"bfloat16", "bool", "byte", "cdouble", "cfloat", "char", "double", "float", "half", "int"}
    | {"long", "short", "type", "unique", "ndimension", "nelement", "lu"}
)
"""Methods of tensors that only call other methods."""
_NOT_EXPLAINED = frozenset({"item", "backward", "data_ptr", "resize_", "resize_as_", "set_"})


def in_place(kind: type) -> Callable[..., Any]:
    """The function of `operator` for `x += y`, given the ast class of `x + y`'s operator."""
    return getattr(operator, f"i{OPERATORS[kind][1].__name__.strip('_')}")


def assign(x: Tensor, index: Any, value: Any) -> Tensor:
    x[index] = value
    return x


def is_method(name: str) -> bool:
    """Whether this method of a tensor is an operation of torch, which only returns or changes
    tensors."""
    known = hasattr(torch.ops.aten, name) or name in _PYTHON_METHODS
    return known and not name.startswith("_") and name not in _NOT_EXPLAINED


def is_function(function: object) -> bool:
    try:
        return function in _functions()
    except TypeError:  # an unhashable object is none
        return False


@cache
def _functions() -> frozenset[object]:
    """Torch's functions of tensors: not those that save, load or set something."""
    known = torch.overrides.get_overridable_functions()
    homes = (torch, torch.functional, torch.nn.functional, torch.linalg, torch.fft, torch.special)
    methods = (getattr(Tensor, name) for name in dir(Tensor) if is_method(name))
    return frozenset(f for home in homes for f in known[home]) | frozenset(methods)
