"""An engine process whose user's code is held."""

from __future__ import annotations

from engine.process import EngineProcess
from engine.protocol import (
    CellSnapshot,
    Command,
    DoneSnapshot,
    ErrorSnapshot,
    HeldSnapshot,
    InterruptSignal,
    OutputSnapshot,
    RunHeldCommand,
    Snapshot,
    StopSignal,
)
from tests.engine import processes


class HeldEngine:
    """Runs one command that runs the user's code, and asks while the code is held."""

    def __init__(self, engine: EngineProcess, command: Command) -> None:
        self.engine = engine
        self.printed = ""
        self.running = engine.send(command)

    def wait(self) -> HeldSnapshot:
        """Where the code is held next."""
        where = self.next_hold()
        assert where is not None, "the code has ended"
        return where

    def next_hold(self) -> HeldSnapshot | None:
        """Where the code is held next; None if it ends before."""
        while True:
            snapshot = self.receive()
            if isinstance(snapshot, HeldSnapshot) and snapshot.at:
                return snapshot
            assert not isinstance(snapshot, ErrorSnapshot), snapshot
            if isinstance(snapshot, DoneSnapshot) and snapshot.reply_to == self.running:
                return None

    def ask(self, command: Command) -> list[Snapshot]:
        """The answers to a command, without what the code says meanwhile."""
        asked, found = self.engine.send(command), []
        while True:
            snapshot = self.receive()
            if isinstance(snapshot, DoneSnapshot) and snapshot.reply_to == asked:
                return found
            if snapshot.reply_to == asked:
                found.append(snapshot)

    def type(self, source: str) -> str:
        """Run Python where the code is held; what it prints and gives."""
        before = len(self.printed)
        end = self.ask(RunHeldCommand(source=source))[-1]
        assert isinstance(end, CellSnapshot)
        return self.printed[before:] if end.ok else f"{end.error.type}: {end.error.message}"

    def end(self) -> list[Snapshot]:
        """What the code says up to its end."""
        found: list[Snapshot] = []
        while True:
            snapshot = self.receive()
            if isinstance(snapshot, DoneSnapshot) and snapshot.reply_to == self.running:
                return found
            found.append(snapshot)

    def stop(self) -> list[Snapshot]:
        self.engine.signal(StopSignal())
        self.engine.signal(InterruptSignal())
        return self.end()

    def receive(self) -> Snapshot:
        snapshot = processes.receive(self.engine)
        if isinstance(snapshot, OutputSnapshot):
            self.printed += snapshot.text
        return snapshot
