"""A sweep through the window: its form, its trials in the list, and the best one's settings."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from app import templates
from engine.project.document import replace
from engine.protocol import TrainingSnapshot
from engine.runs.record import load

pytestmark = pytest.mark.one_program


@pytest.fixture
def lab(program, tmp_path, monkeypatch):
    """The MLP template, one short epoch, with the form of a sweep."""
    monkeypatch.setenv("TENSORLAB_DATA_DIR", str(tmp_path / "data"))
    program.bench.files.new(templates.load_template("mlp"))
    program.window.show_workspace("train")
    setup = replace(program.bench.project.training, epochs=1, batch_size=512)
    view = program.workspaces.train.view
    view.form.setup_edited.emit(setup, "Set epochs to 1")
    view.bar.runs.setChecked(True)
    program.bench.link.drain()
    view.runs.sweep.setChecked(True)
    yield program
    view.bar.runs.setChecked(False)


def newest(lab) -> TrainingSnapshot:
    run = lab.bench.newest(TrainingSnapshot)
    assert run is not None
    return run


def test_a_sweep_leaves_its_trials_and_the_model_as_it_was(lab) -> None:
    view = lab.workspaces.train.view
    form, pane = view.runs.sweeps, view.runs
    names = {option.name for option in form._options}
    assert {"optimizer_params.lr", "batch_size", "optimizer", "blocks.linear1.bias"} <= names
    for option in form._options:  # what is offered can be had
        row = form.rows[0]
        row.setting.setCurrentIndex(row.setting.findData(option.name))
        asked = []
        lab.workspaces.train.sweep, real = asked.append, lab.workspaces.train.sweep
        form.start.click()
        lab.workspaces.train.sweep = real
        assert asked and form.told.isHidden(), option
    form.rows[0].setting.setCurrentIndex(0)
    form.rows[0].values.setText("1e-5, 0.01")
    form.trials.setValue(3)
    view.bar.train_requested.emit()
    lab.bench.link.drain()
    lab.bench.weights._set(1, 1)  # as if they were saved
    module = lab.bench.link._session.lab.run.loop.model
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    settings = lab.bench.project.training
    states = []
    lab.bench.store.on(TrainingSnapshot, lambda run: states.append(run.state))
    form.start.click()
    assert pane.sweeps.isHidden()
    lab.bench.link.drain()
    assert states[-1] == "finished" and set(states[:-1]) == {"running"}
    assert newest(lab).trial.has_ended
    assert "The sweep has ended after 3 of 3 trials: the best is trial" in view.bar._result.text()
    module = lab.bench.link._session.lab.run.loop.model
    assert all(torch.equal(t, before[name]) for name, t in module.state_dict().items())
    assert not lab.bench.weights.modified and lab.bench.project.training == settings

    trials = [row for row in pane.table.rows if row.trial is not None]
    assert len(trials) == 3 and len(pane.table.rows) == 4
    best = next(row for row in trials if row.trial.state == "best")
    assert best.trial.value == min(row.epoch.validation_loss for row in trials)
    line = next(
        line for line in range(pane.table.rowCount())
        if pane.table.cell(line, 0).text() == f"trial {best.trial.number}"
    )  # fmt: skip
    pane.table.selectRow(line)
    pane.use.click()
    lab.bench.link.drain()
    assert lab.bench.project.training == load(Path(best.folder)).project.training != settings
    assert newest(lab).trial is not None  # nothing was trained
    lab.bench.actions["edit.undo"].trigger()
    assert lab.bench.project.training == settings


def test_a_sweep_that_makes_no_sense_is_told_in_the_form(lab) -> None:
    form = lab.workspaces.train.view.runs.sweeps
    form.rows[0].setting.setCurrentIndex(form.rows[0].setting.findData("batch_size"))
    form.rows[0].values.setText("0, 8")
    form.start.click()
    assert "batch_size cannot be 0" in form.told.text()
    lab.workspaces.train.step()
    lab.bench.link.drain()
    form.rows[0].values.setText("8")
    form.start.click()
    assert "Another run is under way" in form.told.text()


def test_a_sweep_is_stopped(lab) -> None:
    view = lab.workspaces.train.view
    form = view.runs.sweeps
    form.trials.setValue(50)
    form.start.click()
    link = lab.bench.link
    while newest_or_none(lab) is None or newest(lab).trial.number < 2:
        link._work()
    link.stop_job()
    link.drain()
    run = newest(lab)
    assert run.state == "stopped" and run.trial.has_ended and run.trial.number < 50
    assert "The sweep has ended after" in view.bar._result.text()


def newest_or_none(lab) -> TrainingSnapshot | None:
    run = lab.bench.newest(TrainingSnapshot)
    return run if run is not None and run.trial is not None else None
