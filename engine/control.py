"""Flags that other threads set while the engine's thread works."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Control:
    """The flags of one engine: stop, pause, and whether the user's code is running.

    `mark` is the id of the newest command at the time of the last signal. A signal is meant for
    that command and older ones, so a command with a higher id starts with clear flags.
    """

    stop: threading.Event = field(default_factory=threading.Event)
    pause: threading.Event = field(default_factory=threading.Event)
    mark: int = 0
    in_user_code: bool = False

    def clear_before(self, command_id: int) -> None:
        """Clear the flags if their signals came before the command `command_id`."""
        if self.mark < command_id:
            self.stop.clear()
            self.pause.clear()

    @contextmanager
    def user_code(self) -> Iterator[None]:
        """Mark that the user's code runs: an InterruptSignal raises KeyboardInterrupt in it."""
        self.in_user_code = True
        try:
            yield
        finally:
            self.in_user_code = False

    @contextmanager
    def own_code(self) -> Iterator[None]:
        """Mark that the lab's own code runs inside `user_code`: an interrupt may not stop it
        midway."""
        outside, self.in_user_code = self.in_user_code, False
        try:
            yield
        finally:
            self.in_user_code = outside
