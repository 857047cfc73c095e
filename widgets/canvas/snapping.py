"""The place where a dragged block stops: in line with others if it nearly is, else on the grid."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QLineF, QRectF

from widgets.layout import snap


def snap_move(
    moving: QRectF, others: Sequence[QRectF], tolerance: float
) -> tuple[float, float, list[QLineF]]:
    """Return (dx, dy, guides): what to add to a move, and the lines to show for it.

    `moving` is where the dragged blocks would lie, all in scene pixels. An edge or middle within
    `tolerance` of another block's own edge or middle takes its place.
    """
    dx, x = _align(
        (moving.left(), moving.center().x(), moving.right()),
        [(r.left(), r.center().x(), r.right()) for r in others],
        tolerance,
    )
    dy, y = _align(
        (moving.top(), moving.center().y(), moving.bottom()),
        [(r.top(), r.center().y(), r.bottom()) for r in others],
        tolerance,
    )
    dx = snap(moving.left()) - moving.left() if dx is None else dx
    dy = snap(moving.top()) - moving.top() if dy is None else dy
    settled = moving.translated(dx, dy)
    guides = []
    if x is not None:
        rects = [r for r in others if _near(x, (r.left(), r.center().x(), r.right()))]
        ends = [settled, *rects]
        guides.append(QLineF(x, min(r.top() for r in ends), x, max(r.bottom() for r in ends)))
    if y is not None:
        rects = [r for r in others if _near(y, (r.top(), r.center().y(), r.bottom()))]
        ends = [settled, *rects]
        guides.append(QLineF(min(r.left() for r in ends), y, max(r.right() for r in ends), y))
    return dx, dy, guides


def _align(
    mine: tuple[float, ...], theirs: Sequence[tuple[float, ...]], tolerance: float
) -> tuple[float | None, float | None]:
    """The smallest move that puts an edge or middle in line with another block's, and that line;
    (None, None) if it is too far."""
    pairs = [
        (other - own, other)
        for each in theirs
        for own, other in zip(mine, each, strict=True)
        if abs(other - own) <= tolerance
    ]
    return min(pairs, key=lambda pair: abs(pair[0])) if pairs else (None, None)


def _near(value: float, candidates: tuple[float, ...]) -> bool:
    return any(abs(value - each) < 0.5 for each in candidates)
