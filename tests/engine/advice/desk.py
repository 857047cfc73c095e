"""A session that runs cells and keeps what they are told."""

from __future__ import annotations

from typing import Any

from engine.protocol import CellSnapshot, Finding, FindingSnapshot, RunCellCommand, Snapshot
from engine.server.session import Session


class Desk:
    def __init__(self) -> None:
        self.said: list[Snapshot] = []
        self.session = Session(self.said.append)
        self.cells = 0

    @property
    def variables(self) -> dict[str, Any]:
        return self.session.lab.console.namespace.variables

    def run(self, source: str, ends_well: bool = True) -> list[Finding]:
        """The findings about a cell."""
        self.said.clear()
        self.cells += 1
        self.session.handle(RunCellCommand(id=self.cells, source=source))
        end = self.said[-1]
        assert isinstance(end, CellSnapshot)
        assert end.ok is ends_well, end.error
        found = [each.finding for each in self.said if isinstance(each, FindingSnapshot)]
        for each in found:
            assert each.text and all(each.evidence) and each.evidence and each.fix, each
        return found

    def only(self, source: str) -> Finding:
        """The one finding about a cell."""
        (finding,) = self.run(source)
        return finding
