"""What every link knows of its engine: its state, and the command that runs."""

from __future__ import annotations

import pytest

from engine.project.document import Model, TrainingSetup
from engine.protocol import (
    CellSnapshot,
    HelloCommand,
    InterruptSignal,
    ReadVariablesCommand,
    RunCellCommand,
    Snapshot,
    StopSignal,
    TrainCommand,
    VariablesSnapshot,
)

TRAIN = TrainCommand(model=Model(), training=TrainingSetup())


def test_busy_is_told_when_the_first_command_goes_out_and_the_last_has_ended(link):
    busy: list[bool] = []
    snapshots: list[Snapshot] = []
    link.get_ready()
    link.busy_changed.connect(busy.append)
    link.snapshot.connect(snapshots.append)
    link.send(HelloCommand())
    link.send(HelloCommand())
    link.finish(1)
    assert busy == [True] and link.busy
    link.finish(2)
    link.finish(2)
    assert busy == [True, False] and not link.busy
    assert snapshots == []  # that a command has ended is the link's own matter


def test_only_an_engine_that_has_loaded_torch_is_ready(link):
    states: list[str] = []
    link.state_changed.connect(lambda *state: states.append(state[0]))
    link.start()
    link.send(HelloCommand())
    link.answer(CellSnapshot(ok=True, error=None))
    assert states == ["starting"] == [link.state]
    link.get_ready()
    assert link.state == "ready"


def test_a_link_that_closes_is_not_busy(link):
    busy: list[bool] = []
    link.get_ready()
    link.send(HelloCommand())
    link.busy_changed.connect(busy.append)
    link.close()
    link.close()
    assert busy == [False] and not link.busy


def test_a_job_is_waited_for_no_longer_once_all_have_ended(link):
    link.get_ready()
    link.stop_job()
    assert link.signals == []
    link.send(TRAIN)
    link.stop_job()
    assert link.signals == [StopSignal()]  # a run has a second to end between two steps
    assert link._interrupt_timer.isActive() and link._kill_timer.isActive()
    link.finish()
    assert not link._interrupt_timer.isActive() and not link._kill_timer.isActive()
    link.send(RunCellCommand(source=""))
    link.stop_job()
    assert link.signals[1:] == [StopSignal(), InterruptSignal()]
    assert link._kill_timer.isActive()


def test_what_is_computed_beside_a_run_is_stopped_alone(link):
    link.get_ready()
    link.send(TRAIN)
    command_id = link.send(HelloCommand())
    link.stop_command(command_id)
    assert link.signals == [StopSignal(command=command_id), InterruptSignal(command=command_id)]
    assert not link._kill_timer.isActive()
    link.finish(1)
    link.signals.clear()
    link.stop_command(command_id)
    assert link.signals == [StopSignal(command=command_id), InterruptSignal(command=command_id)]
    assert link._kill_timer.isActive()
    link.finish(command_id)
    link.stop_command(command_id)
    assert len(link.signals) == 2 and not link._kill_timer.isActive()


def test_each_of_two_stopped_commands_is_waited_for(link):
    link.get_ready()
    first, second = link.send(HelloCommand()), link.send(HelloCommand())
    link.stop_job()
    link.stop_command(second)
    link.finish(second)
    assert link._kill_timer.isActive()
    link.finish(first)
    assert not link._kill_timer.isActive()


def test_a_run_that_has_stopped_may_take_its_time_to_end_its_processes(link, training_snapshot):
    link.get_ready()
    link.send(TRAIN)
    link.stop_job()
    link.answer(training_snapshot(state="running"))
    assert link._kill_timer.isActive()
    link.answer(training_snapshot(state="stopped"))
    assert not link._kill_timer.isActive() and link.busy


def test_ready_and_ended_are_told_before_the_state_and_after_the_snapshot(bench, link):
    told: list[str] = []
    link.snapshot.connect(lambda s: told.append(type(s).__name__))
    link.became_ready.connect(lambda: told.append(f"became ready, {link.state}"))
    link.ended.connect(lambda: told.append(f"ended, {link.state}"))
    link.state_changed.connect(told.append)
    link.get_ready()
    link.close()
    link.close()
    assert told == [
        "starting",
        "ReadySnapshot",
        "became ready, ready",
        "ready",
        "ended, lost",
        "lost",
    ]


@pytest.mark.parametrize(
    ("commands", "words"),
    [
        ((), ("", None)),
        ((HelloCommand(),), ("", None)),
        ((RunCellCommand(source="x"), HelloCommand()), ("running your code", None)),
        (
            (HelloCommand(), TRAIN),
            ("training", None),
        ),
    ],
)
def test_what_the_engine_was_doing_is_told_by_its_oldest_command_or_training(link, commands, words):
    link.get_ready()
    for command in commands:
        link.send(command)
    assert link._running() == words


def test_the_last_checkpoint_is_that_of_the_newest_run(link, training_snapshot):
    link.get_ready()
    link.send(TRAIN)
    link.answer(training_snapshot(checkpoint="/a.pt", checkpoint_step=40))
    assert link._running() == ("training", 40)
    link.answer(training_snapshot())  # another run, without one
    assert link._running() == ("training", None)
    link.answer(training_snapshot(checkpoint="/a.pt", checkpoint_step=60))
    link.close()
    link.get_ready()
    link.send(TRAIN)
    assert link._running() == ("training", None)


def test_code_runs_until_the_variables_of_its_own_end_come(link):
    link.get_ready()
    link.send(RunCellCommand(source="while True: pass"))
    assert link.runs_code
    link.send(ReadVariablesCommand())
    link.answer(VariablesSnapshot(variables=()), to=2)  # they are read meanwhile
    assert link.runs_code
    link.answer(CellSnapshot(ok=True, error=None), to=1)
    assert link.runs_code
    link.answer(VariablesSnapshot(variables=()), to=1)
    assert not link.runs_code
