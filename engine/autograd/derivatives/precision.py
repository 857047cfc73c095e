"""A function computed in another precision, with all tensors that it uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from ...system.private_torch import tree_map


def in_precision(function: Callable[..., Any], dtype: torch.dtype) -> Callable[..., Any]:
    """`function` with a copy in `dtype` in place of each floating tensor that it uses: arguments,
    weights of modules that it calls, globals, and tensors that it makes. The tensors themselves do
    not change."""

    def computed(*args: Any) -> Any:
        with _Precision(dtype):
            return function(*args)

    return computed


class _Precision(TorchFunctionMode):
    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self._dtype = dtype
        self._converted: dict[int, tuple[Tensor, Tensor]] = {}
        """By id, a tensor and its copy. The tensor is held so that its id is not given to another;
        the same copy is used each time, so that the function can read what it wrote in place."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        args, kwargs = tree_map(self._convert, (args, kwargs or {}))
        return tree_map(self._convert, func(*args, **kwargs))

    def _convert(self, value: Any) -> Any:
        if not isinstance(value, Tensor) or not value.is_floating_point():
            return value
        if value.dtype == self._dtype:
            return value
        if id(value) not in self._converted:
            self._converted[id(value)] = value, value.to(self._dtype)
        return self._converted[id(value)][1]
