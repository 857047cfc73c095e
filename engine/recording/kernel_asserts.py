"""What a kernel on a GPU asserts of the numbers that it gets, checked before it runs.

There a label that no class has is told late, by an error that names another line and ends all use
of the device; on the CPU torch raises at once. These checks raise on a GPU what torch raises on the
CPU. They read numbers, which waits for the device; tensors on the CPU are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .remembered import Remembered

Check = Callable[[tuple, dict[str, Any]], None]
"""Is given the arguments of a call that is about to run. Raises IndexError or RuntimeError."""

IGNORED = -100
"""The label that torch's losses leave out, if no other is given."""
_limits: Remembered[tuple[int, float, float]] = Remembered()
"""Of tensors that were read: their version then, their smallest and their largest number."""


def checks() -> Mapping[Callable, Check]:
    """The functions of torch whose calls are checked on this machine; none without a GPU."""
    return CHECKS if torch.cuda.is_available() else {}


def is_on_gpu(t: Tensor) -> bool:
    return t.is_cuda


def _labels(args: tuple, kwargs: dict[str, Any]) -> None:
    """Of `cross_entropy` and `nll_loss`: each label is that of a class, or ignored."""
    scores, target = _argument(args, kwargs, 0, "input"), _argument(args, kwargs, 1, "target")
    if not _is_read(target) or target.is_floating_point() or type(scores) is not Tensor:
        return
    if not scores.ndim:
        return
    classes = scores.shape[1 if scores.ndim > 1 else 0]
    ignored = _argument(args, kwargs, 4, "ignore_index", IGNORED)
    least, most = _limits_of(target)
    if least >= 0 and most < classes:
        return
    wrong = target[(target.lt(0) | target.ge(classes)) & target.ne(ignored)]
    if wrong.numel():
        raise IndexError(f"Target {int(wrong[0])} is out of bounds.")


def _rows(args: tuple, kwargs: dict[str, Any]) -> None:
    """Of `embedding`: each index is that of a row."""
    index, table = _argument(args, kwargs, 0, "input"), _argument(args, kwargs, 1, "weight")
    if not _is_read(index) or not isinstance(table, Tensor) or table.ndim != 2:
        return
    least, most = _limits_of(index)
    if least < 0 or most >= len(table):
        raise IndexError("index out of range in self")


def _chances(args: tuple, kwargs: dict[str, Any]) -> None:
    """Of `binary_cross_entropy`: each number of its input is a probability."""
    given = _argument(args, kwargs, 0, "input")
    if not _is_read(given):
        return
    least, most = _limits_of(given)
    if not (least >= 0 and most <= 1):
        raise RuntimeError("all elements of input should be between 0 and 1")


CHECKS: Mapping[Callable, Check] = {
    F.cross_entropy: _labels,
    F.nll_loss: _labels,
    F.embedding: _rows,
    F.binary_cross_entropy: _chances,
}


def _argument(
    args: tuple, kwargs: dict[str, Any], place: int, name: str, otherwise: Any = None
) -> Any:
    return args[place] if len(args) > place else kwargs.get(name, otherwise)


def _is_read(t: Any) -> bool:
    """Whether it is a tensor of torch's own class on a GPU, whose numbers can be read now."""
    if type(t) is not Tensor or not is_on_gpu(t) or not t.numel():
        return False
    return not (torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing())


def _limits_of(t: Tensor) -> tuple[float, float]:
    """The smallest and the largest number; NaN if one is. They are read once for each version."""
    known = _limits.get(t)
    if known is None or known[0] != t._version:
        with torch._C.DisableTorchFunction(), torch.no_grad():
            least, most = torch.stack(torch.aminmax(t.detach())).tolist()
        known = t._version, least, most
        _limits.set(t, known)
    return known[1:]
