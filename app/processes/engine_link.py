"""The link to an engine in another process: one that it starts, or one that it attaches to."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from app.processes.exit_reasons import (
    ExitReason,
    explain_departure,
    explain_exit,
    explain_no_start,
)
from app.processes.inbox import Inbox
from app.processes.link import DOES_NOT_READ, NO_ENGINE, Link
from engine.process import (
    Departure,
    EngineLost,
    EngineProcess,
    Exit,
    SpawnedEngine,
)
from engine.protocol import (
    AnySignal,
    Command,
    ContinueTrainingCommand,
    PauseSignal,
    Snapshot,
    StepTrainingCommand,
    WatchCommand,
)

if TYPE_CHECKING:
    from engine.connecting.dialing import Call


_STEERS = (ContinueTrainingCommand, StepTrainingCommand, WatchCommand)


class EngineLink(Link):
    """A link to an engine process; a separate thread reads its snapshots."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._process: EngineProcess | None = None
        self._reader: threading.Thread | None = None
        self._ending: list[threading.Thread] = []
        self._last_id = 0
        self._gave_up = False
        self._inbox = Inbox(self._on_arrived, self)

    @property
    def pid(self) -> int | None:
        """The engine's process id; None without an engine."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start the engine without waiting. `state` becomes "ready" when it has loaded torch."""
        if self._process is not None:
            return
        process = SpawnedEngine(self._last_id, self._superseded)
        try:
            process.start()
        except OSError as error:
            process.close()
            self._set_state("lost")
            self.lost.emit(explain_no_start(error))
            return
        self._begin(process)

    def attach(self, call: Call) -> None:
        from engine.process.attached import AttachedEngine

        self.close()
        if call.welcome.serves:
            # The numbers of commands are above all that windows before have sent to this engine: it
            # may still answer those.
            self._last_id = max(self._last_id, int(time.time() * 1000))
        process = AttachedEngine(call, self._last_id, self._superseded)
        process.start()
        self.attached = call.welcome
        self._begin(process)

    def _superseded(self, command: Command) -> None:
        self._ended(command.id)

    def _begin(self, process: EngineProcess) -> None:
        self._gave_up = False
        self._process = process
        self._set_state("starting")
        self._reader = threading.Thread(
            target=self._read, args=(process,), name="engine-reader", daemon=True
        )
        self._reader.start()

    def send(self, command: Command) -> int:
        self.unsent = NO_ENGINE
        if self._process is None:
            return 0
        try:
            self._last_id = self._process.send(command)
        except EngineLost:  # the reader reports it
            return 0
        except BufferError:
            self.unsent = DOES_NOT_READ
            return 0
        self._sent(self._last_id, command)
        if self.script is not None and isinstance(command, _STEERS):
            self.steered.emit(command)
        return self._last_id

    def signal(self, signal: AnySignal) -> None:
        if self._process is None:
            return
        is_pause = self.script is not None and isinstance(signal, PauseSignal)
        if is_pause:
            signal = PauseSignal(at_step=self.pause_at())
        try:
            self._process.signal(signal)
        except EngineLost:  # the reader reports it
            return
        if is_pause:
            self.steered.emit(signal)

    def go_to_step(self, step: int, is_held: bool) -> None:
        if self._process is None:
            return
        with suppress(EngineLost):  # the reader reports it
            self._process.signal(PauseSignal(at_step=step))
            if is_held:
                self._last_id = self._process.send(ContinueTrainingCommand())
                self._sent(self._last_id, ContinueTrainingCommand())

    def close(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        self._end(process)
        self._forget()
        self._set_state("lost")

    def wait_closed(self) -> None:
        while self._ending:
            self._ending.pop().join()

    def _read(self, process: EngineProcess) -> None:
        """Read snapshots in the reader's thread until the engine has ended."""
        try:
            while True:
                self._pass_on(process, process.receive())
        except EngineLost:
            process.stop(grace_s=1.0)  # if user code has closed the pipe, the engine still runs
            self._pass_on(process, process.exit())

    def _pass_on(self, process: EngineProcess, told: object) -> None:
        if process is self._process:  # else `close` has ended it
            with suppress(RuntimeError):  # the link was closed and deleted after that look
                self._inbox.put(process, told)

    def _on_arrived(self, process: object, item: object) -> None:
        if process is not self._process:
            return  # `close` has ended it
        if isinstance(item, Exit | Departure):
            self._on_process_ended(item)
        elif isinstance(item, Snapshot):
            self._receive(item)

    def _on_process_ended(self, how: Exit | Departure) -> None:
        process, self._process = self._process, None
        assert process is not None
        reason = explain_departure(how) if isinstance(how, Departure) else self._explain(how)
        self._end(process)
        self._forget()
        self._set_state("lost")
        self.lost.emit(reason)

    def _explain(self, exit_: Exit) -> ExitReason:
        running, checkpoint_step = self._running()
        return explain_exit(
            exit_.code,
            running=running,
            checkpoint_step=checkpoint_step,
            log=exit_.log,
            oom_kills=exit_.oom_kills,
            gave_up_waiting=self._gave_up,
            garbled=exit_.garbled,
        )

    def _end(self, process: EngineProcess) -> None:
        """End a process in a thread of its own: it has 3 s to end by itself."""
        reader, self._reader = self._reader, None

        def end() -> None:
            process.stop()
            if reader is not None:
                reader.join()
            process.close()

        self._ending = [thread for thread in self._ending if thread.is_alive()]
        self._ending.append(threading.Thread(target=end, name="engine-end"))
        self._ending[-1].start()

    def _give_up(self) -> None:
        if self._process is not None:
            self._gave_up = True
            self._process.kill()
