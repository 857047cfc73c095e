"""A conversation with an engine process: sends commands, reads the answers, handles Ctrl+C."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from app.commands.failures import CommandFailure
from app.processes.exit_reasons import ExitReason, explain_exit
from engine.process import EngineLost, SpawnedEngine
from engine.protocol import (
    Command,
    DoneSnapshot,
    ErrorSnapshot,
    InterruptSignal,
    ReadySnapshot,
    Snapshot,
    StopSignal,
    TrainingSnapshot,
)

_LOOK_UP_S = 0.1
PATIENCE_S = 3.0
_STOP_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
"""Windows has no SIGHUP. A signal that is ignored stays ignored (`nohup` ignores SIGHUP), except
SIGINT."""


class EngineEnded(Exception):
    """The engine ended while it answered a command. `checkpoint_step` is the step of the run's last
    checkpoint, None without one."""

    def __init__(self, reason: ExitReason, checkpoint_step: int | None) -> None:
        super().__init__(f"{reason.title}. {reason.detail}")
        self.reason = reason
        self.checkpoint_step = checkpoint_step


class Conversation:
    """An engine process for the length of a `with` block.

    Ctrl+C asks the engine to stop, and interrupts the user's code. After three seconds, or at the
    second Ctrl+C, the engine is killed. SIGTERM and SIGHUP (the terminal was closed) do the same.
    `interrupted`: one of them came. `unagreed` as in Command, of all that is asked.
    """

    def __init__(self, doing: str) -> None:
        """`doing` says what the engine is used for ("training"), for the message if it dies."""
        self.interrupted = self.unagreed = False
        self._doing = doing
        self._presses = 0
        self._kill_at: float | None = None
        self._gave_up = False
        self._checkpoint_step: int | None = None
        self._engine = SpawnedEngine()
        self._handlers_before: dict[int, Any] = {}

    def __enter__(self) -> Conversation:
        if threading.current_thread() is threading.main_thread():
            # Set a flag: an exception could come while a message is half written.
            for number in _STOP_SIGNALS:
                if signal.getsignal(number) != signal.SIG_IGN or number == signal.SIGINT:
                    self._handlers_before[number] = signal.signal(number, self._on_signal)
        self._engine.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._engine.close()
        for number, handler in self._handlers_before.items():
            signal.signal(number, handler)

    def ready(self) -> ReadySnapshot:
        """Wait until torch has loaded. Raises EngineEnded."""
        while True:
            snapshot = self._receive()
            if isinstance(snapshot, ReadySnapshot):
                return snapshot

    def ask(self, command: Command) -> Iterator[Snapshot]:
        """Send a command and yield its answers. Raises EngineEnded."""
        try:
            command_id = self._engine.send(replace(command, unagreed=self.unagreed))
        except EngineLost:
            raise EngineEnded(self._explain(), self._checkpoint_step) from None
        while True:
            snapshot = self._receive()
            if snapshot.reply_to != command_id:
                continue
            if isinstance(snapshot, DoneSnapshot):
                return
            if isinstance(snapshot, TrainingSnapshot):
                if snapshot.checkpoint:
                    self._checkpoint_step = snapshot.checkpoint_step
                if snapshot.state == "stopped":
                    self._kill_at = None  # it has stopped: its processes may take longer to end
            yield snapshot

    def _receive(self) -> Snapshot:
        try:
            while True:
                snapshot = self._engine.receive(_LOOK_UP_S)
                self._mind_presses()
                if snapshot is not None:
                    return snapshot
        except EngineLost:
            raise EngineEnded(self._explain(), self._checkpoint_step) from None

    def _mind_presses(self) -> None:
        if self._presses == 0:
            return
        if not self.interrupted:
            self.interrupted = True
            self._kill_at = time.monotonic() + PATIENCE_S
            self._engine.signal(StopSignal())
            self._engine.signal(InterruptSignal())
        elif self._presses > 1 or (self._kill_at and time.monotonic() > self._kill_at):
            self._gave_up = True
            self._engine.kill()

    def _on_signal(self, signum: int, frame: object) -> None:
        self._presses += 1

    def _explain(self) -> ExitReason:
        end = self._engine.exit()
        return explain_exit(
            end.code,
            running=self._doing,
            checkpoint_step=self._checkpoint_step,
            log=end.log,
            oom_kills=end.oom_kills,
            gave_up_waiting=self._gave_up,
            garbled=end.garbled,
        )


def failure(place: object, snapshot: ErrorSnapshot) -> CommandFailure:
    """The failure for an ErrorSnapshot; its message names `place`, the file at fault."""
    message = snapshot.error.message
    lines = [message if str(place) in message else f"{place}: {message}"]
    for problem in snapshot.problems:
        where = ".".join(part for part in (problem.block, problem.port) if part)
        lines.append(f"  {where}: {problem.message}" if where else f"  {problem.message}")
    if snapshot.error.hint:
        lines.append(snapshot.error.hint)
    if snapshot.error.type != "LabError" and snapshot.error.traceback:
        lines.append(snapshot.error.traceback.rstrip())
    return CommandFailure("\n".join(lines))
