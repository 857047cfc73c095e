"""The runs of a project through the window: kept, listed, noted, compared, opened, deleted."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from PySide6.QtCore import Qt

from app import templates
from app.presenters.train.runs.runs import RunsPresenter
from engine.project import files
from engine.project.document import replace
from engine.protocol import StepColumns, TrainingSnapshot
from engine.runs import folders
from engine.runs.record import load
from widgets.runs.run_table import NOTE, RUN

pytestmark = pytest.mark.one_program


@pytest.fixture
def lab(program, tmp_path, monkeypatch):
    """The MLP template without a file, one short epoch, its runs listed."""
    monkeypatch.setenv("TENSORLAB_DATA_DIR", str(tmp_path / "data"))
    program.bench.files.new(templates.load_template("mlp"))
    program.window.show_workspace("train")
    setup = replace(program.bench.project.training, epochs=1, batch_size=512)
    program.workspaces.train.view.form.setup_edited.emit(setup, "Set epochs to 1")
    program.workspaces.train.view.bar.runs.setChecked(True)
    program.bench.link.drain()
    yield program
    program.workspaces.train.view.bar.runs.setChecked(False)


def trained(lab) -> TrainingSnapshot:
    lab.workspaces.train.view.bar.train_requested.emit()
    lab.bench.link.drain()
    return newest(lab)


def newest(lab) -> TrainingSnapshot:
    run = lab.bench.newest(TrainingSnapshot)
    assert run is not None
    return run


def pane_of(lab):
    return lab.workspaces.train.view.runs


def names(lab) -> list[str]:
    return [Path(row.folder).name for row in pane_of(lab).table.rows]


def set_rate(lab, rate: float) -> None:
    setup = replace(lab.bench.project.training, optimizer_params={"lr": rate})
    lab.workspaces.train.view.form.setup_edited.emit(setup, "Set lr")
    lab.bench.link.drain()


def weights(lab) -> dict[str, torch.Tensor]:
    run = lab.bench.link._session.lab.run
    return {name: tensor.clone() for name, tensor in run.loop.model.state_dict().items()}


def test_runs_are_listed_and_move_beside_the_project_that_is_saved(lab, answers, tmp_path):
    pane = pane_of(lab)
    assert not pane.empty.isHidden()
    first = trained(lab)
    set_rate(lab, 0.05)
    second = trained(lab)
    assert names(lab) == [second.run, first.run]
    assert Path(first.folder).parent == folders.data_runs()
    (row, _) = pane.table.rows
    assert row.epoch == second.epoch_rows[-1]
    assert (row.state, row.step) == ("finished", second.step)

    answers.save = str(tmp_path / "net.tlab")
    lab.bench.actions["file.save"].trigger()
    lab.bench.link.drain()
    beside = tmp_path / "net.runs"
    assert {folder.name for folder in beside.iterdir()} == {first.run, second.run}
    assert folders.runs_in(folders.data_runs()) == []
    assert names(lab) == [second.run, first.run]
    assert Path(newest(lab).checkpoint).is_file() and newest(lab).folder == str(beside / second.run)
    third = trained(lab)
    assert Path(third.folder).parent == beside
    lab.bench.files.new(templates.load_template("mlp"))
    lab.bench.link.drain()
    assert names(lab) == []
    lab.bench.files.open(str(tmp_path / "net.tlab"))
    lab.bench.link.drain()
    assert len(names(lab)) == 3


def test_a_run_that_is_paused_moves_and_goes_on(lab, answers, tmp_path):
    lab.workspaces.train.step()
    lab.bench.link.drain()
    answers.save = str(tmp_path / "net.tlab")
    lab.bench.actions["file.save"].trigger()
    lab.bench.link.drain()
    lab.workspaces.train.pause_or_continue()
    lab.bench.link.drain()
    run = newest(lab)
    assert (run.state, Path(run.folder).parent) == ("finished", tmp_path / "net.runs")
    (row,) = pane_of(lab).table.rows
    assert (row.state, row.step) == ("finished", run.step)
    assert Path(run.checkpoint).is_relative_to(tmp_path / "net.runs")


def test_a_run_is_opened_with_its_settings_its_curves_and_its_weights(lab):
    first = trained(lab)
    state = weights(lab)
    points = lab.workspaces.train.view.board.plots["loss"].tracks["loss"].raw.y.tolist()
    settings = lab.bench.project.training
    set_rate(lab, 0.05)
    trained(lab)
    pane = pane_of(lab)
    pane.table.selectRow(1)
    assert not pane.resume.isEnabled()  # it is finished
    pane.open.click()
    lab.bench.link.drain()
    assert (newest(lab).run, newest(lab).state) == (first.run, "finished")
    assert lab.bench.project.training == settings
    assert all(torch.equal(tensor, state[name]) for name, tensor in weights(lab).items())
    assert lab.workspaces.train.view.board.plots["loss"].tracks["loss"].raw.y.tolist() == points
    assert "Undo Take over the settings" in lab.bench.actions["edit.undo"].text()
    lab.bench.actions["edit.undo"].trigger()
    assert lab.bench.project.training.optimizer_params == {"lr": 0.05}


def test_a_stopped_run_is_resumed(lab):
    for _ in range(2):
        lab.workspaces.train.step()
        lab.bench.link.drain()
    lab.bench.link.stop_job()
    lab.bench.link.drain()
    stopped = newest(lab)
    assert (stopped.state, stopped.step) == ("stopped", 2)
    whole = trained(lab)
    pane = pane_of(lab)
    assert [row.state for row in pane.table.rows] == ["finished", "stopped"]
    pane.table.selectRow(1)
    pane.open.click()
    lab.bench.link.drain()
    assert (newest(lab).run, newest(lab).state, newest(lab).step) == (stopped.run, "paused", 2)
    assert not pane.open.isEnabled()  # it is under way
    lab.bench.link.stop_job()
    lab.bench.link.drain()
    pane.table.clearSelection()
    pane.table.selectRow(1)
    pane.resume.click()
    lab.bench.link.drain()
    assert (newest(lab).run, newest(lab).state) == (stopped.run, "finished")
    assert newest(lab).step == whole.step


def test_a_project_that_is_opened_again_resumes_its_run(lab, answers, tmp_path):
    answers.save = str(tmp_path / "net.tlab")
    lab.bench.actions["file.save"].trigger()
    lab.workspaces.train.step()
    lab.bench.link.drain()
    lab.bench.link.stop_job()
    lab.bench.link.drain()
    stopped = newest(lab)
    lab.bench.files.new(templates.load_template("lenet"))
    lab.bench.link.drain()
    bar = lab.workspaces.train.view.bar
    assert bar.resume.isHidden()
    lab.bench.files.open(answers.save)
    lab.bench.link.drain()
    assert not bar.resume.isHidden() and "a checkpoint of step 1" in bar._result.text()
    bar.resume.click()
    lab.bench.link.drain()
    assert (newest(lab).run, newest(lab).state) == (stopped.run, "finished")
    assert Path(newest(lab).folder) == tmp_path / "net.runs" / stopped.run


def test_no_run_is_opened_over_one_that_is_under_way(lab):
    first = trained(lab)
    lab.workspaces.train.step()
    lab.bench.link.drain()
    pane = pane_of(lab)
    pane.table.selectRow(1)
    pane.open.click()
    lab.bench.link.drain()
    assert "Stop it first" in pane.told.text()
    assert newest(lab).state == "paused" and newest(lab).run != first.run


def test_a_note_is_kept(lab):
    run = trained(lab)
    pane = pane_of(lab)
    pane.table.cell(0, NOTE).setText("the good one")
    lab.bench.link.drain()
    assert load(Path(run.folder)).note == "the good one"
    assert pane.table.rows[0].note == "the good one"
    pane.table.cell(0, NOTE).setText("x" * 501)
    lab.bench.link.drain()
    assert "at most 500 characters" in pane.told.text()
    trained(lab)
    pane.search.setText("good one")
    assert names(lab) == [run.run]
    pane.search.setText("nothing has this")
    assert names(lab) == [] and "No run holds" in pane.empty.text()
    pane.search.setText("")


def test_two_runs_are_compared(lab):
    trained(lab)
    set_rate(lab, 0.05)
    trained(lab)
    pane = pane_of(lab)
    pane.table.selectAll()
    pane.compare.click()
    lab.bench.link.drain()
    found = pane.difference.table
    assert [found.cell(0, column).text() for column in range(3)] == [
        "optimizer_params.lr", "0.05", "0.003",
    ]  # fmt: skip
    assert found.rowCount() == 1 and not pane.difference.isHidden()


def test_deleted_runs_come_back(lab):
    first, second = trained(lab), trained(lab)
    pane = pane_of(lab)
    assert pane.undo.isHidden()
    pane.table.selectRow(0)
    pane.delete.click()
    lab.bench.link.drain()
    assert names(lab) == [first.run] and not Path(second.folder).exists()
    pane.undo.click()
    lab.bench.link.drain()
    assert names(lab) == [second.run, first.run] and pane.undo.isHidden()
    assert Path(newest(lab).checkpoint).is_file()


def test_a_damaged_run_is_listed_and_told(lab):
    run = trained(lab)
    (Path(run.folder) / "run.json").write_text("{")
    pane = pane_of(lab)
    lab.workspaces.train.view.bar.runs.setChecked(False)
    lab.workspaces.train.view.bar.runs.setChecked(True)
    lab.bench.link.drain()
    assert [row.state for row in pane.table.rows] == ["damaged"]
    assert pane.table.cell(0, RUN).flags() & Qt.ItemFlag.ItemIsEnabled
    pane.table.selectRow(0)
    pane.open.click()
    lab.bench.link.drain()
    assert "run.json" in pane.told.text()


def test_the_question_before_a_run_is_stopped_says_where_it_stays(lab, answers, tmp_path):
    asked = []
    answers.confirm = lambda _parent, question, _yes: asked.append(question)
    run = replace(trained(lab), state="running", steps=StepColumns(), epoch_rows=())
    lab.bench.store.take(run)
    assert not lab.bench.files.may_leave()
    lab.bench.files.path = str(tmp_path / "net.tlab")
    beside = files.runs_folder(lab.bench.files.path)
    lab.bench.store.take(replace(run, folder=f"{beside}/run"))
    assert not lab.bench.files.may_leave()
    lab.bench.files.path = ""
    lab.bench.store.take(replace(run, state="stopped"))
    assert "stays in your data folder" in asked[0] and "stays in net.runs" in asked[1]


def test_the_question_about_learnt_weights_says_which_stay(lab, answers, tmp_path):
    asked = []
    answers.unsaved = lambda *args: asked.append(args[2:]) or "cancel"
    run = trained(lab)
    assert not lab.bench.files.may_leave()
    answers.save = str(tmp_path / "net.tlab")
    lab.bench.actions["file.save"].trigger()
    lab.bench.link.drain()
    assert lab.bench.files.may_leave()
    trained(lab)
    assert not lab.bench.files.may_leave()
    (first, kept), (second, kept_beside) = asked
    assert first[-1] == second[0] == "the weights that the model has learnt"
    assert f"The weights of step {run.step:,} stay in your data folder" in kept
    assert "stay in net.runs" in kept_beside


def test_ticked_runs_are_drawn_over_the_plots(lab):
    first = trained(lab)
    loss = first.epoch_rows[-1].validation_loss
    set_rate(lab, 0.05)
    second = trained(lab)
    plot = lab.workspaces.train.view.board.plots["loss"]
    losses = plot.tracks["loss"].raw.y.tolist()
    pane = pane_of(lab)

    def drawn() -> list[list[float]]:
        return [track.raw.y.tolist() for _, track in plot._overlays]

    for row in (0, 1):
        pane.table.cell(row, RUN).setCheckState(Qt.CheckState.Checked)
        lab.bench.link.drain()
    assert len(drawn()) == 1 and loss  # the run of the plots is not drawn twice
    third = trained(lab)
    assert plot.tracks["loss"].raw.y.tolist() != losses
    assert drawn()[0] == losses  # of one epoch: its steps
    assert len(drawn()) == 2
    pane.search.setText("nothing has this")
    lab.bench.link.drain()
    assert len(drawn()) == 2  # the filter takes no run from the plots
    pane.search.setText("")
    pane.table.selectRow(1)
    pane.delete.click()
    lab.bench.link.drain()
    assert len(drawn()) == 1 and third.run != second.run
    lab.bench.files.new(templates.load_template("mlp"))
    assert drawn() == []


def test_a_run_goes_to_tensorboard_and_comes_back_as_curves(lab, answers, tmp_path, monkeypatch):
    run = trained(lab)
    pane = pane_of(lab)
    assert not pane.events.isEnabled()
    pane.table.selectRow(0)
    out = tmp_path / "events"
    monkeypatch.setattr(answers, "open_folder", lambda *_: str(out), raising=False)
    pane.events.click()
    assert not pane.stop.isHidden() and not pane.events.isEnabled()
    lab.bench.link.drain()
    assert pane.stop.isHidden() and pane.told.text().startswith(f"Written into {out}: {run.run}.")
    pane.folder.click()
    lab.bench.link.drain()
    (row,) = pane.table.rows
    assert (row.state, row.title, row.step) == ("event files", run.run, run.step)
    plot = lab.workspaces.train.view.board.plots["loss"]
    own = plot.tracks["loss"].raw
    pane.table.cell(0, RUN).setCheckState(Qt.CheckState.Checked)
    lab.bench.link.drain()
    ((_, drawn),) = plot._overlays
    assert drawn.raw.x.tolist() == own.x.tolist()
    assert drawn.raw.y.tolist() == pytest.approx(own.y.tolist(), rel=1e-6)
    pane.table.selectRow(0)
    buttons = pane.open, pane.resume, pane.delete, pane.events
    assert not any(button.isEnabled() for button in buttons)
    pane.home.click()
    lab.bench.link.drain()
    assert names(lab) == [run.run]
    pane.table.selectRow(0)
    pane.events.click()
    lab.bench.link.drain()
    assert "has something already" in pane.told.text() and pane.stop.isHidden()


def test_event_files_of_a_script_that_trains_are_drawn_as_they_grow(lab, tmp_path):
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(tmp_path / "logs" / "net"))
    for step in (1, 2):
        writer.add_scalar("loss", 1 / step, step)
    writer.flush()
    presenter = lab.workspaces.findChild(RunsPresenter)
    presenter.show_folder(str(tmp_path / "logs"))
    lab.bench.link.drain()
    plot = lab.workspaces.train.view.board.plots["loss"]
    assert [len(track.raw) for _, track in plot._overlays] == [2]  # drawn without being asked for
    writer.add_scalar("loss", 0.25, 4)
    writer.close()
    assert presenter._again.isActive()
    presenter._again.timeout.emit()
    lab.bench.link.drain()
    assert [row.step for row in pane_of(lab).table.rows] == [4]
    assert [track.raw.x.tolist() for _, track in plot._overlays] == [[1, 2, 4]]
    presenter.show_folder("")
    lab.bench.link.drain()


def test_save_as_asks_once_whether_the_runs_go_along(lab, answers, tmp_path, monkeypatch):
    first, second, third = (str(tmp_path / f"{name}.tlab") for name in ("one", "two", "three"))
    asked: list[tuple[str, str]] = []
    agrees: list[str] = []

    def confirm(_parent, question: str, yes: str) -> bool:
        asked.append((question, yes))
        return bool(agrees)

    monkeypatch.setattr(answers, "confirm", confirm, raising=False)
    answers.save = first
    lab.bench.actions["file.save"].trigger()
    lab.bench.link.drain()
    answers.save = second
    lab.bench.actions["file.save_as"].trigger()
    lab.bench.link.drain()
    assert asked == []  # there is no run yet
    run = trained(lab)
    answers.save = third
    lab.bench.actions["file.save_as"].trigger()
    lab.bench.link.drain()
    ((question, yes),) = asked
    assert question == "two.runs has 1 run of this project. Copy them beside three.tlab, too?"
    assert yes == "Copy" and not (tmp_path / "three.runs").exists() and names(lab) == []
    lab.bench.files.open(second)
    lab.bench.link.drain()
    agrees.append("yes")
    lab.bench.actions["file.save_as"].trigger()
    lab.bench.link.drain()
    copy = tmp_path / "three.runs" / run.run
    assert names(lab) == [run.run] and pane_of(lab).stop.isHidden()
    assert "1 runs are copied" in pane_of(lab).told.text() or not pane_of(lab).told.text()
    assert load(copy) == load(Path(run.folder)) and Path(run.folder).is_dir()
    pane_of(lab).table.selectRow(0)
    pane_of(lab).open.click()
    lab.bench.link.drain()
    assert newest(lab).folder == str(copy) and newest(lab).step == run.step
