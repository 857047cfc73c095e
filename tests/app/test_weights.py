"""The weights beside a project: when they count as saved, what is written, read and asked."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.settings import Settings
from app.store import Store
from app.weights import Weights, shown_name
from engine.project import edits
from engine.project.document import Project, replace
from engine.project.files import weights_file
from engine.protocol import (
    ErrorReport,
    ErrorSnapshot,
    FitSnapshot,
    InitialiseCommand,
    OpenWeightsCommand,
    SavedWeightsSnapshot,
    SaveWeightsCommand,
    StopSignal,
    TrialProgress,
    WeightsSnapshot,
)
from tests.app.conftest import AnsweringLink


class Desk:
    def __init__(self, folder: Path, training_snapshot) -> None:
        self.settings: Settings
        self.store, self.link = Store(), AnsweringLink()
        self.link.snapshot.connect(self.store.take)
        self.link.get_ready()
        self.weights = Weights(self.store, self.link)
        self.path = str(folder / "net.tlab")
        self.file = folder / "net.safetensors"
        self.training_snapshot = training_snapshot
        self.failures: list[str] = []
        self.changes: list[bool] = []
        self.weights.failed.connect(self.failures.append)
        self.weights.changed.connect(lambda: self.changes.append(self.weights.modified))

    def train(self, step: int, run: str = "r", state: str = "running") -> None:
        snapshot = self.training_snapshot(step=step, run=run, state=state)
        self.link.answer(snapshot)

    def write(self, run: str = "", step: int = 0) -> None:
        """The engine writes what it was asked to."""
        command = self.link.sent[-1]
        assert isinstance(command, SaveWeightsCommand)
        Path(os.fsdecode(command.path)).write_bytes(b"weights")
        self.link.answer(SavedWeightsSnapshot(run=run, step=step))


@pytest.fixture
def desk(tmp_path, qapp, training_snapshot) -> Desk:
    return Desk(tmp_path, training_snapshot)


def test_a_step_of_training_is_unsaved_and_saving_writes_it_beside_the_project(desk):
    desk.train(step=0)
    assert not desk.weights.modified and not desk.weights.learnt
    desk.train(step=1)
    assert desk.weights.modified and desk.changes == [True]
    settled: list[bool] = []
    desk.weights.settled.connect(lambda: settled.append(desk.weights.modified))
    desk.weights.save(desk.path)
    assert desk.link.sent[-1].path == os.fsencode(desk.file)
    assert desk.weights.writing and desk.weights.modified and not settled
    desk.write("r", 1)
    assert not desk.weights.modified and desk.weights.learnt and settled == [False]
    desk.train(step=1, state="stopped")  # the same weights
    assert not desk.weights.modified
    desk.train(step=2)
    assert desk.weights.modified


def test_steps_told_while_the_engine_writes_are_in_the_file_if_it_says_so(desk):
    desk.train(step=1)
    desk.weights.save(desk.path)
    desk.train(step=5)
    desk.write("r", 6)
    assert not desk.weights.modified
    desk.train(step=6, state="stopped")
    assert not desk.weights.modified
    desk.train(step=7)
    desk.weights.save(desk.path)
    desk.train(step=9)
    desk.write("r", 8)
    assert desk.weights.modified


def test_opening_a_project_loads_the_weights_beside_it(desk):
    desk.store.set_project(edits.add_block(Project(), "nn.ReLU", 0, 0)[0])
    desk.weights.open(desk.path)
    assert desk.link.sent == []  # there are none, and the engine has none of another project
    desk.file.write_bytes(b"weights")
    desk.weights.open(desk.path)
    (command,) = desk.link.sent
    assert isinstance(command, OpenWeightsCommand) and command.path == os.fsencode(desk.file)
    assert command.revision == desk.store.revision > 1
    desk.link.answer(WeightsSnapshot(origin="The weights are loaded.", parameters=3))
    assert desk.weights.learnt and not desk.weights.modified and desk.failures == []
    assert desk.weights.foreign_file(desk.path) == ""
    desk.weights.open("")  # a template: the engine forgets what it has
    assert desk.link.sent[-1].path == b"" and not desk.weights.learnt


def test_weights_that_do_not_fit_are_told_and_not_replaced_unasked(desk):
    desk.file.write_bytes(b"weights")
    desk.weights.open(desk.path)
    desk.link.fail("net.safetensors does not fit the model.")
    assert desk.failures == [
        "The weights beside the project were not loaded. net.safetensors does not fit the model."
    ]
    assert not desk.weights.learnt and not desk.weights.modified
    desk.weights.save(desk.path)
    assert desk.file.exists()
    desk.train(step=1)
    assert desk.weights.foreign_file(desk.path) == "net.safetensors"


def test_a_model_that_was_initialised_again_has_unsaved_new_weights(desk):
    desk.train(step=1)
    desk.weights.save(desk.path)
    desk.write("r", 1)
    project = Project()
    desk.link.send(InitialiseCommand(model=project.model, training=project.training))
    desk.link.answer(WeightsSnapshot(origin="initialised", parameters=3))
    assert desk.weights.modified and not desk.weights.learnt
    desk.weights.save(desk.path)
    assert not desk.file.exists() and not desk.weights.modified


def test_a_file_that_changed_since_is_not_removed(desk):
    desk.train(step=1)
    desk.weights.save(desk.path)
    desk.write("r", 1)
    desk.file.write_bytes(b"weights of another program")
    desk.link.answer(WeightsSnapshot(origin="initialised", parameters=3))
    desk.weights.save(desk.path)
    assert desk.file.read_bytes() == b"weights of another program"
    desk.train(step=2)
    assert desk.weights.foreign_file(desk.path) == "net.safetensors"


def test_a_failed_write_is_told_and_stays_unsaved(desk):
    desk.train(step=1)
    desk.weights.save(desk.path)
    error = ErrorReport(type="LabError", message="No space left on device.")
    desk.link.answer(ErrorSnapshot(command="SaveWeightsCommand", error=error))
    assert desk.failures == [
        "The weights were not saved in net.safetensors: No space left on device."
    ]
    assert desk.weights.modified and not desk.weights.writing


def test_an_engine_that_ends_takes_the_weights_and_the_next_one_gets_the_files(desk):
    desk.train(step=1)
    desk.weights.save(desk.path)
    desk.write("r", 1)
    desk.train(step=2)
    desk.weights.save(desk.path)
    desk.link.close()
    assert desk.failures == ["The weights were not saved in net.safetensors: the engine has ended"]
    assert not desk.weights.modified and not desk.weights.writing
    sent = len(desk.link.sent)
    desk.link.get_ready()
    (command,) = desk.link.sent[sent:]
    assert isinstance(command, OpenWeightsCommand) and command.path == os.fsencode(desk.file)
    desk.link.get_ready()
    assert len(desk.link.sent) == sent + 1


def test_without_an_engine_weights_are_opened_by_the_next_one_and_not_saved(desk):
    desk.link.close()
    desk.file.write_bytes(b"weights")
    desk.weights.open(desk.path)
    assert desk.link.sent == []
    desk.weights.save(desk.path)
    (failure,) = desk.failures
    assert failure.startswith("The weights were not saved in net.safetensors: There is no engine")
    desk.link.get_ready()
    assert isinstance(desk.link.sent[-1], OpenWeightsCommand)


def test_the_run_of_the_project_before_is_stopped_and_counts_no_more(desk):
    desk.train(step=1)
    desk.weights.open(desk.path)
    assert desk.link.signals == [StopSignal()]
    desk.train(step=2, state="stopped")
    assert not desk.weights.modified
    desk.train(step=1, run="next")
    assert desk.weights.modified


def test_a_trial_of_a_sweep_leaves_the_weights_as_they_were(desk):
    trial = desk.training_snapshot(step=3, run="r", trial=TrialProgress(1, 2, "", "loss"))
    desk.link.answer(trial)
    assert not desk.weights.modified and not desk.weights.learnt


def test_weights_that_were_loaded_are_unsaved_if_a_file_beside_is_to_have_them(desk):
    fit = FitSnapshot(path="/a.pt", title="net", loaded=True, matched=2, saved_beside=True)
    desk.link.answer(replace(fit, loaded=False))
    desk.link.answer(replace(fit, saved_beside=False))
    assert not desk.weights.modified
    desk.link.answer(fit)
    assert desk.weights.modified and desk.weights.learnt
    desk.weights.save(desk.path)
    desk.write()
    assert not desk.weights.modified


def test_weights_that_a_seed_gives_need_no_file(desk):
    settled: list[bool] = []
    desk.weights.settled.connect(lambda: settled.append(True))
    desk.weights.save(desk.path)
    assert settled == [True] and desk.link.sent == [] and not desk.file.exists()
    desk.file.write_bytes(b"of another program")
    assert desk.weights.foreign_file(desk.path) == ""  # nothing would replace it
    desk.weights.save(desk.path)
    assert desk.file.exists()


def test_what_was_learnt_elsewhere_is_told_with_the_weights(desk):
    desk.link.answer(WeightsSnapshot(origin="", parameters=3, learnt=True))
    assert desk.weights.modified and desk.weights.learnt


def test_an_old_file_that_cannot_be_removed_is_told(desk, monkeypatch):
    desk.train(step=1)
    desk.weights.save(desk.path)
    desk.write("r", 1)
    desk.link.answer(WeightsSnapshot(origin="initialised", parameters=3))

    def refuse(path):
        raise OSError(13, "Permission denied")

    monkeypatch.setattr(Path, "unlink", refuse)
    desk.weights.save(desk.path)
    assert desk.failures == [
        "The weights were not saved in net.safetensors: the old file stays: Permission denied"
    ]
    assert desk.weights.modified


def test_the_weights_of_two_projects_opened_in_turn_are_those_of_the_last(desk, tmp_path):
    desk.file.write_bytes(b"weights")
    desk.weights.open(desk.path)
    desk.weights.open(desk.path)
    first, second = (command.id for command in desk.link.sent)
    error = ErrorReport(type="LabError", message="It does not fit.")
    answer = ErrorSnapshot(command="OpenWeightsCommand", error=error)
    desk.link.answer(answer, to=first)
    assert desk.failures == [] and desk.weights.learnt
    desk.link.answer(answer, to=second)
    assert len(desk.failures) == 1 and not desk.weights.learnt


def test_the_file_is_named_after_the_project():
    assert weights_file("/a/b.c.tlab") == Path("/a/b.c.safetensors")
    assert shown_name(Path(os.fsdecode(b"/a/net\xff.tlab"))) == "net\ufffd.tlab"
