"""Events of a run between its steps, with which the steps can be repeated from an earlier state."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ...project.document import TrainingSetup

MAX_CHANGES = 200


class Change(NamedTuple):
    """Another set-up, from after this step on."""

    step: int
    setup: TrainingSetup


class Past(Struct, frozen=True):
    """`changes` are repeated on the way to a step. `breaks` are the steps at which something
    happened that cannot be repeated, such as a weight that was edited: only a state of that step or
    a later one leads further. Steps before `since` were those of other code."""

    changes: tuple[Change, ...] = ()
    breaks: tuple[int, ...] = ()
    since: int = 0

    def leads(self, start: int, step: int) -> bool:
        """Whether the state of a step leads to a later one."""
        return start >= self.since and not any(start < each <= step for each in self.breaks)

    def changed(self, step: int, setup: TrainingSetup) -> Past:
        """This past with one more change. Beyond MAX_CHANGES the oldest change becomes a break."""
        changes, breaks = (*self.changes, Change(step, setup)), self.breaks
        if len(changes) > MAX_CHANGES:
            breaks = tuple(sorted({*breaks, changes[0].step + 1}))
            changes = changes[1:]
        return replace(self, changes=changes, breaks=breaks)

    def broken(self, step: int) -> Past:
        return replace(self, breaks=tuple(sorted({*self.breaks, step})))

    def until(self, step: int) -> Past:
        """The events before a step."""
        return Past(
            tuple(change for change in self.changes if change.step < step),
            tuple(each for each in self.breaks if each <= step),
            self.since,
        )
