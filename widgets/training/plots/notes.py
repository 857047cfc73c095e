"""The user's words over a live plot, and those of runs that are drawn over it."""

from __future__ import annotations

from collections.abc import Sequence

from widgets.training.plots.plot_canvas import color_of
from widgets.training.plots.series import Overlay
from widgets.training.plots.step_scale import place_of
from widgets.training.plots.upright_lines import UprightLine

Notes = tuple[tuple[int, str], ...]
"""(step, words); the words are empty where they belong to another plot."""
NEAR_PX = 6
"""A note is meant if it is at most this far from the crosshair."""


def lines_of(notes: Notes, overlays: Sequence[Overlay]) -> list[UprightLine]:
    """The lines of the run, then those of the others in the colours of their curves."""
    own = [UprightLine(step, text) for step, text in notes]
    return own + [
        UprightLine(step, text, color_of(overlay.color))
        for overlay in overlays
        for step, text in overlay.notes
    ]


def noted_near(
    notes: Notes, step: int, view: tuple[float, float], pixels: int, log: bool
) -> int | None:
    """The step of the nearest note of this plot, if it is at most NEAR_PX away."""
    first, last, at = (place_of(x, log) for x in (*view, step))
    away = {abs(place_of(noted, log) - at): noted for noted, text in notes if text}
    nearest = min(away, default=None)
    if nearest is None or nearest > NEAR_PX * (last - first) / pixels:
        return None
    return away[nearest]
