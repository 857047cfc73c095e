"""A run of several processes as the engine hears of it: rank 0 is a script of what it tells."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from msgspec.structs import replace
from torch import Tensor

from engine.handlers.training import as_rank, ranks
from engine.lab import Lab
from engine.project.document import HoldWhen, Loading, Project
from engine.project.subject import ConsoleSubject, Objective
from engine.protocol import (
    ContinueTrainingCommand,
    ErrorReport,
    ErrorSnapshot,
    PauseSignal,
    StepColumns,
    StepTrainingCommand,
    StopSignal,
    TrainCommand,
    TrainingSnapshot,
)
from engine.runs.record import load, save
from engine.runs.writer import RunWriter
from engine.system.errors import LabError
from engine.training.distributed.launch import WEIGHTS
from engine.training.distributed.rank_files import RANKS, RankFailure, log_of

from ..test_training_handlers import MLP, SETUP

TWO = replace(SETUP, processes=2)


class Launched:
    """In place of the processes: `script` has what rank 0 tells, or functions that give it."""

    script: list[Any]
    failed: RankFailure | None
    has_begun: bool
    made: list[Launched]

    def __init__(self, folder: Path, processes: int, train: TrainCommand, given: Any) -> None:
        self.folder, self.processes, self.train, self.given = folder, processes, train, given
        self.sent: list[Any] = []
        self.closed = 0
        assert folder.is_dir() and folder.stat().st_mode & 0o077 == 0
        self.made.append(self)

    def send(self, message: Any) -> None:
        self.sent.append(message)

    def next(self) -> Any:
        if not self.script:
            raise EOFError
        each = self.script.pop(0)
        return each() if callable(each) else each

    def failure(self) -> RankFailure | None:
        return self.failed

    def close(self) -> None:
        self.closed += 1


class Heard:
    """A lab that trains by processes which tell a script; `told` is what it passes on."""

    def __init__(self, folder: Path) -> None:
        self.lab, self.folder = Lab(emit=lambda snapshot: None), folder
        self.told: list[Any] = []

    def train(self, *script: Any, failed: RankFailure | None = None, **fields: Any) -> Launched:
        Launched.script, Launched.failed = list(script), failed
        given = {"model": MLP, "training": TWO, "folder": str(self.folder), **fields}
        self.told = []
        for snapshot in ranks.train_on_ranks(self.lab, TrainCommand(**given)):
            self.told.append(snapshot)
        launched = Launched.made[-1]
        assert launched.closed == 1 and launched.script == []
        return launched

    @property
    def run(self) -> ranks.RanksRun:
        run = self.lab.run
        assert isinstance(run, ranks.RanksRun)
        return run

    @property
    def weights(self) -> dict[str, Tensor]:
        return self.lab.models.live_model(MLP, TWO.seed).module.state_dict()

    def written(self) -> Path:
        """The folder of a run that has begun."""
        writer = RunWriter.new(self.folder.parent, Project(training=TWO), self.folder)
        writer.begin()
        writer.close()
        save(self.folder, replace(load(self.folder), state="running"))
        return self.folder


@pytest.fixture
def heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Heard]:
    monkeypatch.setattr(ranks, "Launched", Launched)
    monkeypatch.setattr(Launched, "has_begun", True, raising=False)
    monkeypatch.setattr(Launched, "made", [], raising=False)
    yield Heard(tmp_path / "run")


def snapshot(state: Any, step: int = 1, **fields: Any) -> TrainingSnapshot:
    return TrainingSnapshot(
        run="a", state=state, step=step, total_steps=24, epoch=1, epochs=2, device="cpu",
        steps_per_second=1.0, steps=StepColumns((step,)), **fields,
    )  # fmt: skip


def test_what_rank_0_tells_is_passed_on_to_the_end(heard: Heard) -> None:
    running, finished = snapshot("running"), snapshot("finished", 24)
    launched = heard.train(None, running, finished)
    first, *rest = heard.told
    assert rest == [None, running, finished]
    assert (first.state, first.step, first.total_steps, first.epoch, first.epochs) == (
        "running", 0, 0, 1, 2,
    )  # fmt: skip
    assert (first.folder, first.processes, first.device) == (str(heard.folder), 2, "cpu")
    run = heard.run
    assert run.last == replace(finished, steps=StepColumns()) and run.id == "a"
    assert (run.step, run.epoch, run.is_in_step, run.hold) == (24, 0, False, None)
    assert run.snapshot("paused") == replace(run.last, state="paused")
    assert launched.processes == 2 and launched.sent == []
    assert launched.train.folder == str(heard.folder) and launched.folder == heard.folder / RANKS
    assert launched.given.files == [] and launched.given.console == b""
    assert not heard.folder.exists()  # there was no step


def test_the_weights_to_begin_with_are_those_of_now_or_fresh_ones(heard: Heard) -> None:
    fresh = {name: tensor.clone() for name, tensor in heard.weights.items()}
    heard.weights["linear1.bias"].fill_(7.0)
    for is_fresh, bias in ((False, 7.0), (True, fresh["linear1.bias"])):
        launched = heard.train(snapshot("finished"), fresh=is_fresh)
        assert (launched.given.weights["linear1.bias"] == bias).all()
        assert launched.train.fresh is False


def test_the_live_model_gets_the_weights_of_a_checkpoint_of_this_step(
    heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = {}
    for number, path in enumerate(("first", "second", "last"), 1):
        states[path] = {n: torch.full_like(t, number) for n, t in heard.weights.items()}
    monkeypatch.setattr(
        ranks.checkpoint_files, "load", lambda path: SimpleNamespace(model=states[path])
    )
    seen: list[float] = []

    def look() -> None:
        seen.append(heard.weights["linear1.bias"][0].item())

    heard.train(
        snapshot("paused", 1, checkpoint="first", checkpoint_step=1), look,
        snapshot("running", 2, checkpoint="second", checkpoint_step=2), look,
        snapshot("paused", 3, checkpoint="second", checkpoint_step=2), look,
        snapshot("finished", 4, checkpoint="last", checkpoint_step=4),
    )  # fmt: skip
    assert seen == [1.0, 1.0, 1.0]
    look()
    assert seen[-1] == 3.0


def test_a_stop_is_sent_once_and_before_the_ranks_listen_it_ends_at_once(
    heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = heard.lab.control.stop
    launched = heard.train(stop.set, None, None, snapshot("stopped"))
    assert launched.sent == [StopSignal()] and heard.told[-1].state == "stopped"
    monkeypatch.setattr(Launched, "has_begun", False)
    launched = heard.train()
    assert launched.sent == [] and [each.state for each in heard.told] == ["running", "stopped"]


def test_each_pause_is_sent_and_no_end_of_one(heard: Heard) -> None:
    pause = heard.lab.control.pause
    launched = heard.train(
        pause.set, None, pause.clear, None, pause.set, None, snapshot("finished")
    )
    assert launched.sent == [PauseSignal(), PauseSignal()]


FAILED = snapshot("failed", error=ErrorReport(type="LabError", message="Of rank 0."))


@pytest.mark.parametrize(
    ("script", "failed", "message"),
    [
        ([FAILED], None, "Of rank 0."),
        ([FAILED], RankFailure(0, 1, "Of rank 0"), "Of rank 0."),
        ([FAILED], RankFailure(1, 1, "ValueError: no"),
         "Rank 1 ended with exit code 1: ValueError: no"),
        ([snapshot("running")], RankFailure(0, -9, ""), "Rank 0 was ended by SIGKILL."),
        ([snapshot("running")], None, "The processes of the run have ended."),
        ([], None, "The processes of the run have ended."),
    ],
)  # fmt: skip
def test_how_a_run_failed_is_told_at_its_end(
    script: list[Any], failed: RankFailure | None, message: str, heard: Heard
) -> None:
    folder = heard.written()
    heard.train(*script, failed=failed)
    last = heard.told[-1]
    assert [each.state for each in heard.told[:-1]] == ["running"] * len(heard.told[:-1])
    assert last is heard.run.last and (last.state, last.error.message) == ("failed", message)
    record = load(folder)
    assert (record.state, record.error) == ("failed", message)
    if last.error.message != "Of rank 0.":
        assert last.error.type == "RankLost"
        assert last.error.hint == "Train again: the run had written no checkpoint yet."


@pytest.mark.parametrize("state", ["finished", "stopped"])
def test_a_rank_that_fails_after_the_end_is_not_told(state: Any, heard: Heard) -> None:
    heard.train(snapshot(state), failed=RankFailure(1, 1, ""))
    assert heard.told[-1].state == state == heard.run.last.state


def test_the_error_of_a_lost_rank_has_its_last_lines_and_the_way_on(heard: Heard) -> None:
    folder = heard.written()
    for step in (7, 12):
        (folder / "checkpoints").mkdir(exist_ok=True)
        (folder / "checkpoints" / f"step-{step:08}.pt").write_bytes(b"")

    def prints() -> None:
        log_of(folder / RANKS, 1).write_text("".join(f"line {n}\n" for n in range(8)))

    heard.train(prints, failed=RankFailure(1, 2, ""))
    hint = heard.told[-1].error.hint.splitlines()
    assert hint == [
        "It printed last:", *(f"line {n}" for n in range(3, 8)),
        f"All of it: {log_of(folder / RANKS, 1)}",
        "The run's last checkpoint is step 12. Go on from it with Resume, or"
        f" `tensorlab train --run {folder} --resume`.",
    ]  # fmt: skip


def test_where_no_rank_is_known_to_be_lost_the_last_lines_are_rank_0_s(heard: Heard) -> None:
    folder = heard.written()

    def prints() -> None:
        for rank in (0, 1):
            log_of(folder / RANKS, rank).write_text(f"of rank {rank}\n")

    heard.train(prints)
    assert heard.told[-1].error.hint.splitlines()[:3] == [
        "It printed last:", "of rank 0", f"All of it: {log_of(folder / RANKS, 0)}",
    ]  # fmt: skip


def test_after_rank_0_has_failed_what_others_tell_is_still_heard(heard: Heard) -> None:
    later = snapshot("running", 2)
    heard.train(FAILED, later, failed=RankFailure(1, 1, "no"))
    assert (
        heard.told[1] is later
        and heard.told[-1].error.message == "Rank 1 ended with exit code 1: no"
    )


def test_an_error_ends_the_run_only_if_it_could_not_begin(heard: Heard) -> None:
    def error(command: str) -> ErrorSnapshot:
        return ErrorSnapshot(command=command, error=ErrorReport(type="LabError", message="no"))

    launched = heard.train(error("StepTrainingCommand"), error("TrainCommand"))
    assert [each.command for each in heard.told[1:]] == ["StepTrainingCommand", "TrainCommand"]
    assert launched.closed == 1


def test_a_run_that_is_left_is_stopped_in_its_folder(heard: Heard) -> None:
    folder = heard.written()
    Launched.script, Launched.failed = [snapshot("running")], None
    command = TrainCommand(model=MLP, training=TWO, folder=str(folder))
    steps = ranks.train_on_ranks(heard.lab, command)
    assert next(steps).step == 0 and next(steps).step == 1
    assert load(folder).state == "running"
    steps.close()
    assert load(folder).state == "stopped" and Launched.made[-1].closed == 1
    heard.train(snapshot("finished"))
    assert load(folder).state == "stopped"  # rank 0 has written its own end


def test_what_cannot_be_begun_is_told(heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    fields: dict[str, Any]
    for fields, words, way in (
        ({"find_divergence": True}, "Only a run of one process is held where it diverged",
         "Set processes to 1, Resume from the checkpoint before, and let it diverge again."),
        ({"to_step": 1}, "does not go to one of its steps", "Resume goes on from its last"),
        ({"training": replace(TWO, order=("forward", "loss", "backward", "zero_grad", "step"))},
         "in another order", ""),
        ({"training": replace(TWO, data=replace(TWO.data, loading=Loading(
            workers=2, in_order=False)))}, "they must come in order", ""),
    ):  # fmt: skip
        with pytest.raises(LabError, match=words) as refused:
            heard.train(**fields)
        assert refused.value.hint.startswith(way)

    def refuses(*_: Any) -> None:
        raise OSError("no process")

    monkeypatch.setattr(ranks, "Launched", refuses)
    with pytest.raises(LabError, match="The processes could not be started: no process"):
        heard.train()
    assert Launched.made == []


def test_a_run_goes_into_its_own_folder_or_the_one_that_it_goes_on_in(
    heard: Heard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENSORLAB_DATA_DIR", str(tmp_path / "data"))
    saved = SimpleNamespace(run="before", model=heard.weights)
    monkeypatch.setattr(ranks.checkpoint_files, "load", lambda path: saved)
    runs = str(tmp_path / "runs")
    own = tmp_path / "own"
    kept = heard.written() / "checkpoints" / "step-00000001.pt"
    fields: dict[str, Any]
    for fields, expected in (
        ({"folder": str(own), "runs": runs}, own),
        ({"folder": "", "runs": runs}, None),
        ({"folder": str(own), "runs": runs, "checkpoint": str(kept)}, heard.folder),
        ({"runs": runs, "checkpoint": str(tmp_path / "loose.pt")}, tmp_path / "runs" / "before"),
    ):  # fmt: skip
        launched = heard.train(snapshot("finished"), **fields)
        folder = Path(launched.train.folder)
        assert folder == expected or (expected is None and folder.parent == Path(runs))
    launched = heard.train(snapshot("finished"), folder="")
    assert Path(launched.train.folder).parent == tmp_path / "data" / "runs"


def test_commands_of_the_window_go_to_rank_0(heard: Heard) -> None:
    sent: list[Any] = []
    run = ranks.RanksRun(TWO, heard.folder, sent.append)
    for by in ("op", "module"):
        with pytest.raises(LabError, match="Several processes go on by phases") as refused:
            run.pass_on(StepTrainingCommand(by=by))
        assert refused.value.hint == "Take the next phase; or train in one process."
    commands = [StepTrainingCommand(by="phase"), ContinueTrainingCommand()]
    for command in commands:
        run.pass_on(command)
    assert sent == commands
    sent.clear()
    run.adjust(replace(TWO, epochs=9, seed=8))  # settings that a run does not take
    assert sent == []
    for setup in (replace(TWO, clip_norm=1.0), replace(TWO, hold=HoldWhen(loss_spike=3.0))):
        run.adjust(setup)
        run.adjust(setup)
        assert [each.training for each in sent] == [setup]
        sent.clear()
    assert not run.is_on_way and not run.stops_in_step
    assert run.tell_again() is None
    with pytest.raises(LabError, match="does not go to one of its steps"):
        run.check_way()
    with run.by_hand("step"), run.between_steps():
        pass


# -- in the ranks --------------------------------------------------------------------------------


def digest(**changes: Any) -> bytes:
    module = Lab(emit=lambda _: None).models.live_model(MLP, 0).module
    return as_rank.digest_of(
        TrainCommand(**{"model": MLP, "training": TWO, **changes}), changes.pop("module", module)
    )


def test_ranks_of_one_run_differ_in_nothing_but_places() -> None:
    own = digest()
    for same in (
        {"training": replace(TWO, device="cuda:1", processes=7)},
        {"folder": "/elsewhere", "runs": "/there"},
    ):
        assert digest(**same) == own
    for other in (
        {"training": replace(TWO, seed=9)}, {"subject": ConsoleSubject("net")},
        {"objective": Objective(loss_of_setup=True)}, {"model": replace(MLP, wires=())},
    ):  # fmt: skip
        assert digest(**other) != own
    command = TrainCommand(model=MLP, training=TWO)
    modules = torch.nn.Linear(2, 3), torch.nn.Linear(3, 2)
    assert as_rank.digest_of(command, modules[0]) != as_rank.digest_of(command, modules[1])


class First:
    """A rank; rank 0 has told `others`, or the same."""

    def __init__(self, rank: int, others: Callable[[bytes], bytes] = bytes) -> None:
        self.rank, self.size, self.device = rank, 2, torch.device("cpu")
        self.from_first = others


@pytest.mark.parametrize(
    ("rank", "folder", "is_there", "is_loaded"),
    [(0, "run", True, True), (1, "run", True, False), (0, "run", False, False),
     (0, "", True, False)],
)  # fmt: skip
def test_rank_0_begins_with_the_weights_that_it_was_given(
    rank: int, folder: str, is_there: bool, is_loaded: bool, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    for place in (tmp_path / "run" / RANKS, tmp_path / RANKS):
        place.mkdir(parents=True)
        if is_there:
            state = {"weight": torch.ones(1, 2), "bias": torch.ones(1)}
            torch.save(state, place / WEIGHTS)
    module = torch.nn.Linear(2, 1)
    with torch.no_grad():
        module.bias.fill_(5.0)
    objective: Any = SimpleNamespace(repeats=True)
    command = TrainCommand(model=MLP, training=TWO, folder=folder)
    made: list[Any] = []
    monkeypatch.setattr(as_rank, "RowsObjective", lambda *given: made.append(given) or "rows")
    whole: Any = First(rank)
    assert as_rank.begin_as_rank(whole, module, objective, command) == "rows"
    assert made == [(objective, whole, module, TWO.seed)]
    assert module.bias.item() == (1.0 if is_loaded else 5.0)
    other: Any = First(rank, lambda own: b"other")
    with pytest.raises(LabError, match=f"Rank {rank} has another model, set-up or data") as refused:
        as_rank.begin_as_rank(other, module, objective, command)
    assert refused.value.hint == "Start all ranks with the same project file and the same options."


def test_the_ranks_go_on_from_the_checkpoint_of_rank_0(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(as_rank.checkpoint_files, "dumps", lambda saved: f"{saved}".encode())
    monkeypatch.setattr(as_rank.checkpoint_files, "loads", lambda data: data.decode())
    whole: Any = First(0)
    saved: Any = "saved"
    assert as_rank.begin_together(whole, saved) == "saved"
    assert as_rank.begin_together(whole, None) is None
    other: Any = First(1, lambda own: b"first's")
    assert as_rank.begin_together(other, None) == "first's"


class Followed:
    """What a rank that follows does: `ran` has its steps, and how it was left."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, resume: Any, ends: int | None) -> None:
        self.ran: list[Any] = []
        followed = self

        class Loop:
            step = 0
            metrics = SimpleNamespace(drain=lambda with_cuda: followed.ran.append("drain"))

            def __init__(self, *given: Any) -> None:
                followed.given = given

            def restore(self, saved: Any) -> None:
                followed.ran.append(("restore", saved))

            def steps(self) -> Iterator[None]:
                for self.step in range(1, 4):
                    if self.step == ends:
                        raise as_rank.RanksEnded
                    followed.ran.append(self.step)
                    yield

            def flush(self) -> None:
                followed.ran.append("flush")

            def close(self) -> None:
                followed.ran.append("close")

        subject = SimpleNamespace(module="module", objective=lambda: "whole")
        monkeypatch.setattr(as_rank, "subject_of", lambda lab, command: subject)
        monkeypatch.setattr(as_rank, "begin_as_rank", lambda *given: ("rows", *given[1:3]))
        monkeypatch.setattr(as_rank, "begin_together", lambda ranks, own: resume)
        monkeypatch.setattr(as_rank, "TrainingLoop", Loop)
        monkeypatch.setattr(as_rank, "FLUSHED_STEPS", 2)
        monkeypatch.setattr(
            as_rank.dist, "destroy_process_group", lambda: self.ran.append("destroyed")
        )

    def follow(self, **fields: Any) -> None:
        ranks: Any = SimpleNamespace(end=lambda: self.ran.append("end"))
        lab: Any = SimpleNamespace(ranks=ranks)
        command = TrainCommand(**{"model": MLP, "training": TWO, **fields})
        as_rank.follow(lab, command)
        module, self.setup, objective, watching, subject, given_ranks = self.given
        assert (module, objective, watching) == ("module", ("rows", "module", "whole"), None)
        assert subject == command.subject and given_ranks is ranks


def test_a_rank_that_follows_trains_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    followed = Followed(monkeypatch, None, None)
    followed.follow()
    assert followed.ran == [1, 2, "flush", "drain", 3, "end", "close"]
    assert followed.setup == TWO


def test_a_rank_that_follows_goes_on_from_the_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    followed = Followed(monkeypatch, "saved", 2)
    followed.follow()
    assert followed.ran == [("restore", "saved"), 1, "destroyed", "close"]
    assert followed.setup == TWO
