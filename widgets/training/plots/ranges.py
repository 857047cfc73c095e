"""Which steps and values a live plot shows: all of them, a part around a step, those nearest to it.

Pure numbers of steps; `log` says that steps are drawn on a logarithmic scale.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from widgets.training.plots.series import Track
from widgets.training.plots.step_scale import MIN_PLACED, place_of, step_at

WHEEL_STEP = 1.25
"""The zoom of one notch of the wheel."""
MIN_STEPS = 4.0
"""The fewest steps that zooming in shows."""
MARGIN = 0.06
"""Room above and below the lines, as a fraction of their height."""
FLAT = 1e-9
"""Heights below this share of the values are the rounding of averages, not a line that moves."""

Range = tuple[float, float]


def whole(tracks: Iterable[Track], log: bool) -> Range:
    """The steps of all points, with some room at the end for those to come."""
    ends = [track.raw.x[[0, -1]] for track in tracks if len(track.raw)]
    if not ends:
        return 0.0, 1.0
    first, last = min(end[0] for end in ends), max(end[1] for end in ends)
    if log:
        first, last = max(first, 1.0), max(last, 1.0)
    if last == first:
        return first - 0.5, last + 0.5
    # The range grows in steps of a tenth of its magnitude, so that the axis is not redrawn at
    # every frame.
    step = 10.0 ** (math.floor(math.log10(last - first)) - 1)
    return first, first + math.ceil((last - first) / step) * step


def zoomed(all_steps: Range, shown: Range, notches: float, at: float, log: bool) -> Range | None:
    """The steps shown after the notches of a wheel at a step, which keeps its place; None if they
    are all."""
    first, last, x0, x1, place = (place_of(step, log) for step in (*all_steps, *shown, at))
    least = math.log10(1 + MIN_STEPS / max(at, MIN_PLACED)) if log else MIN_STEPS
    width = max((x1 - x0) / WHEEL_STEP**notches, min(least, last - first))
    if width >= last - first:
        return None
    share = min(max((place - x0) / (x1 - x0), 0.0), 1.0)
    begin = min(max(place - share * width, first), last - width)
    return step_at(begin, log), step_at(begin + width, log)


def with_room(low: float, high: float) -> Range:
    """The heights to show for lines from `low` to `high`."""
    is_flat = high - low <= FLAT * abs(high)
    room = max(abs(high) * 0.1, 1e-12) if is_flat else (high - low) * MARGIN
    return low - room, high + room


def nearest_step(tracks: Iterable[Track], step: float) -> float | None:
    """The step nearest to `step` at which any track has a point; None without points."""
    points = [track.raw.nearest(step) for track in tracks]
    known = [point[0] for point in points if point is not None]
    return min(known, key=lambda x: abs(x - step), default=None)


def value_at(track: Track, step: float | None) -> float | None:
    """The value of the point nearest to `step`, or for None of the newest point; None without
    points."""
    at = track.raw.x[-1] if len(track.raw) and step is None else step
    point = track.raw.nearest(at) if at is not None else None
    return None if point is None else point[1]
