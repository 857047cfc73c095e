"""What happened to a run between its steps: how to repeat them from an earlier state."""

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
    """`changes` are repeated on the way. What cannot be repeated are `breaks`: at each of these
    steps there was another optimizer, say, or a weight was edited; the state of that step has it.
    Steps before `since` were those of other code."""

    changes: tuple[Change, ...] = ()
    breaks: tuple[int, ...] = ()
    since: int = 0

    def leads(self, start: int, step: int) -> bool:
        """Whether the state of a step leads to a later one."""
        return start >= self.since and not any(start < each <= step for each in self.breaks)

    def changed(self, step: int, setup: TrainingSetup) -> Past:
        """With one change more. Of very many, the first cannot be repeated any more."""
        changes, breaks = (*self.changes, Change(step, setup)), self.breaks
        if len(changes) > MAX_CHANGES:
            breaks = tuple(sorted({*breaks, changes[0].step + 1}))
            changes = changes[1:]
        return replace(self, changes=changes, breaks=breaks)

    def broken(self, step: int) -> Past:
        return replace(self, breaks=tuple(sorted({*self.breaks, step})))

    def until(self, step: int) -> Past:
        """What happened before a step."""
        return Past(
            tuple(change for change in self.changes if change.step < step),
            tuple(each for each in self.breaks if each <= step),
            self.since,
        )
