"""The processes of a run that several train together, and what each has printed."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ..commands import Command
from ..snapshots import Snapshot

RankState = Literal["running", "ended", "failed", "elsewhere"]


class RankRow(Struct, frozen=True):
    """One rank: its process on `host`, and the last line that it printed. `end` says how it ended,
    if it failed; "elsewhere": on another machine, of which nothing is known here."""

    rank: int
    process: int
    host: str
    state: RankState
    last: str = ""
    end: str = ""


class ReadRanksCommand(Command, frozen=True, kw_only=True):
    """Read who trains or trained the run of a folder, and the end of what the rank `rank` printed
    -> RanksSnapshot. Without a folder there are none."""

    handler = "training.ranks_read:read_ranks"
    newest_only = True
    while_running = True
    folder: str
    rank: int = 0


class RanksSnapshot(Snapshot, frozen=True, kw_only=True):
    """The ranks of a run, none if one process trained it; `lines` are the last ones of `rank`, all
    of which are in the file `log`."""

    folder: str
    rows: tuple[RankRow, ...] = ()
    rank: int = 0
    lines: tuple[str, ...] = ()
    log: str = ""
