"""The values that a call's tensors had, kept from what is written into the tensors later."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from ..system.private_torch import is_functorch_wrapped_tensor
from ..tensors.readable import dtype_name, storage_fault
from .writes import storage_of, version_of

MAX_BYTES = 512 << 20


@dataclass(eq=False, slots=True, repr=False)
class KeptTensor:
    """A tensor as it was at version `version`, without a graph.

    `tensor` shares the memory while `shared` is True, and is a copy after that. It is None where
    the value could not be kept: `note` says why. A ragged dimension in `shape` is -1.
    """

    tensor: torch.Tensor | None
    version: int | None
    shape: tuple[int, ...] = ()
    dtype: str = ""
    note: str = ""
    shared: bool = False
    of: weakref.ref[torch.Tensor] | None = None
    """The tensor whose value this is, while it lives."""

    def __repr__(self) -> str:
        return f"{self.shape} {self.dtype}"


@dataclass(frozen=True, slots=True, repr=False)
class OtherArgument:
    """An argument that is neither tensor nor plain number or text: the name of its type."""

    text: str

    def __repr__(self) -> str:
        return self.text


class Keeper:
    """Keeps the values of tensors. It shares their memory, and copies it before a write.

    `full` becomes True when it would hold more than `max_bytes`; it keeps no values after that.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self.max_bytes = max_bytes
        self.held_bytes = 0
        self.full = False
        self._sharing: dict[int, list[KeptTensor]] = {}
        self._newest: dict[int, KeptTensor] = {}

    def keep(self, t: torch.Tensor) -> KeptTensor:
        """The value of `t` now. It makes no node. Call it where `detach` is not recorded."""
        known = self._newest.get(id(t))
        version = version_of(t)
        if (
            known is not None
            and known.of is not None
            and known.of() is t
            and known.version == version
            and (known.shared or known.tensor is None)
        ):
            return known
        kept = self._kept(t, version)
        self._newest[id(t)] = kept
        return kept

    def values(self, value: Any) -> Any:
        """A copy of `value`, a tree of tuples, lists and dicts, with `keep(t)` for each tensor."""
        if isinstance(value, torch.Tensor):
            return self.keep(value)
        if isinstance(value, list | tuple) and not isinstance(value, torch.Size):
            items = [self.values(item) for item in value]
            return items if isinstance(value, list) else tuple(items)
        if isinstance(value, dict):
            return {key: self.values(item) for key, item in value.items()}
        return value if isinstance(value, _PLAIN) else OtherArgument(type(value).__name__)

    def before_write(self, tensors: Iterable[torch.Tensor]) -> None:
        """Copy the kept values that share memory with `tensors`: a write follows."""
        for t in tensors:
            storage = storage_of(t)
            if storage is None:
                continue
            for kept in self._sharing.pop(storage._cdata, ()):
                self._save(kept)
            self.held_bytes -= storage.nbytes()

    def forget_the_dead(self) -> None:
        """Forget tensors that no longer live. For use between two recordings."""
        self._newest = {
            key: kept
            for key, kept in self._newest.items()
            if kept.of is not None and kept.of() is not None
        }

    def _kept(self, t: torch.Tensor, version: int | None) -> KeptTensor:
        try:
            shape = tuple(n if isinstance(n, int) else -1 for n in t.shape)
        except RuntimeError:  # a nested tensor has no one shape
            shape = ()
        kept = KeptTensor(None, version, shape, dtype_name(t.dtype), of=weakref.ref(t))
        if is_functorch_wrapped_tensor(t):
            kept.note = "inside a transform of torch.func: it has no value of its own"
            return kept
        storage = storage_of(t)
        known = storage is not None and storage._cdata in self._sharing
        size_bytes = 0 if storage is None or known else storage.nbytes()
        if not self._room(size_bytes):
            kept.note = self.full_note
            return kept
        try:
            kept.tensor = t.detach()
        except Exception as error:  # a tensor subclass may refuse anything
            kept.note = f"not kept: {error}"
            return kept
        if storage is None:  # sparse: its parts may be written to, which is not seen
            return kept
        kept.shared = True
        self.held_bytes += size_bytes
        self._sharing.setdefault(storage._cdata, []).append(kept)
        return kept

    def _save(self, kept: KeptTensor) -> None:
        assert kept.tensor is not None
        kept.shared = False
        size_bytes = kept.tensor.numel() * kept.tensor.element_size()
        if kept.tensor.layout == torch.strided and storage_fault(kept.tensor):
            kept.tensor, kept.note = None, storage_fault(kept.tensor)
        elif self._room(size_bytes):
            kept.tensor = kept.tensor.clone()
            self.held_bytes += size_bytes
        else:
            kept.tensor, kept.note = None, f"overwritten since, and {self.full_note}"

    def _room(self, size_bytes: int) -> bool:
        if self.held_bytes + size_bytes > self.max_bytes:
            self.full = True
            return False
        return True

    @property
    def full_note(self) -> str:
        """Why a value is missing that the recording had no memory left for."""
        return f"not kept: the values of this recording take more than {self.max_bytes >> 20:,} MiB"


TINY_ELEMENTS = 4


class TinyValues(NamedTuple):
    """The few numbers of a tensor; `tensor` gives them as a tensor again."""

    numbers: Any
    shape: torch.Size
    dtype: torch.dtype

    def tensor(self) -> torch.Tensor:
        return torch.tensor(self.numbers, dtype=self.dtype, device="cpu").reshape(self.shape)


def tiny_values(result: object) -> TinyValues | None:
    """The numbers of a result of at most TINY_ELEMENTS of them in the memory of the CPU; None for
    all others: reading them would take time."""
    if type(result) is not torch.Tensor or result.is_nested or result.numel() > TINY_ELEMENTS:
        return None
    if not result.requires_grad or not result.is_cpu or result.layout is not torch.strided:
        return None
    # Only a view's storage can be too small: it may be another's.
    if is_functorch_wrapped_tensor(result) or (result._is_view() and storage_fault(result)):
        return None
    return TinyValues(result.tolist(), result.shape, result.dtype)


_PLAIN = (
    type(None), bool, int, float, complex, str, bytes, slice, type(...), range,
    torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size, torch.Generator,
)  # fmt: skip
