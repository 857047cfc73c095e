"""Files of the ranks in a run's folder: who they are, what they printed, how they failed.

ranks/rank-0.json  rank-0.log  rank-1.json  ...  failures.json
"""

from __future__ import annotations

import signal
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from ...runs.record import Writer

RANKS = "ranks"
"""The folder in that of a run."""
_FAILURES = "failures.json"
LOST = 3
"""The exit code of a rank that ended since another one had."""
_TAIL_BYTES = 64_000
MAX_LINE_CHARS = 400


class RankFailure(NamedTuple):
    """A rank that ended with an exit code, below 0 by a signal; `message` is its error's."""

    rank: int
    exit_code: int
    message: str

    def __str__(self) -> str:
        return f"Rank {self.rank} {self.end}"

    @property
    def end(self) -> str:
        if self.exit_code < 0:
            return f"was ended by {signal.Signals(-self.exit_code).name}."
        if self.exit_code == LOST:
            return "ended since another one had."
        told = f": {self.message}" if self.message else "."
        return f"ended with exit code {self.exit_code}{told}"

    @property
    def is_first(self) -> bool:
        """Whether it did not just end since another rank had."""
        return self.exit_code not in (LOST, -getattr(signal, "SIGTERM", 15))


def clear(folder: Path) -> None:
    """Remove what the ranks of a former start have left. Raises OSError."""
    for old in (*folder.glob("rank-*.*"), folder / _FAILURES):
        old.unlink(missing_ok=True)


def log_of(folder: Path, rank: int) -> Path:
    return folder / f"rank-{rank}.log"


def sign(folder: Path, rank: int) -> None:
    """Let the folder tell that this process is a rank. Raises OSError."""
    (folder / f"rank-{rank}.json").write_bytes(msgspec.json.encode(Writer.own()))


def signed(folder: Path) -> dict[int, Writer | None]:
    """The processes of the ranks; None for one that cannot be read."""
    found: dict[int, Writer | None] = {}
    for path in folder.glob("rank-*.json"):
        name = path.stem.removeprefix("rank-")
        if name.isdecimal():
            found[int(name)] = None
            with suppress(OSError, msgspec.MsgspecError):  # it is being written, or damaged
                found[int(name)] = msgspec.json.decode(path.read_bytes(), type=Writer)
    return dict(sorted(found.items()))


def write_failures(folder: Path, failures: list[RankFailure]) -> None:
    """Raises OSError."""
    (folder / _FAILURES).write_bytes(msgspec.json.encode(failures))


def failures_in(folder: Path) -> list[RankFailure]:
    """The failures of a run that has ended; none if they cannot be read."""
    with suppress(OSError, msgspec.MsgspecError):
        return msgspec.json.decode((folder / _FAILURES).read_bytes(), type=list[RankFailure])
    return []


def last_lines(log: Path, lines: int) -> list[str]:
    """The last lines that a rank printed; none if there is no such file."""
    try:
        with log.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - _TAIL_BYTES))
            text = file.read(_TAIL_BYTES).decode(errors="replace")
    except OSError:
        return []
    return [line[:MAX_LINE_CHARS] for line in text.rstrip().splitlines()[-lines:]]
