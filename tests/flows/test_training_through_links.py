"""A real training run at the other end of a link: paused, stepped, stopped, killed, resumed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import msgspec
import pytest

from app.processes.engine_link import EngineLink
from app.processes.inline_link import InlineLink
from engine.project import files
from engine.protocol import (
    CheckModelCommand,
    ContinueTrainingCommand,
    ErrorSnapshot,
    ModelSnapshot,
    PauseSignal,
    StepTrainingCommand,
    StopSignal,
    TrainCommand,
    TrainingSnapshot,
)

WAIT_MS = 120_000
MLP = Path(__file__).parents[2] / "assets" / "templates" / "mlp.tlab"


class Run:
    """What a link has told of training."""

    def __init__(self, link, qtbot) -> None:
        self.snapshots: list[TrainingSnapshot] = []
        self.others: list = []
        self._qtbot = qtbot
        link.snapshot.connect(self._take)

    def _take(self, snapshot) -> None:
        (self.snapshots if isinstance(snapshot, TrainingSnapshot) else self.others).append(snapshot)

    @property
    def last(self) -> TrainingSnapshot:
        return self.snapshots[-1]

    def wait_for(self, state: str, beyond: int = -1) -> TrainingSnapshot:
        def arrived() -> bool:
            faults = [s for s in self.others if isinstance(s, ErrorSnapshot)]
            assert not faults, faults
            return any(s.state == state and s.step > beyond for s in self.snapshots[-1:])

        self._qtbot.waitUntil(arrived, timeout=WAIT_MS)
        return self.last


@pytest.fixture(scope="module", params=[EngineLink, InlineLink], ids=["process", "inline"])
def link(request, qapp, forked_processes):
    link = request.param()
    link.start()
    yield link
    link.close()
    link.wait_closed()


@pytest.fixture
def command() -> TrainCommand:
    project = files.load(MLP)
    training = msgspec.structs.replace(project.training, epochs=100_000)
    return TrainCommand(model=project.model, training=training)


def test_pause_step_continue_stop(link, qtbot, command):
    run = Run(link, qtbot)
    link.send(command)
    run.wait_for("running")
    link.signal(PauseSignal())
    paused = run.wait_for("paused")
    link.send(StepTrainingCommand())
    assert run.wait_for("paused", beyond=paused.step).step == paused.step + 1
    check = link.send(CheckModelCommand(model=command.model, training=command.training))
    qtbot.waitUntil(lambda: any(s.reply_to == check for s in run.others), timeout=WAIT_MS)
    assert isinstance(run.others[-1], ModelSnapshot)
    assert run.last.step == paused.step + 1
    link.send(ContinueTrainingCommand())
    run.wait_for("running", beyond=paused.step + 10)
    link.signal(StopSignal())
    run.wait_for("stopped")
    qtbot.waitUntil(lambda: not link.busy, timeout=WAIT_MS)
    shown = [step for s in run.snapshots for step in s.steps.step]
    assert shown == sorted(set(shown))


def test_stopping_a_running_job_ends_it(link, qtbot, command):
    run = Run(link, qtbot)
    link.send(command)
    run.wait_for("running", beyond=0)
    link.stop_job()
    qtbot.waitUntil(lambda: not link.busy, timeout=WAIT_MS)
    assert run.last.state == "stopped"
    assert link.state == "ready"


def test_an_engine_killed_while_training_is_resumed_from_its_checkpoint(
    forked_processes, qapp, qtbot, command
):
    link = EngineLink()
    reasons = []
    link.lost.connect(reasons.append)
    run = Run(link, qtbot)
    link.start()
    try:
        link.send(command)
        qtbot.waitUntil(
            lambda: (
                run.snapshots != [] and run.last.checkpoint_step > 0 and run.last.state == "running"
            ),
            timeout=WAIT_MS,
        )
        assert link.pid is not None
        os.kill(link.pid, signal.SIGKILL)
        qtbot.waitUntil(lambda: len(reasons) == 1, timeout=WAIT_MS)
        assert f"last checkpoint is step {run.last.checkpoint_step:,}" in reasons[0].next_step
        assert "Resume" in reasons[0].next_step
        resumed_from = run.last.checkpoint_step
        before = len(run.snapshots)
        link.start()
        link.send(msgspec.structs.replace(command, checkpoint=run.last.checkpoint, paused=True))
        qtbot.waitUntil(lambda: len(run.snapshots) > before, timeout=WAIT_MS)
        assert run.snapshots[before].step == resumed_from
        link.signal(StopSignal())
        qtbot.waitUntil(lambda: not link.busy, timeout=WAIT_MS)
    finally:
        link.close()
        link.wait_closed()
