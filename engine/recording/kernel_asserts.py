"""What a kernel on a GPU asserts of the numbers that it gets, checked before it runs.

There a label that no class has is told late, by an error that names another line and ends all use
of the device; on the CPU torch raises at once. These checks raise on a GPU what torch raises on the
CPU. They read numbers, which waits for the device; tensors on the CPU are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from .compiled import only_calls_compiled
from .remembered import Remembered

Check = Callable[[tuple, dict[str, Any]], None]
"""Is given the arguments of a call that is about to run. Raises IndexError or RuntimeError."""

IGNORED = -100
"""The label that torch's losses leave out, if no other is given."""
_limits: Remembered[tuple[int, float, float]] = Remembered()
"""Of tensors that were read: their version then, their smallest and their largest number."""

_but_ignored: Remembered[tuple[float, float]] = Remembered()


def checks() -> Mapping[Callable, Check]:
    """The functions of torch whose calls are checked on this machine; none without a GPU."""
    return CHECKS if torch.cuda.is_available() else {}


def is_gpu(device: torch.device) -> bool:
    return device.type == "cuda"


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


class KernelChecks(TorchFunctionMode):
    """In this context the calls of CHECKS are checked before they run."""

    @only_calls_compiled
    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in CHECKS and not torch.compiler.is_dynamo_compiling():
            CHECKS[func](args, kwargs)
        return func(*args, **kwargs)


def know_limits(t: Tensor, source: Tensor) -> None:
    """`t` is a copy of `source`. If that is on the CPU and has whole numbers, such as labels or
    indices, their limits are read there: of `t`, on a GPU, this would wait for the device."""
    if source.is_cpu and source.dtype in (torch.int64, torch.int32) and source.numel():
        least, most = _read_limits(source)
        _limits.set(t, (t._version, least, most))
        if least == IGNORED:
            others = source[source != IGNORED]
            _but_ignored.set(t, _read_limits(others) if others.numel() else (inf, -inf))


def known_limits(t: Tensor) -> tuple[float, float] | None:
    """The smallest and the largest number of `t`, if they were read and it was not written to."""
    known = _limits.get(t)
    return None if known is None or known[0] != t._version else known[1:]


def limits_but_ignored(t: Tensor) -> tuple[float, float]:
    """Those of its numbers that are not IGNORED, if `known_limits` has IGNORED as the smallest."""
    return _but_ignored.get(t) or (inf, -inf)


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
    known = known_limits(t)
    if known is None:
        known = _read_limits(t)
        _limits.set(t, (t._version, *known))
    return known


def _read_limits(t: Tensor) -> tuple[float, float]:
    with torch.DisableTorchFunction(), torch.no_grad():
        least, most = torch.stack(torch.aminmax(t.detach())).tolist()
    return least, most
