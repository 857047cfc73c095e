"""The modes of torch that a cell leaves behind for the next one, and that the engine has not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


class UsersModes:
    """The user's own grad mode, default dtype and default device, which are set while a cell
    runs."""

    def __init__(self) -> None:
        self._user_modes = self._engine_modes = self._read()

    @contextmanager
    def users(self) -> Iterator[None]:
        engine_modes = self._engine_modes = self._read()
        self._write(self._user_modes)
        try:
            yield
        finally:
            self._user_modes = self._read()
            self._write(engine_modes)

    @contextmanager
    def defaults(self) -> Iterator[None]:
        """Set the user's default dtype and device, and leave the grad mode as it is."""
        engine_modes = self._read()
        self._write((engine_modes[0], *self._user_modes[1:]))
        try:
            yield
        finally:
            self._write(engine_modes)

    @contextmanager
    def engines(self) -> Iterator[None]:
        """Within `users`: set the engine's grad mode and default dtype."""
        users = self._read()
        self._write((*self._engine_modes[:2], users[2]))
        try:
            yield
        finally:
            self._write(users)

    @staticmethod
    def _read() -> tuple[bool, torch.dtype, torch.device | None]:
        # A default device that was set, also the CPU, slows every function of torch down.
        context = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
        device = None if context is None else context.device
        return torch.is_grad_enabled(), torch.get_default_dtype(), device

    @classmethod
    def _write(cls, modes: tuple[bool, torch.dtype, torch.device | None]) -> None:
        grad, dtype, device = modes
        torch.set_grad_enabled(grad)
        torch.set_default_dtype(dtype)
        if cls._read()[2] != device:
            torch.set_default_device(device)
