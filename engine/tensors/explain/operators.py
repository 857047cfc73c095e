"""Python's operators by torch's names, and what may be asked of a tensor without running it."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

import torch

from .layout import Layout

OPERATORS: dict[type, tuple[str, Callable[..., Any]]] = {
    ast.Add: ("add", operator.add),
    ast.Sub: ("sub", operator.sub),
    ast.Mult: ("mul", operator.mul),
    ast.Div: ("div", operator.truediv),
    ast.FloorDiv: ("floor_divide", operator.floordiv),
    ast.Mod: ("remainder", operator.mod),
    ast.Pow: ("pow", operator.pow),
    ast.MatMult: ("matmul", operator.matmul),
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
    ast.Invert: ("bitwise_not", operator.invert),
}
REFLECTED = {"add": "add", "mul": "mul", "eq": "eq", "ne": "ne", "lt": "gt", "le": "ge",
              "gt": "lt", "ge": "le"}  # fmt: skip
IN_PLACE: dict[str, Callable[..., Any]] = {
    "add_": operator.iadd, "sub_": operator.isub, "mul_": operator.imul, "div_": operator.itruediv,
    "floor_divide_": operator.ifloordiv, "remainder_": operator.imod, "pow_": operator.ipow,
    "bitwise_and_": operator.iand, "bitwise_or_": operator.ior, "bitwise_xor_": operator.ixor,
}  # fmt: skip
PROPERTIES: dict[str, Callable[[Layout], Any]] = {
    "shape": lambda x: x.shape,
    "ndim": lambda x: x.ndim,
    "dtype": lambda x: x.dtype,
    "device": lambda x: torch.device(x.device),
}
QUESTIONS: dict[str, Callable[..., Any]] = {
    "size": lambda x, dim=None: x.shape if dim is None else x.shape[dim],
    "stride": lambda x, dim=None: x.stride if dim is None else x.stride[dim],
    "dim": lambda x: x.ndim,
    "numel": lambda x: x.numel,
    "storage_offset": lambda x: x.offset,
    "is_contiguous": lambda x: x.is_contiguous,
    "element_size": lambda x: x.dtype.itemsize,
}
