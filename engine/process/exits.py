"""How an engine was lost."""

from __future__ import annotations

from msgspec import Struct


class Exit(Struct, frozen=True):
    """How an engine that this process started has ended. `code` is the exit code, or minus the
    number of the signal that killed it.

    `log` is the end of what it wrote to stderr. `oom_kills` is the number of processes on this
    machine that the system has killed since for lack of memory; None if it is not known. `garbled`:
    it sent bytes that are not a message, and was therefore killed.
    """

    code: int
    log: str = ""
    oom_kills: int | None = None
    garbled: bool = False


class Departure(Struct, frozen=True):
    """How the engine inside a process of the user's was lost. `name` is the process in words.

    `lives`: whether the process does; None if that is not known, as of one on another machine.
    `code` is as in Exit; None if it is not known how the process ended.
    `garbled` is as in Exit, but the process goes on.
    """

    name: str
    lives: bool | None = None
    garbled: bool = False
    code: int | None = None
