"""The memory of a step through the window: measured, chosen in all views, also of a paused run."""

from __future__ import annotations

import pytest

from app.selection.references import Module, Parameter
from tests.labels import said

pytestmark = pytest.mark.one_program


def test_a_step_is_measured_and_its_parts_are_chosen(mlp) -> None:
    pane = mlp.window.page("train").memory
    pane.measure.click()
    mlp.bench.link.drain()
    found = pane.found
    assert found is not None and "holds at most" in said(pane, "step_memory_words")
    place = next(i for i, op in enumerate(found.ops) if op.module == "linear1")
    pane.chart.chosen.emit(place)
    assert mlp.bench.selection.current == Module("linear1")
    rows = [row[0] for row in pane.table.rows()]
    pane.table.clearSelection()  # it lights a storage of the module: perhaps this very one
    pane.table.selectRow(rows.index("exp_avg of linear1.weight"))
    assert mlp.bench.selection.current == Parameter("linear1.weight")


def test_a_step_of_a_paused_run_is_measured(mlp) -> None:
    view = mlp.window.page("train")
    view.bar.step_requested.emit()
    mlp.bench.link.drain()
    view.memory.measure.click()
    mlp.bench.link.drain()
    assert "holds at most" in said(view.memory, "step_memory_words")
    mlp.bench.link.stop_job()
    mlp.bench.link.drain()
