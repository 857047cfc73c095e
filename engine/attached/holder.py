"""Holding the code of a process that is attached to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType

from ..console.held import HeldCode
from ..lab.holding import Holder
from ..protocol import HeldAt


class AttachedHolder(Holder):
    """`entered()` is a context around each hold."""

    entered: Callable[[], AbstractContextManager[None]]

    @contextmanager
    def _looking_at(self, frame: FrameType, at: HeldAt, after: str = "") -> Iterator[HeldCode]:
        with self.entered(), super()._looking_at(frame, at, after) as held:
            yield held
