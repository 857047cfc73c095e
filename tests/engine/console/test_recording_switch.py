"""The switch for recording: without it nothing stands between a cell and torch."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.optim.optimizer import _global_optimizer_pre_hooks

from engine.protocol import (
    CellSnapshot,
    ErrorSnapshot,
    NewNamespaceCommand,
    ReadStorageCommand,
    RecordCommand,
    RunCellCommand,
    Snapshot,
    StartTraceCommand,
    StorageSnapshot,
    TraceSnapshot,
)
from engine.server.session import Session

CODE = """
x = torch.ones(3, requires_grad=True)
depth = torch._C._len_torch_function_stack()
call, backward = nn.Module.__call__, torch.Tensor.backward
y = (x * 2).sum()
x.data[0] = 5
"""


COUNTED = """
from torch.optim.optimizer import _global_optimizer_pre_hooks
hooks = len(_global_optimizer_pre_hooks)
"""


class Desk:
    def __init__(self) -> None:
        self.said: list[Snapshot] = []
        self.session = Session(self.said.append)
        self.lab = self.session.lab

    def send(self, command) -> list[Snapshot]:
        self.said.clear()
        self.session.handle(command)
        assert not [s for s in self.said if isinstance(s, ErrorSnapshot)], self.said
        return self.said

    def run(self, source: str) -> None:
        end = self.send(RunCellCommand(source=source))[-1]
        assert isinstance(end, CellSnapshot) and end.ok, end

    @property
    def recorded(self) -> int:
        return sum(map(len, self.lab.console.namespace.recordings.kept))

    @property
    def written_by(self):
        (storage,) = self.send(ReadStorageCommand(expression="x"))
        assert isinstance(storage, StorageSnapshot)
        return storage.written_by


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_off_no_mode_and_no_wrapper_of_ours_is_there(desk: Desk) -> None:
    plain = nn.Module.__call__, torch.Tensor.backward
    desk.run(CODE)
    variables = desk.lab.console.namespace.variables
    assert variables["depth"] == 1 and desk.recorded == 2
    assert desk.written_by is not None
    desk.send(RecordCommand(on=False))
    desk.run(CODE + COUNTED)
    assert (variables["depth"], desk.recorded) == (0, 2)
    assert (variables["call"], variables["backward"]) == plain
    assert variables["hooks"] == len(_global_optimizer_pre_hooks) + 1  # the loop's figures
    assert desk.written_by is None


def test_on_again_the_next_cell_is_recorded(desk: Desk) -> None:
    desk.send(RecordCommand(on=False))
    desk.run(CODE)
    desk.send(RecordCommand(on=True))
    desk.run("z = (x * 3).sum()")
    assert desk.recorded == 2


def test_a_new_namespace_keeps_the_switch(desk: Desk) -> None:
    desk.send(RecordCommand(on=False))
    desk.send(NewNamespaceCommand())
    desk.run(CODE)
    assert desk.recorded == 0


def test_a_trace_records_what_it_was_asked_to(desk: Desk) -> None:
    desk.send(RecordCommand(on=False))
    said = desk.send(StartTraceCommand(source=CODE))
    traces = [s for s in said if isinstance(s, TraceSnapshot)]
    assert traces and desk.recorded > 0
