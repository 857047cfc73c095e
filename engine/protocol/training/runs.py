"""The runs of a project, as they lie in their folders."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from .snapshots import EpochRow

KeptState = Literal["running", "finished", "stopped", "failed", "cut off", "damaged"]


class RunRow(Struct, frozen=True, kw_only=True):
    """One run of a list.

    A run that is "cut off" has lost its process, one that is "damaged" cannot be read; `problem`
    says why. `title` is its subject. Times are seconds since 1970; `ended_s` is 0 if the end is not
    known. `step` of `loss` and `epoch` are the last ones that were written. `checkpoint` is the
    path of the last checkpoint, "" without one. `error` says why it failed, `origin` from which run
    and step it went on.
    """

    folder: str
    id: str = ""
    title: str = ""
    state: KeptState = "running"
    began_s: float = 0.0
    ended_s: float = 0.0
    step: int = 0
    loss: float | None = None
    epoch: EpochRow | None = None
    epochs: int = 0
    checkpoint: str = ""
    note: str = ""
    error: str = ""
    origin: str = ""
    problem: str = ""
