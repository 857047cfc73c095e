"""Checks before training through the window: their lines, the rate that they suggest, Stop."""

from __future__ import annotations

import pytest

from engine.protocol import TrainingSnapshot

pytestmark = pytest.mark.one_program


def test_checks_are_shown_and_the_suggested_rate_is_set_and_undone(mlp) -> None:
    view = mlp.window.page("train")
    view.bar.check.click()
    assert view.checks.isVisible()
    mlp.bench.link.drain()
    assert len(view.checks.rows) == 8
    before = mlp.bench.project.training.optimizer_params
    rate = float(view.checks.use.text().removeprefix("Use "))
    view.checks.use.click()
    assert mlp.bench.project.training.optimizer_params["lr"] == rate
    assert "check again" in view.checks._progress.text()
    assert f"Set lr to {rate:g}" in mlp.bench.actions["edit.undo"].text()
    mlp.bench.actions["edit.undo"].trigger()
    assert mlp.bench.project.training.optimizer_params == before


def test_a_paused_run_is_checked_and_goes_on(mlp) -> None:
    view = mlp.window.page("train")
    view.bar.step_requested.emit()
    mlp.bench.link.drain()
    assert view.bar.check.isEnabled()
    mlp.bench.actions["train.check"].trigger()
    mlp.bench.link.drain()
    assert len(view.checks.rows) == 8
    assert mlp.bench.newest(TrainingSnapshot).state == "paused"
    view.checks.stop_requested.emit()  # it has ended: the run is not stopped instead
    mlp.bench.link.drain()
    assert mlp.bench.newest(TrainingSnapshot).state == "paused"
    mlp.bench.link.stop_job()
    mlp.bench.link.drain()
    assert mlp.bench.newest(TrainingSnapshot).state == "stopped"
