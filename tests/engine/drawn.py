"""What loops have logged, as it is drawn."""

from __future__ import annotations

from collections.abc import Iterable

from engine.protocol import LoopSnapshot, Snapshot


def drawn(snapshots: Iterable[Snapshot], name: str) -> dict[int, float]:
    """The numbers that were logged by this name, by the steps that they are drawn at."""
    loops = [s for s in snapshots if isinstance(s, LoopSnapshot) and name in s.logged]
    points = [
        point
        for loop in loops
        for point in zip(loop.logged[name].steps, loop.logged[name].values, strict=True)
    ]
    steps = [step for step, _ in points]
    assert steps == sorted(steps)
    return dict(points)
