"""Opening, scrolling and selecting in a large tensor against a tensor of ten elements.

What the engine takes to answer each gesture, codec included, and how much its memory grows by it.
"""

from __future__ import annotations

import json
import statistics
from time import perf_counter

import psutil

from engine.protocol import (
    BitsCommand,
    BitsSnapshot,
    Command,
    ReadValuesCommand,
    RunCellCommand,
    Snapshot,
    StatisticsCommand,
    StatisticsSnapshot,
    ValuesSnapshot,
    encode_snapshot,
)
from engine.server.session import Session

ROUNDS = 21
ROWS, COLUMNS = 40, 16
LARGE = {
    "float32 of 10^8 (10^4 x 10^4)": "x = torch.rand(10_000, 10_000)",
    "float32 of 10^8, transposed": "x = torch.rand(10_000, 10_000).T",
    "float32 of 10^8 (a vector)": "x = torch.rand(100_000_000)",
    "int8 of 10^9": "x = torch.zeros(1_000_000_000, dtype=torch.int8)",
}
SMALL = "x = torch.rand(2, 5)"


class Engine:
    """One session and its tensor `x`."""

    def __init__(self, source: str) -> None:
        self._last: Snapshot | None = None
        self._bytes = 0
        self._session = Session(self._take)
        self.ask(RunCellCommand(source=source))

    def _take(self, snapshot: Snapshot) -> None:
        self._last, self._bytes = snapshot, len(encode_snapshot(snapshot))

    def ask(self, command: Command) -> Snapshot:
        self._session.handle(command)
        assert self._last is not None
        return self._last

    def timed_ms(self, *commands: Command, kinds: tuple[type, ...]) -> float:
        started = perf_counter()
        answers = [self.ask(command) for command in commands]
        took_ms = (perf_counter() - started) * 1e3
        assert tuple(map(type, answers)) == kinds, answers
        return took_ms

    def close(self) -> None:
        self._session.close()


def window(row: int, column: int, picture: bool = False) -> ReadValuesCommand:
    return ReadValuesCommand(
        expression="x",
        row_start=row,
        row_count=ROWS,
        column_start=column,
        column_count=COLUMNS,
        picture=picture,
    )


def gestures(engine: Engine) -> dict[str, float]:
    """Medians in ms: open (first window), scroll (to its middle and its end), select, heat map."""
    first = engine.ask(window(0, 0))
    assert isinstance(first, ValuesSnapshot)
    element = tuple(dim.size // 2 for dim in first.dims)
    read, values = (first.rows, first.columns), (ValuesSnapshot,)
    places = [(size // 2, side // 2) for size, side in [read]] + [(read[0] - 1, read[1] - 1)]
    found: dict[str, list[float]] = {}
    for turn in range(ROUNDS):
        place = places[turn % len(places)]
        times = {
            "open_ms": engine.timed_ms(window(0, 0), kinds=values),
            "scroll_ms": engine.timed_ms(window(*place), kinds=values),
            "select_ms": engine.timed_ms(
                BitsCommand(expression="x", index=element), kinds=(BitsSnapshot,)
            ),
            "heat_map_ms": engine.timed_ms(window(0, 0, picture=True), kinds=values),
        }
        for name, took_ms in times.items():
            found.setdefault(name, []).append(took_ms)
    return {name: statistics.median(times[1:]) for name, times in found.items()}


def counted_s(engine: Engine) -> tuple[float, float]:
    """Seconds to count all statistics, and the longest that one command kept the engine (ms)."""
    started, longest_ms, restart = perf_counter(), 0.0, True
    while True:
        before = perf_counter()
        answer = engine.ask(StatisticsCommand(expression="x", restart=restart))
        longest_ms = max(longest_ms, (perf_counter() - before) * 1e3)
        assert isinstance(answer, StatisticsSnapshot)
        restart = False
        if answer.done == answer.total:
            return perf_counter() - started, longest_ms


def rss_mib() -> float:
    return psutil.Process().memory_info().rss / 2**20


def measure(title: str, source: str) -> dict[str, float | str]:
    engine = Engine(source)
    engine.timed_ms(window(0, 0), kinds=(ValuesSnapshot,))
    before_mib = rss_mib()
    times = gestures(engine)
    gestures_mib = rss_mib() - before_mib
    all_s, longest_ms = counted_s(engine)
    growth_mib = rss_mib() - before_mib
    engine.close()
    return {
        "bench": "tensors",
        "tensor": title,
        **times,
        "gestures_growth_mib": gestures_mib,
        "statistics_s": all_s,
        "statistics_longest_ms": longest_ms,
        "growth_mib": growth_mib,
    }


def main() -> None:
    ten = measure("float32 of 10", SMALL)
    print(json.dumps(ten), flush=True)
    for title, source in LARGE.items():
        needed = 10**9 if "int8" in title else 4 * 10**8
        if psutil.virtual_memory().available < 2 * needed:
            print(json.dumps({"bench": "tensors", "tensor": title, "skipped": "no memory"}))
            continue
        row = measure(title, source)
        for gesture in ("open", "scroll", "select", "heat_map"):
            row[f"{gesture}_over_10"] = row[f"{gesture}_ms"] / ten[f"{gesture}_ms"]  # type: ignore
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
