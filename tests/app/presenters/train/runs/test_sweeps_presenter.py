"""The form of a sweep follows the project; what is started, and what is said instead."""

from __future__ import annotations

import pytest

from app.presenters.train.runs.sweeps import SweepsPresenter, options_of
from app.presenters.train.train import TrainPresenter
from engine.project import edits
from engine.project.document import replace
from engine.project.sweeps.sweep import Sweep, parse_choice
from engine.protocol import SweepCommand
from widgets.runs.run_pane import RunPane
from widgets.training.train_view import TrainView


@pytest.fixture
def pane(bench, link, qtbot) -> RunPane:
    link.get_ready()
    view = TrainView()
    qtbot.addWidget(view)
    SweepsPresenter(bench, TrainPresenter(bench, view, bench.window), bench.window)
    view.bar.runs.setChecked(True)
    view.show()
    return view.runs


def batch_sizes(pane: RunPane) -> list[str]:
    return [option.values for option in pane.sweeps._options if option.name == "batch_size"]


def test_the_settings_are_those_of_the_project_while_the_form_is_seen(pane, bench) -> None:
    def train_by(size: int) -> None:
        training = replace(bench.project.training, batch_size=size)
        bench.store.set_project(edits.set_training(bench.project, training))

    train_by(10)
    assert pane.sweeps._options == ()  # it is not seen
    pane.sweep.setChecked(True)
    assert list(pane.sweeps._options) == options_of(bench.project)
    train_by(8)
    assert batch_sizes(pane) == ["4, 8, 16"]
    pane.sweep.setChecked(False)
    train_by(6)
    assert batch_sizes(pane) == ["4, 8, 16"]
    pane.sweep.setChecked(True)
    assert batch_sizes(pane) == ["3, 6, 12"]


@pytest.mark.parametrize("state", ["running", "paused"])
def test_no_sweep_begins_beside_another_run(
    pane, bench, link, training_snapshot, state: str
) -> None:
    pane.sweep.setChecked(True)
    bench.store.take(training_snapshot(state=state))
    sweep = Sweep((parse_choice("batch_size", "1, 2"),), trials=2)
    pane.sweeps.sweep_requested.emit(sweep)
    assert pane.sweeps.told.text() == "Another run is under way. Stop it first."
    assert not any(isinstance(each, SweepCommand) for each in link.sent)
    bench.store.take(training_snapshot(state="finished"))
    pane.sweeps.sweep_requested.emit(sweep)
    assert [each.sweep for each in link.sent if isinstance(each, SweepCommand)] == [sweep]
    assert not pane.sweep.isChecked()  # the list has the room


def test_what_cannot_vary_is_said_and_the_form_stays(pane, link) -> None:
    pane.sweep.setChecked(True)
    pane.sweeps.sweep_requested.emit(Sweep((parse_choice("no_such", "1, 2"),), trials=2))
    assert "no_such" in pane.sweeps.told.text() and pane.sweep.isChecked()
    assert not any(isinstance(each, SweepCommand) for each in link.sent)


def test_the_form_stays_if_train_does_not_begin(pane, bench, link, monkeypatch) -> None:
    pane.sweep.setChecked(True)
    monkeypatch.setattr(TrainPresenter, "sweep", lambda self, wanted: False)
    pane.sweeps.sweep_requested.emit(Sweep((parse_choice("batch_size", "1, 2"),), trials=2))
    assert pane.sweep.isChecked()
