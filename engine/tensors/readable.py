"""A plain tensor with the elements of any tensor, which is safe to read, or why there is none.

Some of torch's layouts and wrappers raise on `shape` or `sum()`; reading some kills the process. So
all code that shows a tensor calls `readable` first.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.nn.parameter import is_lazy

from ..system.private_torch import is_functorch_wrapped_tensor

MAX_EXPANDED_ELEMENTS = 1 << 24
"""Up to this many elements, a sparse tensor is expanded to a dense copy; of a larger one, only the
stored elements are read."""

_PACKED_DTYPE = re.compile(r"bit|float4|u?int[1-7]$")


@dataclass(frozen=True)
class Readable:
    """The readable form of a tensor.

    `dense` is a detached, strided CPU tensor of a real or complex dtype with the same elements
    (a view of the original where that is possible), None when the data cannot be read; then
    `note` says why. `shape` has -1 for a ragged dimension. With `partial`, `dense` holds only
    the stored elements (of shape (stored,)), all others being zero.
    """

    shape: tuple[int, ...]
    dtype: torch.dtype
    device: str
    dense: torch.Tensor | None
    note: str = ""
    partial: bool = False


def dtype_name(dtype: torch.dtype) -> str:
    """`torch.float32` -> `"float32"`."""
    return str(dtype).removeprefix("torch.")


def as_floats(t: torch.Tensor) -> torch.Tensor:
    """Real numbers as float32 if that has all numbers of their dtype, else as float64."""
    is_wide = t.dtype.itemsize > (4 if t.is_floating_point() else 2)
    return t.double() if is_wide else t.float()


def readable(t: torch.Tensor) -> Readable:
    """Read `t` without changing its graph, its version, the RNG or global state.

    Never raises for a tensor; `note` says what cannot be read.
    """
    with torch.no_grad(), torch.DisableTorchFunctionSubclass():
        try:
            return _readable(t)
        except Exception as error:  # an unknown layout: the note shows the error
            return Readable(
                _shape_or_empty(t), t.dtype, str(t.device), None, f"unreadable: {error}"
            )


def _readable(t: torch.Tensor) -> Readable:
    if is_lazy(t):
        return Readable((), t.dtype, str(t.device), None, "not initialised: it has no shape yet")
    if t.is_nested:
        return _nested(t)
    shape, dtype, device = tuple(int(n) for n in t.shape), t.dtype, str(t.device)

    def known(dense: torch.Tensor | None, note: str = "", partial: bool = False) -> Readable:
        return Readable(shape, dtype, device, dense, note, partial)

    if is_functorch_wrapped_tensor(t):
        return known(None, "inside a torch.func transform: it has no data of its own")
    if t.device.type == "meta":
        return known(None, "on the meta device: it has a shape but no data")
    if _PACKED_DTYPE.match(dtype_name(t.dtype)):
        return known(None, f"{dtype_name(t.dtype)} is packed: only shape and size can be shown")
    t = t.detach()
    if t.layout != torch.strided:
        return _expanded(t, known)
    reason = storage_fault(t)
    if reason:
        return known(None, reason)
    if t.is_quantized:
        t = t.dequantize()
    return known(_plain(t))


def _plain(t: torch.Tensor) -> torch.Tensor:
    return t.as_subclass(torch.Tensor).cpu().resolve_conj().resolve_neg()


def _expanded(t: torch.Tensor, known: Callable[..., Readable]) -> Readable:
    if t.layout not in (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc) or (
        t.numel() <= MAX_EXPANDED_ELEMENTS
    ):
        return known(_plain(t.to_dense()))
    stored = t.coalesce().values() if t.layout == torch.sparse_coo else t.values()
    return known(
        _plain(stored).flatten(),
        f"sparse with {stored.numel():,} of {t.numel():,} elements stored; all others are zero",
        partial=True,
    )


def _nested(t: torch.Tensor) -> Readable:
    parts = [part.detach() for part in t.unbind()]
    sizes = {tuple(int(n) for n in part.shape) for part in parts}
    inner = tuple(n[0] if len(set(n)) == 1 else -1 for n in zip(*sizes, strict=True))
    faults = [fault for part in parts if (fault := storage_fault(part))]
    if t.device.type == "meta" or faults:
        return Readable(
            (len(parts), *inner),
            t.dtype,
            str(t.device),
            None,
            faults[0] if faults else "on the meta device: it has a shape but no data",
        )
    flat = torch.cat([_plain(part).flatten() for part in parts]) if parts else None
    return Readable((len(parts), *inner), t.dtype, str(t.device), flat, "nested: -1 is ragged")


def storage_fault(t: torch.Tensor) -> str:
    """Why reading a strided tensor would leave its storage (and crash), or an empty string."""
    if t.numel() == 0:
        return ""
    storage = t.untyped_storage()
    if storage.device.type == "meta":
        return "a fake tensor: it has a shape but no data"
    last = t.storage_offset() + sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True))
    if storage.data_ptr() == 0 or (last + 1) * t.element_size() > storage.nbytes():
        return "its storage was released or shrunk: there is no data to read"
    return ""


def _shape_or_empty(t: torch.Tensor) -> tuple[int, ...]:
    try:
        return tuple(int(n) for n in t.shape)
    except Exception:
        return ()
