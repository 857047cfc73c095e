"""The tensors that an expression starts from: variables as they are, or as copies to try on."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from ...errors import LabError
from ..readable import readable
from .layout import Layout

MAX_TRIED_BYTES = 1 << 28
"""An operation in place is tried on a copy of the whole storage: up to here."""
MAX_CREATED_ELEMENTS = 1 << 24

CREATORS = frozenset(
    {"tensor", "zeros", "ones", "full", "arange", "linspace", "eye", "empty"}
    | {"zeros_like", "ones_like", "full_like"}
)
"""Factories that an expression may call within: they change nothing but take memory."""


class Leaves:
    """Reads layouts of live tensors, with one number for each storage, and copies them."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._kept: list[torch.UntypedStorage] = []  # an address is used again after a free
        self._count = 0
        self._copies: dict[int, torch.Tensor] = {}

    def new_memory(self) -> int:
        self._count += 1
        return self._count

    def layout(self, t: torch.Tensor, text: str) -> Layout:
        """Raises LabError for tensors that do not lie in a plain storage."""
        known = readable(t.conj() if t.is_conj() else t)  # reading a conjugate view would copy it
        if t.layout != torch.strided or t.is_nested or t.is_quantized or "packed" in known.note:
            raise LabError(
                f"`{text}` is no ordinary strided tensor: operations on it are not explained.",
                hint="Run the line in the console to see what torch makes of it.",
            )
        if known.dense is None and t.device.type != "meta":
            raise LabError(f"`{text}` cannot be read: {known.note}.")
        storage = t.untyped_storage()
        if storage._cdata not in self._numbers:
            self._numbers[storage._cdata] = self.new_memory()
            self._kept.append(storage)
        return Layout(
            shape=tuple(t.shape),
            stride=t.stride(),
            offset=int(t.storage_offset()),
            dtype=t.dtype,
            device=str(t.device),
            memory=self._numbers[storage._cdata],
            storage_bytes=storage.nbytes(),
            unwritable=_unwritable(t, text),
            conj=t.is_conj(),
            grad="own" if t.requires_grad else "",
            data=lambda: t.detach(),
        )

    def copy(self, t: torch.Tensor) -> torch.Tensor:
        """`t` over a copy of its storage. Tensors that share memory share the copy's too, and
        one that requires grad does so again. Raises LabError when the storage is large."""
        storage = t.untyped_storage()
        if storage.nbytes() > MAX_TRIED_BYTES:
            raise LabError(
                "This tensor is too large to try an operation in place on a copy of it.",
                hint="Run the line in the console.",
            )
        key = storage._cdata
        if key not in self._copies:
            with torch.no_grad():
                empty = torch.empty(0, dtype=torch.uint8, device=t.device)
                self._copies[key] = empty.set_(storage.clone())
            self._kept.append(storage)
        with torch.no_grad():
            copied = torch.empty(0, dtype=t.dtype, device=t.device).set_(
                self._copies[key].untyped_storage(), t.storage_offset(), t.shape, t.stride()
            )
            if t.is_conj():
                copied = copied.conj()
        if not t.requires_grad:
            return copied
        if t.is_leaf:
            return copied.requires_grad_()
        if _unwritable(t, ""):
            base = copied.detach().requires_grad_()
            with torch.enable_grad():
                return base.view_as(base)
        return copied


def _unwritable(t: torch.Tensor, text: str) -> str:
    if not torch.is_grad_enabled() or not t.requires_grad:
        return ""
    if t.is_leaf:
        return f"`{text}` is a leaf that requires grad: autograd needs its value as it was."
    base = t._base
    if base is not None and base.is_leaf and base.requires_grad:
        return f"`{text}` is a view of a leaf that requires grad: autograd needs that as it was."
    return ""


def create(function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> torch.Tensor:
    """Call a factory, having asked on the meta device how large the result would be."""
    sizes = [a for a in args if isinstance(a, int) and not isinstance(a, bool)]
    if function.__name__ in ("eye", "zeros", "ones", "empty", "full", "arange"):
        rough = math.prod(max(1, abs(n)) for n in sizes)
        nested = [n for a in args if isinstance(a, tuple | list) for n in a]
        rough *= math.prod(max(1, abs(n)) for n in nested if isinstance(n, int))
        if rough > MAX_CREATED_ELEMENTS:
            raise LabError("That tensor is too large to be made for an explanation.")
    try:
        return function(*args, **kwargs)
    except Exception as error:
        raise LabError(f"torch.{function.__name__} refuses: {error}") from error
