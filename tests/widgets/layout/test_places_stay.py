"""Places of some drawn graphs, as they were: a reader's pictures do not move by an edit of the
layout. Who changes it on purpose looks at pictures, and runs this file to print the new places."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from widgets.layout.nested_layout import layout_nested
from widgets.layout.outline import Outline

KEPT = Path(__file__).with_name("places.json")
SEEDS = range(24)


def outline_of(seed: int) -> Outline:
    """Boxes within boxes, of some sizes, with links between those that are closed."""
    rng = random.Random(seed)
    parents: list[int] = []
    is_open: list[bool] = []

    def fill(parent: int, depth: int) -> None:
        for _ in range(rng.randint(2, 7 if depth == 0 else 5)):
            box = len(parents)
            parents.append(parent)
            is_open.append(depth < 3 and rng.random() < 0.4)
            if is_open[box]:
                fill(box, depth + 1)

    fill(-1, 0)
    sizes = [(rng.choice((96, 184, 260)), rng.choice((32, 44, 90))) for _ in parents]
    closed = [box for box, opened in enumerate(is_open) if not opened]
    far = seed % 3 == 0
    ends = [
        (upper, lower)
        for place, upper in enumerate(closed)
        for lower in closed[place + 1 : None if far else place + 5]
        if rng.random() < (0.12 if far else 0.4)
    ]
    return Outline(
        np.array(parents, np.int64),
        np.array(is_open, bool),
        np.array(sizes, float),
        np.array(ends, np.int64).reshape(-1, 2),
    )


def places_of(seed: int) -> list[float]:
    """Size, boxes and ways of both directions and styles, as sums that each place weighs in."""
    outline, found = outline_of(seed), []
    for layout in (layout_nested(outline), layout_nested(outline, "forward", "orthogonal")):
        weights = np.arange(1, layout.rects.size + 1).reshape(layout.rects.shape)
        ways = np.arange(1, layout.points.size + 1).reshape(layout.points.shape)
        sums = (*layout.size, (layout.rects * weights).sum(), (layout.points * ways).sum())
        found += [round(float(number), 1) for number in sums]
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_boxes_and_lines_stay_where_they_were(seed: int) -> None:
    kept = json.loads(KEPT.read_text("utf-8"))[seed]
    assert places_of(seed) == pytest.approx(kept, abs=0.2)


if __name__ == "__main__":
    lines = ",\n".join(json.dumps(places_of(seed)) for seed in SEEDS)
    KEPT.write_text(f"[\n{lines}\n]\n", "utf-8")
