"""The interface to files of the engine's machine, where that is another one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal, Protocol

Wanted = Literal["file", "folder", "save"]
Done = Callable[[str], object]
"""Is called at the end of a copy: with the reason why it failed, or with "" if it worked."""
Stop = Callable[[], object]
"""Stops a copy that has not ended yet. A stopped copy counts as failed."""


class OtherFiles(Protocol):
    """`machine` names the engine's machine; it is "" while the engine sees the files of this one.
    `folder` is one there for files on their way; "" until the engine has made it."""

    folder: str

    @property
    def machine(self) -> str: ...

    def ask(self, title: str, wanted: Wanted, name: str = "") -> str:
        """The path there that the user chooses; "" if the user cancels."""
        ...

    def fetch(self, there: str, here: Path, done: Done) -> Stop:
        """Copy a file or a folder of that machine to this one."""
        ...

    def bring(self, here: Path, there: str, done: Done) -> None:
        """Copy a file of this machine to that one."""
        ...

    def clear(self) -> None:
        """Remove the copies there."""
        ...


class NoOtherFiles:
    """The engine is on this machine."""

    folder = machine = ""

    def ask(self, title: str, wanted: Wanted, name: str = "") -> str:
        raise NotImplementedError

    def fetch(self, there: str, here: Path, done: Done) -> Stop:
        raise NotImplementedError

    def bring(self, here: Path, there: str, done: Done) -> None:
        raise NotImplementedError

    def clear(self) -> None:
        raise NotImplementedError
