"""A slice of the loss landscape, point by point."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from time import perf_counter

from ....lab import Lab
from ....protocol import MAX_POINTS_ALONG, LandscapeCommand, LandscapeSnapshot
from ....system.errors import LabError
from ....training.landscape.surface import Surface, multiples
from ...subjects.find import subject_of
from ..at_rest import require_rest

EVERY_S = 0.1


def read_landscape(lab: Lab, command: LandscapeCommand) -> Iterator[LandscapeSnapshot | None]:
    """Raises LabError while a run goes on, for a grid that cannot be had, and if the model or
    its data cannot be trained."""
    require_rest(lab)
    _check(command)
    subject = subject_of(lab, command)
    subject.check()
    objective = subject.objective()
    along = multiples(command.points, command.span)
    with subject.running(objective.generators):
        surface = Surface(
            subject.module, objective, along, command.is_plane, command.batches, command.seed
        )
        sent, due_s = 0, 0.0
        for _ in surface.points():
            now = perf_counter()
            if now < due_s and len(surface.losses) < surface.total:
                yield None
                continue
            due_s = now + EVERY_S
            yield LandscapeSnapshot(
                along=along,
                is_plane=command.is_plane,
                first=sent,
                losses=tuple(surface.losses[sent:]),
                total=surface.total,
                samples=surface.samples,
            )
            sent = len(surface.losses)


def _check(command: LandscapeCommand) -> None:
    if not 3 <= command.points <= MAX_POINTS_ALONG:
        raise LabError(
            f"A direction cannot have {command.points} points.",
            hint=f"Give 3 to {MAX_POINTS_ALONG}.",
        )
    if not (isfinite(command.span) and command.span > 0):
        raise LabError(f"The slice cannot reach to {command.span}.", hint="1 is usual.")
    if command.batches < 1:
        raise LabError("The loss needs one batch at least.", hint="Give 1 or more.")
