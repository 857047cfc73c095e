"""The shapes of a TorchScript program's values: each operation of torch is run on tensors of the
device "meta", which have a shape and no numbers. No code of the file runs."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .script_inputs import Inputs, Numbers, Weights
from .script_operations import CREATE, DTYPES, FOLLOWED, dtype_places

UNKNOWN = object()
MAX_SIZE = 2**40
MAX_TENSORS = 10_000


class MisfitError(Exception):
    """The operations do not fit these inputs."""


class ShapeRun:
    """The shapes of the values of one walk through a program, for inputs of given shapes."""

    def __init__(self, weights: Weights, numbers: Numbers, inputs: Inputs, batch: int) -> None:
        self._sources: Inputs = {**weights, **inputs}
        self._batch = batch
        self._found: dict[str, Any] = dict(numbers)

    def of(self, name: str) -> Any:
        """A tensor on "meta", a number or a list of them; UNKNOWN if it is not known."""
        if name not in self._found and name in self._sources:
            shape, dtype = self._sources[name]
            sizes = [self._batch if isinstance(size, str) else size for size in shape]
            self._found[name] = torch.empty(sizes, dtype=dtype, device="meta")
        return self._found.get(name, UNKNOWN)

    def keep(self, name: str, value: Any) -> None:
        self._found[name] = value

    def run(self, op: str, args: list[Any], named: dict[str, Any]) -> Any:
        """The result of an operation of torch. Raises MisfitError if torch refuses the shapes."""
        every = [*args, *named.values()]
        if any(_is_unknown(each) for each in every):
            return UNKNOWN
        if not any(_has_tensor(each) for each in every) and op not in CREATE:
            return _plainly(op, args)
        function = _OF_TENSORS.get(op)
        if function is None and (op in FOLLOWED or op in CREATE):
            function = getattr(torch.ops.aten, op)
        if function is None or not all(map(_is_bounded, every)):
            return UNKNOWN
        if op in _LISTS and max(args[0].shape, default=0) > MAX_TENSORS:
            return UNKNOWN
        named = {name: value for name, value in named.items() if name not in _WITHOUT_SHAPE}
        if op in CREATE or "device" in named:
            named["device"] = torch.device("meta")
        try:
            with torch.no_grad():
                args = [_dtype(v) if at in dtype_places(op) else v for at, v in enumerate(args)]
                if "dtype" in named:
                    named["dtype"] = _dtype(named["dtype"])
                return function(*args, **named)
        except _REFUSALS:
            return UNKNOWN
        except (RuntimeError, ValueError, IndexError, ZeroDivisionError, AssertionError) as error:
            if any(each in str(error) for each in _OF_ANOTHER_KIND):
                return UNKNOWN
            raise MisfitError(str(error)) from error


_REFUSALS = (
    NotImplementedError,
    TypeError,
    AttributeError,
    KeyError,
    OverflowError,
    MemoryError,
)
_WITHOUT_SHAPE = frozenset(["layout", "memory_format", "pin_memory", "non_blocking", "copy"])
_OF_ANOTHER_KIND = ("match any schema", "Declaration:", " meta ", "in the interpreter", "Meta")
"""Words of torch for arguments that it does not take here, and for what needs numbers."""

_LISTS = frozenset(["chunk", "split", "unbind"])
_OF_NUMBERS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "floordiv": operator.floordiv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "neg": operator.neg,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "sqrt": math.sqrt,
    "Int": int,
    "int": int,
    "Float": float,
    "float": float,
    "prim.NumToTensor": lambda number: number,
}
_OF_ANYTHING: dict[str, Callable[..., Any]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "__not__": operator.not_,
    "__and__": operator.and_,
    "__or__": operator.or_,
    "__getitem__": operator.getitem,
    "__contains__": operator.contains,
    "bool": bool,
    "len": len,
    "all": all,
    "any": any,
    "prim.min": min,
    "prim.max": max,
    "format": lambda *_: "",
    "is_grad_enabled": lambda: False,
    "is_autocast_enabled": lambda *_: False,
    "device": lambda *name: torch.device("meta"),
    "prim.type": lambda device: "cpu",
}


def _plainly(op: str, args: list[Any]) -> Any:
    """The result of an operation for values that are no tensors, in Python's numbers and lists."""
    function = _OF_ANYTHING.get(op)
    if function is None and all(isinstance(each, int | float) for each in args):
        function = _OF_NUMBERS.get(op)
    if function is None or not all(map(_is_bounded, args)):
        return UNKNOWN
    try:
        return function(*args)
    except (TypeError, ValueError, ArithmeticError, LookupError):
        return UNKNOWN


def _dtype(value: Any) -> Any:
    """Raises KeyError for a number that is no dtype."""
    return DTYPES[value] if type(value) is int else value


def _tensor_to(tensor: Tensor, *args: Any, **named: Any) -> Tensor:
    """Tensor.to, of any device."""
    for each in (*args, *named.values()):
        if isinstance(each, Tensor):
            return tensor.new_empty(tensor.shape, dtype=each.dtype)
        if type(each) is int or isinstance(each, torch.dtype):
            return tensor.new_empty(tensor.shape, dtype=_dtype(each))
    return tensor


_OF_TENSORS: dict[str, Callable[..., Any]] = {
    "size": lambda tensor, *dim: tensor.size(*dim) if dim else list(tensor.shape),
    "dim": lambda tensor: tensor.dim(),
    "len": len,
    "numel": lambda tensor: tensor.numel(),
    "prim.device": lambda tensor: tensor.device,
    "prim.dtype": lambda tensor: tensor.dtype,
    "prim.data": lambda tensor: tensor,
    "cpu": lambda tensor: tensor,
    "prim.requires_grad": lambda tensor: False,
    "prim.is_nested": lambda tensor: False,
    "__is__": operator.is_,
    "__isnot__": operator.is_not,
    "to": _tensor_to,
    "split": lambda tensor, size, dim=0: list(tensor.split(size, dim)),
}


def _is_unknown(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(_is_unknown(each) for each in value)
    return value is UNKNOWN


def _is_bounded(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_bounded, value))
    return not isinstance(value, int) or abs(value) <= MAX_SIZE or value == sys.maxsize


def _has_tensor(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(_has_tensor(each) for each in value)
    return isinstance(value, Tensor)


def is_several(value: Any) -> bool:
    """Whether an operation gave several tensors."""
    return isinstance(value, list | tuple) and bool(value) and all(map(_has_tensor, value))


def spec_of(value: Any) -> tuple[tuple[int, ...] | None, str]:
    """Shape and dtype of a tensor; of a number None and its type."""
    if isinstance(value, Tensor):
        return tuple(value.shape), str(value.dtype).removeprefix("torch.")
    return None, type(value).__name__ if isinstance(value, bool | int | float | list) else ""


def same(one: Any, other: Any) -> bool:
    """Whether two values are alike in all that shapes can depend on."""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return one.shape == other.shape and one.dtype == other.dtype
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return one is not UNKNOWN and type(one) is type(other) and one == other
