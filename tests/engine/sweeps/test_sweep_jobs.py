"""Trials of a sweep in several processes: they are those of one process."""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
import torch

from app.templates import load_template
from engine.handlers.subjects.find import find_subject
from engine.handlers.training.sweeps import processes
from engine.handlers.training.sweeps.trial import figure_of
from engine.process import EngineLost
from engine.project.document import DataSetup, Loading, Project, replace
from engine.project.subject import ConsoleSubject, Objective
from engine.project.sweeps.sweep import Choice, Sweep
from engine.protocol import (
    ContinueTrainingCommand,
    DoneSnapshot,
    EpochRow,
    ErrorReport,
    ErrorSnapshot,
    OutputSnapshot,
    PauseSignal,
    RunCellCommand,
    RunRow,
    Snapshot,
    StepColumns,
    StopSignal,
    SweepCommand,
    TrainingSnapshot,
    TrialCommand,
    TrialProgress,
)
from engine.runs.record import load
from engine.runs.summary import rows_in
from engine.session import Session

pytestmark = pytest.mark.usefixtures("forked_processes")

MLP = load_template("mlp")
PROJECT = replace(MLP, training=replace(MLP.training, epochs=2, batch_size=400))
RATE = Choice("optimizer_params.lr", low=1e-4, high=1e-1, log=True)


class Swept:
    """A session that sweeps; `told` are its snapshots."""

    def __init__(
        self, runs: Path, *choices: Choice, project: Project = PROJECT, cells=(), **fields
    ) -> None:
        self.runs, self.told = runs, list[Snapshot]()
        self.session = Session(self.told.append)
        for number, cell in enumerate(cells, 1):
            self.session.handle(RunCellCommand(id=number, source=cell))
        self.command = SweepCommand(
            id=90,
            model=project.model,
            training=project.training,
            subject=project.subject,
            objective=project.objective,
            runs=str(runs),
            sweep=Sweep(choices or (RATE,), **{"trials": 4, "prune": False, **fields}),
        )

    def begin(self) -> Swept:
        self.session.handle(self.command)
        return self

    def finish(self) -> Swept:
        while self.session.advance():
            pass
        self.session.close()
        return self

    @property
    def snapshots(self) -> list[TrainingSnapshot]:
        return [each for each in self.told if isinstance(each, TrainingSnapshot) and each.trial]

    @property
    def errors(self) -> list[str]:
        return [each.error.message for each in self.told if isinstance(each, ErrorSnapshot)]

    @property
    def rows(self) -> list[RunRow]:
        return sorted(rows_in(self.runs), key=lambda row: row.trial.number if row.trial else 0)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[int, Swept]]:
    """The same sweep by the number of processes. The number of threads decides the last bits."""
    folder, threads = tmp_path_factory.mktemp("sweeps"), torch.get_num_threads()
    torch.set_num_threads(1)
    yield {n: Swept(folder / str(n), jobs=n, seed=3).begin().finish() for n in (1, 2)}
    torch.set_num_threads(threads)


def test_the_trials_are_those_of_one_process(both: dict[int, Swept]) -> None:
    one, two = both[1].rows, both[2].rows
    assert [row.state for row in two] == ["finished"] * 4 and both[2].errors == []
    for mine, other in zip(two, one, strict=True):
        assert mine.trial == replace_sweep(other.trial, mine.trial)
        assert mine.epoch == other.epoch
    writers = {load(Path(row.folder)).writer.pid for row in two}
    assert len(writers) == 2 and os.getpid() not in writers
    assert not any(psutil.pid_exists(pid) for pid in writers)


def replace_sweep(trial: Any, other: Any) -> Any:
    """Each sweep has an id of its own."""
    return replace(trial, sweep=other.sweep)


def test_each_trial_is_told_to_its_end_with_the_best_so_far(both: dict[int, Swept]) -> None:
    told = both[2].snapshots
    ends = [each.trial for each in told if each.trial.state != "running"]
    assert sorted(end.number for end in ends) == [1, 2, 3, 4]
    assert [end.has_ended for end in ends] == [False] * 3 + [True]
    assert [each.state for each in told] == ["running"] * (len(told) - 1) + ["finished"]
    best = next(row.trial for row in both[2].rows if row.trial.state == "best")
    assert (ends[-1].best, ends[-1].value) == (best.number, best.value)
    for number in (1, 2, 3, 4):  # whatever another one tells between
        of_trial = [each for each in told if each.trial.number == number]
        last = max(i for i, each in enumerate(of_trial) if each.step == 0)
        steps = [step for each in of_trial[last:] for step in each.steps.step]
        assert steps == list(range(1, of_trial[-1].step + 1)), number


def test_a_sweep_that_is_stopped_ends_all_its_processes(tmp_path: Path) -> None:
    project = replace(PROJECT, training=replace(PROJECT.training, epochs=2000))
    swept = Swept(tmp_path, project=project, jobs=2).begin()
    while len(rows := [row for row in swept.rows if row.state == "running"]) < 2:
        swept.session.advance()
    swept.session.lab.control.stop.set()
    swept.finish()
    assert swept.snapshots[-1].state == "stopped" and swept.snapshots[-1].trial.has_ended
    assert [row.state for row in swept.rows] == ["stopped", "stopped"]
    pids = [load(Path(row.folder)).writer.pid for row in rows]
    assert len(set(pids)) == 2 and not any(map(psutil.pid_exists, pids))


def test_a_process_that_is_killed_is_told_and_the_sweep_goes_on(tmp_path: Path) -> None:
    epochs = Choice("epochs", (2000,))
    swept = Swept(tmp_path, epochs, jobs=2, trials=3).begin()
    while len(rows := [row for row in swept.rows if row.state == "running"]) < 2:
        swept.session.advance()
    os.kill(load(Path(rows[0].folder)).writer.pid, signal.SIGKILL)
    while len(swept.rows) < 3:
        swept.session.advance()
    swept.session.lab.control.stop.set()
    swept.finish()
    found = swept.rows
    assert [row.state for row in found] == ["failed", "stopped", "stopped"]
    assert found[0].error == "The process of trial 1 has ended: signal 9."


CELLS = (
    "torch.manual_seed(0)\nx, y = torch.randn(24, 3), torch.arange(24) % 2",
    "net = nn.Linear(3, 2)\ncollate = lambda samples: torch.utils.data.default_collate(samples)",
)


def test_trials_have_the_objects_of_the_console(tmp_path: Path) -> None:
    training = replace(
        PROJECT.training, batch_size=8, data=DataSetup(loading=Loading(collate_fn="collate"))
    )
    project = replace(
        PROJECT,
        training=training,
        subject=ConsoleSubject("net"),
        objective=Objective(data="(x, y)", validation="(x, y)"),
    )
    figures = []
    for jobs in (1, 2):
        swept = Swept(
            tmp_path / str(jobs), Choice("seed", (0, 1)), project=project, cells=CELLS, jobs=jobs
        )
        net = find_subject(
            swept.session.lab, project.subject, project.model, project.training
        ).module
        before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
        swept.begin().finish()
        assert swept.errors == []
        assert all(torch.equal(tensor, before[n]) for n, tensor in net.state_dict().items())
        figures.append([(row.trial.values, row.trial.value) for row in swept.rows])
    assert figures[0] == figures[1] and len(figures[0]) == 4


def test_what_cannot_be_begun_is_told(tmp_path: Path) -> None:
    bad = Choice("blocks.linear2.out_features", (3,))
    swept = Swept(tmp_path, bad, jobs=2, trials=2).begin().finish()
    assert len(swept.errors) == 1 and swept.errors[0].startswith("No trial could be trained.")
    data = DataSetup("console", path="gone")
    project = replace(PROJECT, training=replace(PROJECT.training, data=data))
    swept = Swept(tmp_path, project=project, jobs=2).begin().finish()
    assert "gone" in swept.errors[0] and list(tmp_path.iterdir()) == []


def test_the_number_of_processes_is_bounded(tmp_path: Path) -> None:
    swept = Swept(tmp_path, jobs=65).begin().finish()
    assert "1 to 64 trials go on at once" in swept.errors[0]


class Scripted:
    """In place of an engine: tells epochs with these losses of each trial, in turn."""

    losses = iter([[0.5, 0.4], [0.5, 0.3], [0.5, 0.2], [0.9, 0.1]])

    def start(self) -> None:
        self.waiting: list[Snapshot] = []

    def send(self, command: TrialCommand) -> int:
        self.told = TrainingSnapshot(
            run=f"{command.number}",
            state="running",
            step=0,
            total_steps=8,
            epoch=1,
            epochs=2,
            device="cpu",
            steps_per_second=1.0,
            steps=StepColumns(),
            folder=command.folder,
            trial=TrialProgress(command.number, 4, "", "validation loss"),
        )
        self.waiting = [
            replace(self.told, epoch_rows=(EpochRow(n, n, 1.0, 1.0, loss, 1.0),))
            for n, loss in enumerate(next(self.losses), 1)
        ]
        self.waiting[-1] = replace(self.waiting[-1], state="finished")
        self.waiting.append(DoneSnapshot(reply_to=command.number))
        return command.number

    def receive(self, timeout_s: float) -> Snapshot | None:
        return self.waiting.pop(0) if self.waiting else None

    def signal(self, signal: StopSignal) -> None:
        self.waiting[:-1] = [replace(self.told, state="stopped")]

    def close(self) -> None:
        pass


def test_a_trial_that_is_worse_than_the_median_is_ended_early(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(processes, "SpawnedEngine", Scripted)
    told = []
    monkeypatch.setattr(processes, "_tag_pruned", lambda *given: told.append(given))
    swept = Swept(tmp_path, jobs=2, prune=True).begin().finish()
    ends = {s.trial.number: s.trial.state for s in swept.snapshots if s.trial.state != "running"}
    assert ends == {1: "finished", 2: "finished", 3: "finished", 4: "pruned"}
    assert told == [(Path(swept.snapshots[-1].folder), 0.9)]
    assert (swept.snapshots[-1].trial.best, swept.snapshots[-1].trial.value) == (3, 0.2)


class Trialled:
    """In place of engines: each tells of a trial what `script` has for its number. `engines` are
    those that were started, with the commands and signals that they got."""

    engines: list[Trialled]
    script: dict[int, list[Any]]

    def start(self) -> None:
        self.sent: list[Any] = []
        self.waiting: list[Any] = []
        self.closed = 0
        self.engines.append(self)

    def send(self, command: Any) -> int:
        self.sent.append(command)
        if isinstance(command, TrialCommand):
            assert Path(command.weights).exists()
            self.waiting = [*self.script[command.number], DoneSnapshot(reply_to=command.number)]
            return command.number
        return 1000

    def receive(self, timeout_s: float) -> Any:
        each = self.waiting.pop(0) if self.waiting else None
        if isinstance(each, Exception):
            raise each
        return each() if callable(each) else each

    def signal(self, signal: Any) -> None:
        self.sent.append(signal)

    def exit(self) -> Any:
        return SimpleNamespace(code=4)

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> list[Trialled]:
    monkeypatch.setattr(processes, "SpawnedEngine", Trialled)
    monkeypatch.setattr(Trialled, "engines", [], raising=False)
    return Trialled.engines


def at(number: int, step: int, state: Any = "running", loss: float | None = None) -> Any:
    rows = () if loss is None else (EpochRow(1, step, 1.0, 1.0, loss, 1.0),)
    return TrainingSnapshot(
        run=f"{number}", state=state, step=step, total_steps=8, epoch=1, epochs=1, device="cpu",
        steps_per_second=1.0, steps=StepColumns((step,)), epoch_rows=rows,
        trial=TrialProgress(number, 3, "", "validation loss"),
    )  # fmt: skip


def told_of(swept: Swept) -> list[tuple]:
    return [
        (s.trial.number, s.step, s.state, s.trial.state, s.trial.best, s.trial.has_ended)
        for s in swept.snapshots
    ]


def test_one_trial_is_told_as_it_goes_and_the_others_when_they_end(
    engines: list[Trialled], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 7)
    Trialled.script = {
        1: [at(1, 1), None, at(1, 2), at(1, 3, "finished", 0.5)],
        2: [at(2, 1), at(2, 2, "finished", 0.2)],
        3: [at(3, 1), at(3, 2, "finished", 0.9)],
    }
    swept = Swept(tmp_path, jobs=2, trials=3).begin().finish()
    assert told_of(swept) == [
        (1, 1, "running", "running", 0, False),
        (2, 1, "running", "running", 2, False), (2, 2, "running", "finished", 2, False),
        (1, 1, "running", "running", 2, False), (1, 2, "running", "running", 2, False),
        (1, 3, "running", "finished", 2, False),
        (3, 1, "running", "running", 2, False), (3, 2, "finished", "finished", 2, True),
    ]  # fmt: skip
    assert [s.trial.value for s in swept.snapshots[1:]] == [0.2] * 7
    first, second = engines  # the third trial has the process of the one that ended first
    commands = [*first.sent, *second.sent]
    assert [command.number for command in commands] == [1, 2, 3]
    assert {command.threads for command in commands} == {3} and not commands[0].paused
    names = [Path(command.folder).name.partition("-trial-") for command in commands]
    assert [name[2] for name in names] == ["0001", "0002", "0003"]
    assert {name[0] for name in names} == {commands[0].sweep_id}
    assert len({command.values["optimizer_params.lr"] for command in commands}) == 3
    assert (first.closed, second.closed) == (1, 1) and not Path(commands[0].weights).exists()


def test_pausing_going_on_and_stopping_reach_every_trial(
    engines: list[Trialled], tmp_path: Path
) -> None:
    swept = Swept(tmp_path, jobs=2, trials=4)
    control = swept.session.lab.control
    script = [at(1, 1), control.pause.set, None, None, control.pause.clear, None,
              control.stop.set, None, at(1, 2, "stopped")]  # fmt: skip
    Trialled.script = {1: script, 2: [at(2, 1), *[None] * 9, at(2, 2, "stopped")]}
    swept.begin().finish()
    assert [each.sent[1:] for each in engines] == [[PauseSignal(), StopSignal()]] * 2
    last = swept.snapshots[-1]
    assert (last.state, last.trial.number, last.trial.has_ended) == ("stopped", 2, True)
    assert [s.state for s in swept.snapshots[:-1]] == ["running"] * (len(swept.snapshots) - 1)


def test_a_process_that_ends_by_itself_is_told_with_its_exit_code(
    engines: list[Trialled], tmp_path: Path
) -> None:
    Trialled.script = {
        1: [at(1, 1), EngineLost()],
        2: [EngineLost()],
        3: [at(3, 1, "finished", 1.0)],
    }
    swept = Swept(tmp_path, jobs=1 + 1, trials=3).begin().finish()
    ends = [(s.trial.number, s.trial.state) for s in swept.snapshots if s.trial.state != "running"]
    assert ends == [(1, "failed"), (3, "finished")] and swept.errors == []
    lost = next(s for s in swept.snapshots if s.trial.state == "failed")
    assert lost.error.type == "TrialLost" and lost.steps == StepColumns() == StepColumns()
    assert lost.error.message == "The process of trial 1 has ended: exit code 4."
    assert [each.closed for each in engines] == [1, 1, 1]
    assert swept.snapshots[-1].trial.best == 3


def test_if_no_trial_can_be_trained_the_last_reason_is_told(
    engines: list[Trialled], tmp_path: Path
) -> None:
    def error(reply_to: int, message: str) -> ErrorSnapshot:
        report = ErrorReport(type="LabError", message=message, hint=f"Hint {message}")
        return ErrorSnapshot(reply_to=reply_to, command="TrialCommand", error=report)

    Trialled.script = {1: [error(1, "one")], 2: [error(2, "two")]}
    swept = Swept(tmp_path, jobs=2, trials=2).begin().finish()
    (told,) = (each.error for each in swept.told if isinstance(each, ErrorSnapshot))
    assert (told.message, told.hint) == ("No trial could be trained. two", "Hint two")
    Trialled.script = {1: [error(1000, "of the files")], 2: []}
    swept = Swept(tmp_path, jobs=2, trials=2).begin().finish()
    assert swept.errors == ["of the files"] and [each.closed for each in engines[2:]] == [1, 1]


def test_what_the_code_of_a_trial_prints_is_passed_on(
    engines: list[Trialled], tmp_path: Path
) -> None:
    printed = [OutputSnapshot(reply_to=1, stream="stdout", text="of it"),
               OutputSnapshot(stream="stdout", text="of another")]  # fmt: skip
    Trialled.script = {1: [*printed, at(1, 1, "finished", 1.0)], 2: [at(2, 1, "finished", 2.0)]}
    swept = Swept(tmp_path, jobs=2, trials=2).begin().finish()
    assert [each.text for each in swept.told if isinstance(each, OutputSnapshot)] == ["of it"]


@pytest.mark.parametrize(
    ("name", "rows", "expected"),
    [
        ("validation loss", {}, 0.5), ("validation accuracy", {}, 0.25), ("train loss", {}, 2.0),
        ("validation loss", {"validation_loss": math.nan}, 2.0),
        ("validation accuracy", {"validation_accuracy": math.nan}, 0.75),
        ("f1", {"validation_figures": {"f1": 0.1},
                           "train_figures": {"f1": 0.2}}, 0.1),
        ("f1", {"train_figures": {"f1": 0.2}}, 0.2),
        ("f1", {"validation_figures": {"f1": math.nan},
                           "train_figures": {"f1": 0.2}}, 0.2),
        ("f1", {}, None),
    ],
)  # fmt: skip
def test_the_figure_of_an_epoch_is_that_of_training_without_validation(
    name: str, rows: dict[str, Any], expected: float | None
) -> None:
    assert figure_of(replace(EpochRow(1, 1, 2.0, 0.75, 0.5, 0.25), **rows), name) == expected


def test_a_trial_that_was_ended_early_is_marked_in_its_folder(tmp_path: Path) -> None:
    swept = Swept(tmp_path, trials=1).begin().finish()
    (row,) = swept.rows
    folder = Path(row.folder)
    before = load(folder)
    processes._tag_pruned(folder, 0.75)
    after = load(folder)
    assert after.trial is not None and (after.trial.value, after.trial.is_pruned) == (0.75, True)
    assert replace(after, trial=before.trial) == before
    processes._tag_pruned(tmp_path / "gone", 0.75)  # another has removed it


def test_going_on_is_passed_on_to_every_trial(engines: list[Trialled], tmp_path: Path) -> None:
    swept = Swept(tmp_path, jobs=2, trials=2)

    def goes_on() -> None:
        swept.session.handle(ContinueTrainingCommand())

    Trialled.script = {
        1: [at(1, 1), goes_on, None, at(1, 2, "finished", 1.0)],
        2: [at(2, 1), None, None, None, at(2, 2, "finished", 2.0)],
    }
    swept.begin().finish()
    assert [each.sent[1:] for each in engines] == [[ContinueTrainingCommand()]] * 2


def test_a_process_that_cannot_be_started_is_told(
    engines: list[Trialled], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Trialled) -> None:
        raise OSError("no memory")

    monkeypatch.setattr(Trialled, "start", fail)
    swept = Swept(tmp_path, jobs=2, trials=2).begin().finish()
    assert swept.errors == ["A process for a trial could not be started: no memory."]


@pytest.mark.parametrize(
    ("epoch", "value", "pruned_at", "is_asked"),
    [(3, 0.5, None, True), (2, 0.5, None, False), (3, None, None, False), (3, 0.5, 0.1, False)],
)
def test_each_epoch_of_a_trial_is_judged_once_by_its_figure(
    epoch: int, value: float | None, pruned_at: float | None, is_asked: bool
) -> None:
    asked: list[tuple] = []
    trials: Any = processes._Trials.__new__(processes._Trials)
    trials._study = SimpleNamespace(report=lambda *given: asked.append(given))
    trial: Any = SimpleNamespace(epoch=2, pruned_at=pruned_at, number=7, snapshots=[at(7, 1)])
    trials._report(trial, epoch, value)
    assert asked == [(7, 3, 0.5)] * is_asked and trial.epoch == 2 + is_asked
