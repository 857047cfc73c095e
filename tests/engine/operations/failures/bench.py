"""A console whose failed cells, and refused questions, are looked at."""

from __future__ import annotations

from engine.protocol import (
    CellSnapshot,
    ExplainCommand,
    ExplanationSnapshot,
    FailedOperands,
    PickCommand,
    PickSnapshot,
    ReductionCommand,
    ReductionSnapshot,
    RunCellCommand,
    Snapshot,
)
from engine.server.session import Session

SETUP = """
x = torch.zeros(3, 4)
m = torch.ones(3, 4)
images = torch.zeros(2, 3, 28, 28)
parts = [x, x.T]
net = nn.Linear(3, 2)

def product_of(a):
    return a @ a
"""


class Bench:
    def __init__(self) -> None:
        self._got: list[Snapshot] = []
        self._session = Session(self._got.append)
        self.run(SETUP)

    def run(self, source: str) -> CellSnapshot:
        self._session.handle(RunCellCommand(source=source))
        ended = self._got[-1]
        assert isinstance(ended, CellSnapshot), ended
        return ended

    def failed(self, source: str) -> FailedOperands | None:
        error = self.run(source).error
        assert error is not None
        return error.operands

    def explain(self, source: str, run: bool = False) -> ExplanationSnapshot:
        self._session.handle(ExplainCommand(source=source, run=run))
        told = self._got[-1]
        assert isinstance(told, ExplanationSnapshot), told
        return told

    def ask(self, command: PickCommand | ReductionCommand) -> PickSnapshot | ReductionSnapshot:
        self._session.handle(command)
        told = self._got[-1]
        assert isinstance(told, PickSnapshot | ReductionSnapshot), told
        return told
