"""Flags that are set from outside the engine's thread while it works."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Control:
    """The flags of one engine: stop, pause, and whether code of the user's is running.

    `mark` is the id of the newest command that was sent before the last signal: a signal is
    meant for that job and older ones, so a job with a higher id starts with clear flags.
    """

    stop: threading.Event = field(default_factory=threading.Event)
    pause: threading.Event = field(default_factory=threading.Event)
    mark: int = 0
    in_user_code: bool = False

    def clear_before(self, command_id: int) -> None:
        """Forget signals that were sent before the command `command_id` was."""
        if self.mark < command_id:
            self.stop.clear()
            self.pause.clear()

    @contextmanager
    def user_code(self) -> Iterator[None]:
        """Code of the user's runs here, and an InterruptSignal raises KeyboardInterrupt in it."""
        self.in_user_code = True
        try:
            yield
        finally:
            self.in_user_code = False

    @contextmanager
    def own_code(self) -> Iterator[None]:
        """Inside of `user_code`: this is the lab's own code, which an interrupt may not cut."""
        outside, self.in_user_code = self.in_user_code, False
        try:
            yield
        finally:
            self.in_user_code = outside
