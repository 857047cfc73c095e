"""Training and export through the window, the engine in this process."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import torch
from PySide6.QtCore import QSettings
from PySide6.QtWidgets import QPushButton

from app import templates
from app.application import build
from app.processes.inline_link import InlineLink
from app.settings import Settings
from engine.project.document import replace
from engine.protocol import EpochRow, ExportSnapshot, TrainingSnapshot
from tests.scripts import run_script
from tests.verifying import one_verifier

pytestmark = pytest.mark.one_program


@pytest.fixture
def mlp(program):
    """The MLP template, set to one epoch of 22 steps."""
    program.bench.files.new(templates.load_template("mlp"))
    program.window.show_workspace("train")
    setup = replace(program.bench.store.project.training, epochs=1, batch_size=64)
    view(program).form.setup_edited.emit(setup, "Set epochs to 1")
    program.bench.link.drain()
    return program


def view(program):
    return program.window.page("train")


def run_of(program) -> TrainingSnapshot:
    run = program.bench.store.newest(TrainingSnapshot)
    assert run is not None
    return run


def collect(program) -> list[TrainingSnapshot]:
    seen: list[TrainingSnapshot] = []
    program.bench.store.on(TrainingSnapshot, seen.append)
    return seen


def test_one_epoch_is_trained_and_shown(mlp):
    seen = collect(mlp)
    view(mlp).bar.train_requested.emit()
    mlp.bench.link.drain()
    run = run_of(mlp)
    assert (run.state, run.step, run.epoch) == ("finished", 23, 1)
    rows: list[EpochRow] = [row for snapshot in seen for row in snapshot.epoch_rows]
    assert len(rows) == 1
    assert rows[0].train_loss > 0
    assert "Finished 1 epoch, " in view(mlp).bar._result.text()


def test_the_set_up_is_undoable(mlp):
    assert mlp.bench.actions["edit.undo"].text() == "&Undo Set epochs to 1"
    mlp.bench.actions["edit.undo"].trigger()
    assert mlp.bench.store.project.training.epochs == 20


def test_single_steps_pause_and_go_on(mlp):
    view(mlp).bar.step_requested.emit()
    mlp.bench.link.drain()
    assert (run_of(mlp).state, run_of(mlp).step) == ("paused", 1)
    view(mlp).bar.step_requested.emit()
    mlp.bench.link.drain()
    assert run_of(mlp).step == 2
    view(mlp).bar.continue_requested.emit()
    mlp.bench.link.drain()
    assert run_of(mlp).state == "finished"


def test_a_run_goes_back_and_from_there_with_another_rate(mlp):
    bar = view(mlp).bar
    for _ in range(3):
        bar.step_requested.emit()
        mlp.bench.link.drain()
    points = view(mlp).board.plots["loss"].tracks["loss"].raw
    losses = points.y.tolist()
    bar.back.click()
    mlp.bench.link.drain()
    assert (run_of(mlp).state, run_of(mlp).step, bar.to_step.value()) == ("paused", 2, 2)
    bar.step_requested.emit()
    mlp.bench.link.drain()
    points = view(mlp).board.plots["loss"].tracks["loss"].raw
    assert (points.x.tolist(), points.y.tolist()) == ([1, 2, 3], losses)  # bit for bit again
    bar.to_step.setValue(1)
    bar.to_step.lineEdit().returnPressed.emit()
    mlp.bench.link.drain()
    assert (run_of(mlp).state, run_of(mlp).step) == ("paused", 1)
    setup = mlp.bench.store.project.training
    faster = replace(setup, optimizer="optim.SGD", optimizer_params={"lr": 0.5})
    view(mlp).form.setup_edited.emit(faster, "Use the optimizer SGD")
    mlp.bench.actions["train.back"].trigger()
    mlp.bench.link.drain()
    assert run_of(mlp).step == 0 and not bar.back.isEnabled()
    bar.step_requested.emit()
    mlp.bench.link.drain()
    points = view(mlp).board.plots["loss"].tracks["loss"].raw
    assert points.y.tolist() == losses[:1]
    assert view(mlp).board.plots["learning_rate"].tracks["learning_rate"].raw.y.tolist() == [0.5]


def test_what_a_run_cannot_take_back_is_told(mlp):
    view(mlp).bar.step_requested.emit()
    mlp.bench.link.drain()
    setup = replace(mlp.bench.store.project.training, batch_size=32)
    view(mlp).form.setup_edited.emit(setup, "Set batch size to 32")
    view(mlp).bar.back.click()
    mlp.bench.link.drain()
    assert "The batch size of a run cannot change" in view(mlp).bar._result.text()


def test_a_stopped_run_is_resumed_from_its_checkpoint(mlp):
    view(mlp).bar.step_requested.emit()
    mlp.bench.link.drain()
    view(mlp).bar.stop_requested.emit()
    mlp.bench.link.drain()
    stopped = run_of(mlp)
    assert stopped.state == "stopped"
    assert Path(stopped.checkpoint).exists()
    mlp.bench.actions["train.resume"].trigger()
    mlp.bench.link.drain()
    assert (run_of(mlp).state, run_of(mlp).step) == ("finished", 23)


def test_a_model_that_does_not_run_is_not_trained(program):
    program.window.show_workspace("train")
    program.bench.link.drain()
    view(program).bar.train_requested.emit()
    program.bench.link.drain()
    assert program.bench.store.newest(TrainingSnapshot) is None
    assert "no Input" in view(program).bar._problem


def test_the_block_that_keeps_a_model_from_training_is_named(mlp):
    mlp.workspaces.model.edits.add_block("nn.Linear", 0, 600)
    view(mlp).bar.train_requested.emit()
    mlp.bench.link.drain()
    name = mlp.bench.store.project.model.blocks[-1].name
    assert f"“{name}”: Input “" in view(mlp).bar._problem


def test_the_run_is_shown_while_the_model_is_edited(mlp):
    view(mlp).bar.step_requested.emit()
    mlp.bench.link.drain()
    mlp.workspaces.model.edits.add_block("nn.ReLU", 0, 400)
    view(mlp).bar.step_requested.emit()
    mlp.bench.link.drain()
    assert run_of(mlp).step == 2


@pytest.fixture
def exported(mlp):
    """Exports to a path; what the engine found."""

    def export(form, path) -> ExportSnapshot:
        mlp.bench.store.forget(ExportSnapshot)
        mlp.export.export(form, str(path))
        mlp.bench.link.drain()
        return mlp.bench.store.newest(ExportSnapshot)

    with one_verifier():
        yield export


def test_weights_are_exported_by_the_dialog_compared_and_shown(mlp, exported, answers, tmp_path):
    view(mlp).bar.train_requested.emit()
    mlp.bench.link.drain()
    answers.save = str(tmp_path / "mlp")
    mlp.bench.actions["file.export"].trigger()
    mlp.bench.link.drain()
    dialog = mlp.export.dialog
    assert dialog.isVisible() and "step 23" in dialog.view.subject.text()
    dialog.view.formats.choose("safetensors")
    dialog.view.export.click()
    mlp.bench.link.drain()
    path = tmp_path / "mlp.safetensors"
    told = dialog.view.result.text
    assert told("path") == str(path) and "is verified" in dialog.view.result.verdict.text()
    assert told("sha256") == hashlib.sha256(path.read_bytes()).hexdigest()
    assert told("error") == "0: bit for bit the same"
    assert f"{path.stat().st_size:,} bytes" in told("size")


def test_exported_weights_fit_the_exported_code(mlp, exported, tmp_path):
    view(mlp).bar.train_requested.emit()
    mlp.bench.link.drain()
    for form in ("pt", "py"):
        assert exported(form, tmp_path / f"mlp.{form}").verified
    namespace: dict = {"__name__": "exported"}
    exec((tmp_path / "mlp.py").read_text(encoding="utf-8"), namespace)
    net = namespace["Model"]()
    missing = net.load_state_dict(torch.load(tmp_path / "mlp.pt", weights_only=True))
    assert missing.missing_keys == []


def test_the_training_is_exported_as_a_script_that_begins_where_it_began(mlp, exported, tmp_path):
    view(mlp).bar.train_requested.emit()
    mlp.bench.link.drain()
    assert exported("script", tmp_path / "train.py").verified
    lines = mlp.export.dialog.view.details.lines.text()
    assert lines.endswith("python train.py --out weights.pt")
    assert exported("pt", tmp_path / "lab.pt").verified
    out = tmp_path / "script.pt"
    run_script(tmp_path / "train.py", "--out", str(out))
    expected, found = (torch.load(path, weights_only=True) for path in (tmp_path / "lab.pt", out))
    assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_the_checkpoint_of_a_run_is_that_of_its_step(mlp, exported, tmp_path):
    view(mlp).bar.step_requested.emit()
    mlp.bench.link.drain()
    done = exported("checkpoint", tmp_path / "run.pt")
    assert done.verified and done.notes == ("It is that of step 1.",)
    saved = torch.load(tmp_path / "run.pt", weights_only=True)
    assert saved["step"] == 1 and len(saved["optimizer"]["state"]) == len(weights(mlp))
    assert all(torch.equal(saved["model"][k], v) for k, v in weights(mlp).items())


def test_an_export_that_cannot_be_written_is_told_in_the_dialog(mlp, exported, tmp_path):
    exported("pt", tmp_path / "no" / "mlp.pt")
    assert f"The folder {tmp_path / 'no'} does not exist" in mlp.export.dialog.view.told.text()


def test_trained_weights_come_back_after_a_restart(mlp):
    view(mlp).bar.train_requested.emit()
    mlp.bench.link.drain()
    trained = {k: v.clone() for k, v in weights(mlp).items()}
    mlp.bench.actions["engine.restart"].trigger()
    mlp.bench.link.drain()
    banner = mlp.window.banners.banner("engine")
    banner.findChild(QPushButton, "banner_restore_weights").click()
    mlp.bench.link.drain()
    assert run_of(mlp).state == "finished"
    assert all(torch.equal(trained[name], value) for name, value in weights(mlp).items())


def weights(program) -> dict[str, torch.Tensor]:
    return program.bench.link._session.lab.models.live.module.state_dict()


# -- weights beside the project ----------------------------------------------------------------


def weight_of(program) -> torch.Tensor:
    live = program.bench.link._session.lab.models.live
    return next(live.module.parameters()).detach().clone()


def train_to_the_end(program) -> None:
    view(program).bar.train_requested.emit()
    program.bench.link.drain()


def test_what_was_learnt_is_unsaved_work_and_comes_back_with_the_project(
    mlp, qtbot, tmp_path, answers
):
    answers.save = str(tmp_path / "net.tlab")
    assert mlp.bench.files.save()
    assert not mlp.window.isWindowModified()
    assert not (tmp_path / "net.safetensors").exists()
    train_to_the_end(mlp)
    assert mlp.window.isWindowModified()
    learnt = weight_of(mlp)
    asked: list[tuple] = []
    answers.unsaved = lambda *args: asked.append(args[1:]) or "cancel"
    assert not mlp.bench.files.new(templates.load_template("lenet"))  # another template asks
    assert not mlp.window.close()
    stays = "The weights of step 23 stay in net.runs: Runs in Train opens them."
    assert asked == [("net", ["the weights that the model has learnt"], stays)] * 2

    answers.unsaved = lambda *args: "save"
    assert mlp.bench.files.new()  # it waits until the engine has written them
    assert (tmp_path / "net.safetensors").exists()
    assert not mlp.bench.weights.learnt

    assert mlp.bench.files.open(str(tmp_path / "net.tlab"))
    mlp.bench.link.drain()
    assert torch.equal(weight_of(mlp), learnt)
    assert not mlp.window.isWindowModified()
    train_to_the_end(mlp)  # from the weights that were loaded
    assert mlp.window.isWindowModified()


def test_weights_of_another_model_are_told_in_words(mlp, tmp_path, answers):
    answers.save = str(tmp_path / "net.tlab")
    train_to_the_end(mlp)
    mlp.bench.files.save()
    mlp.bench.link.drain()
    lenet = templates.FOLDER / "lenet.tlab"
    (tmp_path / "net.tlab").write_bytes(lenet.read_bytes())
    mlp.bench.files.open(str(tmp_path / "net.tlab"))
    mlp.bench.link.drain()
    banner = mlp.window.banners.banner("weights")
    assert banner is not None
    assert banner.title.startswith(
        "The weights beside the project were not loaded. net.safetensors does not fit the model."
    )
    assert not mlp.window.isWindowModified()


def test_another_project_with_the_same_blocks_starts_with_weights_of_its_own(mlp, answers):
    train_to_the_end(mlp)
    learnt = weight_of(mlp)
    answers.leave = "discard"
    assert mlp.bench.files.new(templates.load_template("mlp"))
    mlp.bench.link.drain()
    models = mlp.bench.link._session.lab.models
    project = mlp.bench.project
    models.live_model(project.model, project.training.seed)
    assert not torch.equal(weight_of(mlp), learnt)
    first = weight_of(mlp)
    models.live.reset(project.model, project.training.seed)
    assert torch.equal(weight_of(mlp), first)


def test_resume_finds_the_checkpoint_of_an_earlier_start(mlp, qtbot, tmp_path, answers):
    view(mlp).bar.step_requested.emit()
    mlp.bench.link.drain()
    view(mlp).bar.stop_requested.emit()
    mlp.bench.link.drain()
    answers.save = str(tmp_path / "net.tlab")
    mlp.bench.files.save()
    mlp.bench.link.drain()
    (tmp_path / "net.safetensors").unlink()
    settings = Settings(QSettings(str(tmp_path / "again.ini"), QSettings.Format.IniFormat))
    again = build(InlineLink, answers, settings, tmp_path / "recovery 2")
    try:
        again.start(str(tmp_path / "net.tlab"))
        again.window.show_workspace("train")
        again.bench.link.drain()
        bar = view(again).bar
        assert not bar.resume.isHidden()
        assert "There is a checkpoint of step 1, written " in bar._result.text()
        again.bench.actions["train.resume"].trigger()
        again.bench.link.drain()
        run = run_of(again)
        assert (run.state, run.step) == ("finished", 23) and run.run == run_of(mlp).run
        assert again.window.isWindowModified()
    finally:
        again.close()
        again.window.deleteLater()
        again.deleteLater()


def test_resume_without_a_checkpoint_of_this_model_says_so(mlp):
    mlp.bench.actions["train.resume"].trigger()
    mlp.bench.link.drain()
    assert mlp.window.statusBar().currentMessage() == (
        "There is no checkpoint of this model and set-up to resume from."
    )


def test_after_a_diverged_run_train_begins_from_fresh_weights(mlp):
    bar = view(mlp).bar
    assert not bar.weights.fresh and bar.weights.box.isVisible() and bar.weights.box.isEnabled()
    good = mlp.bench.project.training
    absurd = replace(good, optimizer="optim.SGD", optimizer_params={"lr": 1e30})
    view(mlp).form.setup_edited.emit(absurd, "Set lr to 1e30")
    bar.train_requested.emit()
    mlp.bench.link.drain()
    assert run_of(mlp).state == "failed"
    assert bar.weights.fresh and "with fresh weights" in bar._result.text()
    view(mlp).form.setup_edited.emit(good, "Set lr")
    bar.train_requested.emit()
    mlp.bench.link.drain()
    assert run_of(mlp).state == "finished"
    assert bar._last.validation_accuracy > 0.5
    assert not bar.weights.fresh and "Next: export" in bar._result.text()


def test_a_learning_rate_typed_while_paused_is_that_of_the_next_step(mlp):
    view(mlp).bar.step_requested.emit()
    mlp.bench.link.drain()
    seen = collect(mlp)
    setup = mlp.bench.project.training
    params = {**setup.optimizer_params, "lr": 0.25}
    view(mlp).form.setup_edited.emit(replace(setup, optimizer_params=params), "Set lr to 0.25")
    view(mlp).bar.step_requested.emit()
    mlp.bench.link.drain()
    assert [rate for snapshot in seen for rate in snapshot.steps.learning_rate] == [0.25]
    assert "next step" in view(mlp).form._note.text()
