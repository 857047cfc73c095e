"""The folder that relative paths of the user's code start from."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..system.errors import LabError


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
