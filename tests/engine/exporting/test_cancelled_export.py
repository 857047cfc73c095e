"""An export in a real engine: cancelled in the user's code and while another process works."""

from __future__ import annotations

import pytest

from engine.project.document import Model, TrainingSetup
from engine.project.subject import ConsoleSubject, Objective
from engine.protocol import (
    ErrorSnapshot,
    ExportCommand,
    ExportSnapshot,
    ExportStageSnapshot,
    InterruptSignal,
    RunCellCommand,
)
from tests.engine.processes import answers, wait_for_print

pytestmark = pytest.mark.usefixtures("forked_processes")

CELL = """
class Endless(nn.Module):
    def forward(self, x):
        print("runs", flush=True)
        while True:
            pass

endless = Endless()
net = nn.Linear(3, 2)
data = [(torch.ones(4, 3),)]
"""


def test_it_ends_where_it_is_and_leaves_the_file_that_was_there(shared_engine, tmp_path) -> None:
    answers(shared_engine, shared_engine.send(RunCellCommand(source=CELL)))
    path = tmp_path / "net.onnx"
    path.write_text("old")

    def command(name: str, format) -> ExportCommand:
        return ExportCommand(
            model=Model(), training=TrainingSetup(), format=format, path=str(path),
            subject=ConsoleSubject(name), objective=Objective(data="data"),
        )  # fmt: skip

    sent = shared_engine.send(command("endless", "pt2"))
    wait_for_print(shared_engine)
    shared_engine.signal(InterruptSignal())
    last = answers(shared_engine, sent)[-1]
    assert isinstance(last, ErrorSnapshot) and last.error.type == "KeyboardInterrupt"

    sent = shared_engine.send(command("net", "onnx"))
    while True:
        stage = shared_engine.receive()
        if isinstance(stage, ExportStageSnapshot) and stage.words == "Writing net.onnx":
            break
    ended = []
    while not ended:  # the first one may come between two of its steps
        shared_engine.signal(InterruptSignal())
        snapshot = shared_engine.receive(0.5)
        ended = [snapshot] if isinstance(snapshot, ErrorSnapshot) else []
        assert not isinstance(snapshot, ExportSnapshot)
    assert ended[0].error.type == "KeyboardInterrupt" and path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["net.onnx"]

    last = answers(shared_engine, shared_engine.send(command("net", "pt")))[-1]
    assert isinstance(last, ExportSnapshot) and last.verified
