"""The run around the loop: snapshots, checkpoints on time, and failure in words."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from engine.project.document import TrainingSetup, replace
from engine.protocol import TrainingSnapshot
from engine.runs import heartbeat
from engine.training.checkpoints import checkpoint_files
from engine.training.figures.memory import training_memory
from engine.training.loop import TrainingLoop
from engine.training.run import TrainingRun


class Clock:
    """A wall clock that the test turns."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        for module in ("run", "run_files", "figures.pace"):
            monkeypatch.setattr(f"engine.training.{module}.perf_counter", lambda: self.now)


def train(run: TrainingRun) -> list[TrainingSnapshot]:
    """Train to the end as the handler does; returns every snapshot."""
    snapshots = [run.snapshot("running")]
    snapshots += [run.snapshot("running") for due in run.steps() if due]
    run.close()
    return [*snapshots, run.snapshot("finished")]


def test_all_steps_and_epochs_arrive_once_and_in_order(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential]
) -> None:
    snapshots = train(TrainingRun(TrainingLoop(make_mlp(), moons)))
    assert [step for s in snapshots for step in s.steps.step] == list(range(1, 10))
    assert not any(s.steps.cuda_allocated_bytes for s in snapshots)  # it ran on the CPU
    assert [row.epoch for s in snapshots for row in s.epoch_rows] == [1, 2, 3]
    assert (snapshots[0].state, snapshots[0].step, snapshots[0].epoch) == ("running", 0, 1)


def test_the_last_snapshot_says_how_it_went(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential]
) -> None:
    last = train(TrainingRun(TrainingLoop(make_mlp(), moons)))[-1]
    assert (last.state, last.step, last.total_steps) == ("finished", 9, 9)
    assert (last.epoch, last.epochs, last.device, last.error) == (3, 3, "cpu", None)
    assert last.epoch_rows[-1].epoch == 3
    assert (last.remaining_s, last.checkpoint_step) == (0.0, 9)
    assert checkpoint_files.load(last.checkpoint).step == 9


def test_the_parameters_of_another_optimizer_are_for_the_next_run(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential]
) -> None:
    setup = replace(moons, optimizer="optim.SGD", optimizer_params={"lr": 0.25})
    run = TrainingRun(TrainingLoop(make_mlp(), setup))
    run.adjust(replace(setup, optimizer="optim.Adam", optimizer_params={"lr": 0.5}))
    assert (run.loop.learning_rate, run.kept.past.changes) == (0.25, ())
    run.adjust(replace(setup, optimizer_params={"lr": 0.75}))
    assert (run.loop.learning_rate, len(run.kept.past.changes)) == (0.75, 1)


def test_snapshots_are_due_thirty_times_a_second(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    run = TrainingRun(TrainingLoop(make_mlp(), replace(moons, epochs=20)))
    due = []
    for is_due in run.steps():
        due.append(is_due)
        clock.now += 1 / 100
    assert len(due) == 20 * 5 - 1
    # The first at once, then one in every four hundredths of a second.
    assert due == [i % 4 == 0 for i in range(len(due))]


@pytest.mark.parametrize("pause_s", [1, 1000])
def test_speed_and_time_left_leave_pauses_out(
    pause_s: float,
    moons: TrainingSetup,
    make_mlp: Callable[[], nn.Sequential],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Be the pause shorter than the window that the speed is measured over, or longer."""
    clock = Clock(monkeypatch)
    run = TrainingRun(TrainingLoop(make_mlp(), replace(moons, epochs=100)))
    first = run.snapshot("running")
    assert (first.steps_per_second, first.remaining_s) == (0.0, None)
    steps = run.steps()
    next(steps)
    next(steps)
    clock.now += 0.5
    paused = run.snapshot("paused")
    assert paused.steps_per_second == pytest.approx(4.0)
    assert (first.samples_per_second, paused.samples_per_second) == (0.0, pytest.approx(4.0 * 32))
    assert paused.steps.samples_per_second[-1] == paused.samples_per_second
    assert paused.remaining_s == pytest.approx((300 - 2) / 4)
    clock.now += pause_s
    run.snapshot("running")
    next(steps)
    clock.now += 0.5
    assert run.snapshot("running").steps_per_second == pytest.approx(2.0)
    steps.close()
    run.files.writer.close()


def test_a_checkpoint_is_written_every_two_seconds_and_earlier_at_the_end_of_an_epoch(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    run = TrainingRun(TrainingLoop(make_mlp(), moons))
    steps = run.steps()
    written = []
    for _ in range(3):
        clock.now += 0.3
        next(steps)
        written.append(run.files.checkpoint_step)
    assert written == [0, 0, 0]
    next(steps)  # validation
    clock.now += 0.3
    next(steps)  # the end of the epoch, after 1.2 s
    assert run.files.checkpoint_step == 3
    for expected in (3, 3, 6):
        clock.now += 0.7
        next(steps)
        assert run.files.checkpoint_step == expected
    steps.close()


def test_writing_checkpoints_takes_a_two_hundredth_of_the_time_at_most(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    run = TrainingRun(TrainingLoop(make_mlp(), replace(moons, epochs=100)))
    save = checkpoint_files.save

    def slow_save(*arguments) -> Path:
        clock.now += 1.0
        return save(*arguments)

    monkeypatch.setattr(checkpoint_files, "save", slow_save)
    steps = run.steps()
    clock.now += 2.0
    next(steps)
    assert run.files.checkpoint_step == 1
    clock.now += 198.9
    next(steps)
    assert run.files.checkpoint_step == 1
    clock.now += 1.2
    next(steps)
    assert run.files.checkpoint_step == 3
    steps.close()


@pytest.mark.parametrize("state", ["paused", "stopped"])
def test_pausing_and_stopping_write_a_checkpoint_of_that_step(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential], state
) -> None:
    run = TrainingRun(TrainingLoop(make_mlp(), moons))
    assert run.snapshot(state).checkpoint == ""  # nothing is done yet
    steps = run.steps()
    next(steps)
    snapshot = run.snapshot(state)
    assert (snapshot.state, snapshot.checkpoint_step) == (state, 1)
    weights = checkpoint_files.load(snapshot.checkpoint).model
    assert torch.equal(weights["0.weight"], run.loop.model.state_dict()["0.weight"])
    steps.close()
    run.files.writer.close()


def test_a_resumed_run_shows_its_whole_history_first(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential]
) -> None:
    run = TrainingRun(TrainingLoop(make_mlp(), moons))
    steps = run.steps()
    for _ in range(7):
        next(steps)
    stopped = run.snapshot("stopped")
    steps.close()

    again = TrainingRun(TrainingLoop(make_mlp(), moons), checkpoint_files.load(stopped.checkpoint))
    first = again.snapshot("running")
    assert (first.run, first.step) == (stopped.run, 5)
    assert first.steps.step == (1, 2, 3, 4, 5)
    assert [row.epoch for row in first.epoch_rows] == [1]
    rest = train(again)
    assert [step for s in rest for step in s.steps.step] == [6, 7, 8, 9]


def test_a_loss_that_is_nan_fails_the_run_with_a_hint(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential]
) -> None:
    setup = replace(moons, optimizer="optim.SGD", optimizer_params={"lr": 1e30}, epochs=50)
    last = train(TrainingRun(TrainingLoop(make_mlp(), setup)))[-1]
    assert last.state == "failed"
    assert last.error is not None
    assert last.error.type == "Diverged"
    assert last.error.message.startswith("The loss became ")
    assert "it is 1e+30, try 0.1" in last.error.hint


def test_a_model_that_raises_fails_the_run_with_its_words(moons: TrainingSetup) -> None:
    model = nn.Sequential(nn.Linear(2, 4), nn.Linear(5, 2))
    last = train(TrainingRun(TrainingLoop(model, moons)))[-1]
    assert (last.state, last.step) == ("failed", 0)
    assert last.error is not None
    assert last.error.type == "RuntimeError"
    assert "shapes cannot be multiplied" in last.error.message


def test_batch_norm_on_a_last_batch_of_one_is_explained(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential]
) -> None:
    last = train(TrainingRun(TrainingLoop(make_mlp(), replace(moons, batch_size=79))))[-1]
    assert (last.state, last.step) == ("failed", 1)
    assert last.error is not None
    assert "change the batch size" in last.error.hint


def test_a_checkpoint_that_cannot_be_written_is_a_warning(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential], data_folder: Path
) -> None:
    data_folder.write_text("a file where the folder should be")
    last = train(TrainingRun(TrainingLoop(make_mlp(), moons)))[-1]
    assert (last.state, last.step, last.checkpoint) == ("finished", 9, "")
    assert last.error is not None
    assert "could not be written" in last.error.message


def test_a_device_that_gives_the_model_not_back_fails_the_run(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = TrainingRun(TrainingLoop(make_mlp(), moons))

    def broken() -> None:
        raise RuntimeError("CUDA error: unspecified launch failure")

    monkeypatch.setattr(run.loop, "close", broken)
    last = train(run)[-1]
    assert (last.state, last.step) == ("failed", 9)
    assert last.error is not None and last.error.message.startswith("CUDA error")


def test_figures_that_cannot_be_read_end_the_run_at_once(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = TrainingRun(TrainingLoop(make_mlp(), moons))

    def broken(*_) -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(run.loop.metrics, "flush", broken)
    assert list(run.steps()) == []
    ended = run.snapshot("running")
    assert (ended.state, ended.step, ended.checkpoint) == ("failed", 1, "")
    assert ended.error is not None and ended.error.message.startswith("CUDA error")


def test_the_memory_is_that_of_unique_storages() -> None:
    setup = TrainingSetup(epochs=1, optimizer="optim.Adam")
    tied = nn.Linear(64, 10, bias=False)
    model = nn.Sequential(
        nn.Flatten(), nn.Linear(64, 64), nn.BatchNorm1d(64), tied, nn.Linear(10, 10)
    )
    model.add_module("again", nn.Identity())
    model[5].weight = tied.weight
    memory = train(TrainingRun(TrainingLoop(model, setup)))[-1].memory
    elements = 64 * 64 + 64 + 2 * 64 + 64 * 10 + 10 * 10 + 10
    assert memory.parameter_bytes == memory.gradient_bytes == 4 * elements
    assert memory.buffer_bytes == 4 * 64 * 2 + 8  # mean, variance, a count of int64
    tensors = len(list(model.parameters()))
    assert memory.optimizer_bytes == 2 * 4 * elements + 4 * tensors  # two moments and a count


def test_memory_that_several_tensors_share_counts_once() -> None:
    table, tied = nn.Embedding(10, 4, sparse=True), nn.Linear(4, 10, bias=False)
    tied.weight = nn.Parameter(table.weight.detach())  # another parameter on the same storage
    model = nn.Sequential(table, tied)
    model.register_buffer("view", table.weight.detach().T)
    table(torch.tensor([1, 2, 2])).sum().backward()
    memory = training_memory(model, torch.optim.SGD(model.parameters(), lr=0.1))
    assert (memory.parameter_bytes, memory.buffer_bytes) == (10 * 4 * 4, 0)
    assert memory.gradient_bytes == 3 * 8 + 3 * 4 * 4  # the sparse gradient's indices and values
    assert memory.optimizer_bytes == 0


def test_momentum_free_sgd_keeps_no_state(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential]
) -> None:
    run = TrainingRun(TrainingLoop(make_mlp(), replace(moons, optimizer="optim.SGD")))
    before = run.snapshot("running").memory
    assert (before.gradient_bytes, before.optimizer_bytes) == (0, 0)
    after = train(run)[-1].memory
    assert after.gradient_bytes == after.parameter_bytes > 0
    assert after.optimizer_bytes == 0


def test_memory_is_told_from_the_first_gradients_on_and_again_when_a_run_pauses(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential]
) -> None:
    run = TrainingRun(TrainingLoop(make_mlp(), replace(moons, optimizer="optim.SGD", epochs=100)))
    steps = run.steps()
    next(steps)
    first = run.snapshot("running").memory
    assert first.gradient_bytes == first.parameter_bytes > 0
    weight = run.loop.parameters[0]
    weight.grad = None
    assert run.snapshot("running").memory == first  # it is not counted for each snapshot
    assert run.snapshot("paused").memory.gradient_bytes == first.gradient_bytes - weight.nbytes
    steps.close()
    run.files.writer.close()


def test_the_speed_of_slow_steps_is_that_since_the_snapshot_before(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    run = TrainingRun(TrainingLoop(make_mlp(), replace(moons, epochs=100)))
    steps, speeds = run.steps(), [run.snapshot("running").steps_per_second]
    for step_s in (5.0, 10.0, 4.0):
        next(steps)
        clock.now += step_s
        speeds.append(run.snapshot("running").steps_per_second)
    assert speeds == pytest.approx([0, 1 / 5, 1 / 10, 1 / 4])
    steps.close()
    run.files.writer.close()


def test_speed_is_that_of_the_last_three_seconds(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    run = TrainingRun(TrainingLoop(make_mlp(), replace(moons, epochs=100)))
    steps, speeds, done = run.steps(), [run.snapshot("running").steps_per_second], [0]
    for second in range(1, 7):
        while run.step < second**2:  # faster and faster
            next(steps)
        done.append(run.step)
        clock.now += 1
        speeds.append(run.snapshot("running").steps_per_second)
    assert done == [0, 1, 4, 9, 16, 25, 36]
    assert speeds == pytest.approx([0, 1, 4 / 2, 9 / 3, (16 - 1) / 3, (25 - 4) / 3, (36 - 9) / 3])
    steps.close()
    run.files.writer.close()


def test_a_run_that_was_taken_over_fails_in_words_and_writes_no_checkpoint(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential]
) -> None:
    run = TrainingRun(TrainingLoop(make_mlp(), moons))
    steps = run.steps()
    for _ in range(3):
        next(steps)
    before = run.snapshot("paused")
    writer = run.files.writer
    (writer.folder / heartbeat.ALIVE).write_text('{"host": "other", "pid": 7, "began_s": 1}')
    writer._heart.beat()
    next(steps)
    last = run.snapshot("running")
    assert last.state == "failed" and last.error is not None
    assert "is trained by process 7 of other now" in last.error.message
    steps.close()
    run.close()
    assert run.snapshot("stopped").checkpoint == before.checkpoint
    assert [path.name for path in writer.checkpoints.iterdir()] == [Path(before.checkpoint).name]


def test_while_it_runs_a_thread_writes_its_figures(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential], monkeypatch
) -> None:
    def is_there() -> bool:
        return any(thread.name == "run-writer" for thread in threading.enumerate())

    clock = Clock(monkeypatch)
    run = TrainingRun(TrainingLoop(make_mlp(), moons))
    steps = run.steps()
    next(steps)
    run.snapshot("running")  # the first figures
    clock.now += 10
    next(steps)
    assert is_there()
    steps.close()
    run.close()
    run.snapshot("stopped")
    assert not is_there()
