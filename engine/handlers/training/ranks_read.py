"""Answers about the ranks of a run: who they are, and what they printed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ...lab import Lab
from ...protocol import RankRow, RanksSnapshot, RankState, ReadRanksCommand, Snapshot
from ...runs.record import Writer
from ...training.distributed.rank_files import (
    RANKS,
    RankFailure,
    failures_in,
    last_lines,
    log_of,
    signed,
)

LINES = 200
"""The last lines of a rank that are sent."""


def read_ranks(lab: Lab, command: ReadRanksCommand) -> Iterator[Snapshot]:
    """Answer with a RanksSnapshot; a rank that is not there has no lines."""
    if not command.folder:
        yield RanksSnapshot(folder="")
        return
    folder = Path(command.folder) / RANKS
    failures = {failure.rank: failure for failure in failures_in(folder)}
    rows = tuple(
        _row(folder, rank, writer, failures.get(rank)) for rank, writer in signed(folder).items()
    )
    log = log_of(folder, command.rank)
    yield RanksSnapshot(
        folder=command.folder,
        rows=rows,
        rank=command.rank,
        lines=tuple(last_lines(log, LINES)),
        log=str(log) if log.exists() else "",
    )


def _row(folder: Path, rank: int, writer: Writer | None, failure: RankFailure | None) -> RankRow:
    alive = writer.is_alive() if writer is not None else False
    state: RankState = "running" if alive else "ended"
    if alive is None:
        state = "elsewhere"
    elif failure is not None:
        state = "failed"
    return RankRow(
        rank=rank,
        process=writer.pid if writer else 0,
        host=writer.host if writer else "",
        state=state,
        last="".join(last_lines(log_of(folder, rank), 1)),
        end=failure.end if failure is not None else "",
    )
