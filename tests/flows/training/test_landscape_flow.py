"""The loss landscape through the window: its points, Stop, a change of the model."""

from __future__ import annotations

import pytest

from engine.project.document import replace
from tests.labels import said

pytestmark = pytest.mark.one_program


def test_a_line_through_the_weights_is_computed(mlp) -> None:
    pane = mlp.window.page("train").landscape
    pane.compute.click()
    mlp.bench.link.drain()
    assert len(pane.losses) == 31
    assert "31 points, each the mean loss of 256 samples" in said(pane, "landscape_words")
    setup = replace(mlp.bench.project.training, seed=1)
    mlp.window.page("train").form.setup_edited.emit(setup, "Set seed")
    mlp.bench.link.drain()
    assert "compute again" in said(pane, "landscape_words")


def test_a_slice_of_a_paused_run_is_computed_and_outdated_by_its_next_step(mlp) -> None:
    view = mlp.window.page("train")
    view.bar.step_requested.emit()
    mlp.bench.link.drain()
    view.landscape.compute.click()
    mlp.bench.link.drain()
    assert len(view.landscape.losses) == 31
    view.bar.step_requested.emit()
    mlp.bench.link.drain()
    assert "compute again" in said(view.landscape, "landscape_words")
    mlp.bench.link.stop_job()
    mlp.bench.link.drain()
