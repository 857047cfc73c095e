"""Stand-ins for a line's variables: tensors with the same layouts and other memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn.parameter import is_lazy

from ...system.errors import LabError
from ...system.private_torch import neg_view
from ...tensors.readable import readable

MAX_COPIED_BYTES = 1 << 28
"""Up to this size a storage is copied to try an operation."""


def check_strided(t: torch.Tensor, text: str) -> None:
    """Raises LabError for tensors that are not plain strided tensors."""
    if is_lazy(t):
        raise LabError(
            f"`{text}` has no shape yet: it is not initialised.",
            hint="Call its module with a batch first.",
        )
    known = readable(t.conj() if t.is_conj() else t)  # reading a conjugate view would copy it
    if t.layout != torch.strided or t.is_nested or t.is_quantized or "packed" in known.note:
        raise LabError(
            f"`{text}` is not an ordinary strided tensor: operations on it are not explained.",
            hint="Run the line in the console to see its result.",
        )
    if known.dense is None and t.device.type != "meta":
        raise LabError(f"`{text}` cannot be read: {known.note}.")


class StandIns:
    """Makes stand-ins. Those of tensors that share memory share memory, which `storage` makes. A
    stand-in requires grad if its tensor does."""

    def __init__(self, storage: Callable[[torch.Tensor], torch.UntypedStorage]) -> None:
        self._storage = storage
        self._storages: dict[int, torch.UntypedStorage] = {}
        self._made: dict[int, torch.Tensor] = {}
        self._originals: list[torch.Tensor] = []  # while they live, no other tensor has their ids

    def of(self, t: torch.Tensor) -> torch.Tensor:
        if id(t) not in self._made:
            self._originals.append(t)
            self._made[id(t)] = _with_grad(self._over_storage(t), t)
        return self._made[id(t)]

    def _over_storage(self, t: torch.Tensor) -> torch.Tensor:
        key = t.untyped_storage()._cdata
        with torch.no_grad():
            if key not in self._storages:
                self._storages[key] = self._storage(t)
            made = torch.empty(0, dtype=t.dtype, device=t.device).set_(
                self._storages[key], t.storage_offset(), t.shape, t.stride()
            )
            made = made.conj() if t.is_conj() else made
            return neg_view(made) if t.is_neg() else made


def fake_storage(t: torch.Tensor) -> torch.UntypedStorage:
    """A storage of the size of `t`'s, for use within `fake_mode()`."""
    nbytes = t.untyped_storage().nbytes()
    return torch.empty(nbytes, dtype=torch.uint8, device=t.device).untyped_storage()


def copied_storage(t: torch.Tensor) -> torch.UntypedStorage:
    """A copy of `t`'s storage. Raises LabError if it is too large."""
    storage = t.untyped_storage()
    if storage.nbytes() > MAX_COPIED_BYTES:
        raise LabError(
            "This tensor is too large to try an operation in place on a copy of it.",
            hint="Run the line in the console.",
        )
    return storage.clone()


def _with_grad(made: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    """`made`, as a leaf, a view of a leaf or a result as `t` is: autograd refuses to write to some
    of these."""
    if not t.requires_grad:
        return made
    if t.is_leaf:
        return made.requires_grad_()
    with torch.enable_grad():
        base = t._base
        if base is not None and base.is_leaf and base.requires_grad:
            leaf = made.requires_grad_()
            return leaf.view_as(leaf)
        return _Result.apply(made, torch.ones((), requires_grad=True))


class _Result(torch.autograd.Function):
    """Makes a tensor a result of one that requires grad. Nothing is written to it, which torch
    refuses where several elements are in one cell."""

    @staticmethod
    def forward(ctx: Any, made: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        ctx.mark_dirty(made)
        return made
