"""Asking a real engine process: send, wait for the answers, run a cell."""

from __future__ import annotations

from engine.process import EngineProcess
from engine.protocol import (
    DoneSnapshot,
    FindingSnapshot,
    OutputSnapshot,
    RunCellCommand,
    Snapshot,
    VariablesSnapshot,
)

WAIT_S = 120.0


def receive(engine: EngineProcess) -> Snapshot:
    snapshot = engine.receive(WAIT_S)
    assert snapshot is not None, "the engine did not answer"
    return snapshot


def answers(engine: EngineProcess, command_id: int) -> list[Snapshot]:
    """All answers to a command, in order."""
    found = []
    while True:
        snapshot = receive(engine)
        if snapshot.reply_to == command_id:
            if isinstance(snapshot, DoneSnapshot):
                return found
            found.append(snapshot)


def run_cell(engine: EngineProcess, source: str) -> list[Snapshot]:
    """The answers to a cell, without its findings and the list of variables that follows each."""
    got = answers(engine, engine.send(RunCellCommand(source=source)))
    return [s for s in got if not isinstance(s, FindingSnapshot | VariablesSnapshot)]


def wait_for_print(engine: EngineProcess) -> None:
    while not isinstance(receive(engine), OutputSnapshot):
        pass
