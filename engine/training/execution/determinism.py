"""Deterministic mode: only algorithms that give the same bits each time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_NEEDED = " does not have a deterministic implementation"
"""The words of torch's refusal after the operation's name."""


class Determinism:
    """In `with determinism:`, if it `is_on`, torch uses deterministic algorithms only, and raises
    RuntimeError for an operation that has none."""

    def __init__(self, is_on: bool, device: torch.device) -> None:
        self._is_on = is_on
        self._active = False
        self._other = _NORMAL
        if is_on and device.type == "cuda":
            # cuBLAS reads it when it first starts; without it, torch refuses matrix products.
            os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

    def __enter__(self) -> None:
        if self._is_on:
            self._other = _modes()
            _set_modes(_DETERMINISTIC)
            self._active = True

    def __exit__(self, *exception: object) -> None:
        if self._is_on:
            self._active = False
            _set_modes(self._other)

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """A context within `with determinism:` in which torch has the modes that it had before."""
        if not self._active:
            yield
            return
        self.__exit__()
        try:
            yield
        finally:
            self.__enter__()


def refused_operation(error: Exception) -> str:
    """The name of the operation that torch refuses in deterministic mode; empty for any other
    error."""
    if not isinstance(error, RuntimeError):
        return ""
    name, found, _ = str(error).partition(_NEEDED)
    return name.strip() if found else ""


_Modes = tuple[bool, bool, bool, bool]
_NORMAL: _Modes = (False, False, False, False)
_DETERMINISTIC: _Modes = (True, False, True, False)


def _modes() -> _Modes:
    return (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        torch.backends.cudnn.deterministic,
        torch.backends.cudnn.benchmark,
    )


def _set_modes(modes: _Modes) -> None:
    is_on, warns_only, cudnn, benchmark = modes
    torch.use_deterministic_algorithms(is_on, warn_only=warns_only)
    torch.backends.cudnn.deterministic = cudnn
    torch.backends.cudnn.benchmark = benchmark
