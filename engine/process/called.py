"""The engine of a window that runs elsewhere: it is called when the window starts it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ..connecting.dialing import Call
from ..connecting.greeting import Refused, Unwelcome, Welcome
from ..protocol import Command, Snapshot
from .attached import AttachedEngine
from .engine_process import EngineLost
from .exits import Departure, Unreached
from .outbox import Outbox

LOOK_S = 0.2
"""How often a thread that waits for the answer looks whether the window has given up."""


class CalledEngine(AttachedEngine):
    """An engine that `way` calls. The first `receive` starts a thread for the call, which may take
    seconds; messages wait meanwhile. `name` is its place in words. `answered(welcome)` is called on
    that thread."""

    def __init__(
        self,
        name: str,
        way: Callable[[], Call],
        answered: Callable[[Welcome], object],
        last_id: int = 0,
        superseded: Callable[[Command], object] = lambda command: None,
    ) -> None:
        super().__init__(None, last_id, superseded)
        self._name, self._way, self._answered = name, way, answered
        self._why_not: Unreached | None = None
        self._is_calling = False
        self._has_answered = threading.Event()

    def start(self) -> None:
        self._outbox = Outbox(self._write)

    def receive(self, timeout_s: float | None = None) -> Snapshot | None:
        if not self._is_calling:
            self._is_calling = True
            threading.Thread(target=self._dial, name="engine-caller", daemon=True).start()
        began_s = time.monotonic()
        while not self._has_answered.wait(LOOK_S):
            if self._has_left:
                raise EngineLost
            if timeout_s is not None and time.monotonic() - began_s >= timeout_s:
                return None
        if self._connection is None:
            self._lost = True
            raise EngineLost
        return super().receive(timeout_s)

    def stop(self, grace_s: float = 3.0) -> None:
        if self._connection is None:
            self._has_left = True
        super().stop(grace_s)

    def exit(self) -> Departure | Unreached:
        return self._why_not or super().exit()

    def _dial(self) -> None:
        try:
            call = self._way()
        except Unwelcome as error:
            is_taken = isinstance(error, Refused) and error.is_taken
            self._why_not = Unreached(self._name, str(error), is_taken)
        else:
            self._take(call)
            if self._has_left:
                call.connection.close()
            else:
                self._connection = call.connection
                self._answered(call.welcome)
        self._has_answered.set()

    def _write(self, data: bytes) -> None:
        while not self._has_answered.wait(LOOK_S):
            if self._has_left:
                raise OSError("the window waits no longer")
        if self._connection is None:
            raise OSError("nothing answers")
        super()._write(data)
