"""What a cell leaves behind for the next one, and what the engine itself does not take over: the
modes of torch, and the folder that relative paths start from."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch

from ..system.errors import LabError
from ..system.private_torch import default_device


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
        return torch.is_grad_enabled(), torch.get_default_dtype(), default_device()

    @classmethod
    def _write(cls, modes: tuple[bool, torch.dtype, torch.device | None]) -> None:
        grad, dtype, device = modes
        torch.set_grad_enabled(grad)
        torch.set_default_dtype(dtype)
        if cls._read()[2] != device:
            torch.set_default_device(device)


class WorkingFolder:
    """The current folder while a cell runs; the rest of the engine keeps its own. `os.chdir` in a
    cell holds for later cells."""

    def __init__(self) -> None:
        self.entered = ""
        """The folder that cells were last told to run in: they import from there, too."""
        self._users = ""  # the engine's own

    def enter(self, folder: str) -> None:
        """Let cells run in `folder` from now on; "": where the program was started."""
        self._users = self.entered = folder

    @contextmanager
    def current(self) -> Iterator[None]:
        """Raises LabError if the folder is gone; the next cell then runs in the engine's own."""
        own = Path.cwd()
        if self._users:
            folder, self._users = self._users, ""
            try:
                os.chdir(folder)
            except OSError as error:
                raise LabError(
                    f"The folder {folder} cannot be entered: {error.strerror}.",
                    hint=f"Relative paths of the next cells start from {own}.",
                ) from error
            self._users = folder
        try:
            yield
        finally:
            with suppress(FileNotFoundError):  # the cell has removed the folder that it was in
                now = os.getcwd()
                self._users = "" if now == str(own) and not self._users else now
            os.chdir(own)
