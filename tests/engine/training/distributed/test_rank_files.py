"""What is told of the ranks of a run from the files that they leave."""

from __future__ import annotations

import signal
from pathlib import Path

import msgspec
import pytest

from engine.handlers.training.ranks_read import LINES
from engine.lab import Lab
from engine.protocol import RanksSnapshot, ReadRanksCommand
from engine.runs.record import Writer
from engine.server.session import handler_of
from engine.training.distributed.rank_files import (
    LOST,
    MAX_LINE_CHARS,
    RANKS,
    RankFailure,
    clear,
    failures_in,
    log_of,
    sign,
    signed,
    write_failures,
)


@pytest.fixture
def ranks(tmp_path: Path) -> Path:
    folder = tmp_path / RANKS
    folder.mkdir()
    return folder


def told(folder: Path, rank: int = 0) -> RanksSnapshot:
    lab = Lab(emit=lambda snapshot: None)
    command = ReadRanksCommand(folder=str(folder), rank=rank)
    (found,) = handler_of(ReadRanksCommand)(lab, command)
    assert isinstance(found, RanksSnapshot)
    return found


def test_each_rank_is_running_ended_elsewhere_or_failed(ranks: Path) -> None:
    own = Writer.own()
    sign(ranks, 0)
    writers = {
        1: msgspec.structs.replace(own, began_s=own.began_s - 60),  # a later process has the number
        2: msgspec.structs.replace(own, host="another machine"),
        3: own,
        10: own,
    }
    for rank, writer in writers.items():
        (ranks / f"rank-{rank}.json").write_bytes(msgspec.json.encode(writer))
    (ranks / "rank-4.json").write_bytes(b"{")
    (ranks / "rank-x.json").write_bytes(b"{")
    failures = [RankFailure(3, -signal.SIGKILL, ""), RankFailure(10, 1, "ValueError: no")]
    write_failures(ranks, failures)
    log_of(ranks, 0).write_text("first\nlast\n")
    rows = told(ranks.parent).rows
    assert [(row.rank, row.state) for row in rows] == [
        (0, "running"), (1, "ended"), (2, "elsewhere"), (3, "failed"), (4, "ended"), (10, "failed"),
    ]  # fmt: skip
    assert (rows[0].process, rows[0].host, rows[0].last) == (own.pid, own.host, "last")
    assert (rows[4].process, rows[4].host, rows[4].last) == (0, "", "")
    assert "SIGKILL" in rows[3].end and rows[5].end.endswith("1: ValueError: no")
    assert [row.end for row in rows if row.state != "failed"] == [""] * 4
    clear(ranks)
    assert signed(ranks) == {} and failures_in(ranks) == [] and not log_of(ranks, 0).exists()


def test_the_last_lines_of_a_rank_are_those_of_its_log(ranks: Path) -> None:
    sign(ranks, 0)
    sign(ranks, 1)
    lines = [f"line {number}" for number in range(20_000)]
    log = log_of(ranks, 1)
    log.write_text("\n".join(lines) + "\n\n")
    found = told(ranks.parent, rank=1)
    assert found.lines == tuple(lines[-LINES:]) and found.log == str(log)
    assert [row.last for row in found.rows] == ["", lines[-1]]
    log.write_text("x" * 10 * MAX_LINE_CHARS)
    assert told(ranks.parent, rank=1).lines == ("x" * MAX_LINE_CHARS,)
    other = told(ranks.parent, rank=0)
    assert (other.rank, other.lines, other.log) == (0, (), "")


@pytest.mark.parametrize(
    ("code", "is_first"),
    [(1, True), (-signal.SIGKILL, True), (LOST, False), (-signal.SIGTERM, False)],
)
def test_the_rank_that_failed_first_is_not_one_that_followed(code: int, is_first: bool) -> None:
    """torch's launcher ends the others by SIGTERM."""
    assert RankFailure(0, code, "").is_first == is_first
