"""Gradient flow through the window."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtWidgets import QLabel, QTableWidget

from app import templates
from engine.project import edits
from engine.protocol import FlowHistogramsSnapshot, FlowSnapshot
from tests.gestures import click_button
from widgets import theme
from widgets.derivatives.flow_view import FlowView

pytestmark = pytest.mark.one_program


@pytest.fixture
def view(program) -> FlowView:
    program.bench.files.new(templates.load_template("mlp"))
    program.window.show_workspace("autograd")
    page = program.window.page("autograd")
    page.setCurrentWidget(page.flow)
    program.bench.link.drain()
    page.flow.steps.setValue(3)
    return page.flow


def run(program, view) -> None:
    program.window.show_workspace("autograd")
    click_button(view, "flow_run")
    program.bench.link.drain()


def label(view, name: str) -> str:
    return view.findChild(QLabel, name).text()


def test_three_runs_with_a_word_on_each_layer(program, view):
    seen = []
    program.bench.store.on(FlowSnapshot, seen.append)
    run(program, view)
    last = {snapshot.initialisation: snapshot for snapshot in seen}
    assert len(last) == 3
    for number, column in enumerate(view.columns, start=1):
        snapshot = last[column.initialisation]
        assert label(view, f"flow_loss_{number}").endswith("after 3 of 3 steps")
        table = view.findChild(QTableWidget, f"flow_layers_{number}")
        names = [table.item(row, 0).text() for row in range(table.rowCount())]
        assert names == ["linear1", "relu1", "linear2", "relu2", "linear3"]
        norms = [float(table.item(row, 1).text()) for row in (0, 2, 4)]
        assert norms == pytest.approx(snapshot.norms, rel=1e-3)
        dead = np.frombuffer(snapshot.dead.data, "<f4").reshape(snapshot.dead.shape)[:, -1]
        shown = [float(table.item(row, 2).text().rstrip(" %")) / 100 for row in (1, 3)]
        assert shown == pytest.approx(dead.tolist(), abs=6e-3)
        rms = np.frombuffer(snapshot.rms.data, "<f4").reshape(3, 3)
        value = float(column.picture._values[2, 1])
        assert value == pytest.approx(np.log10(rms[2, 1]), rel=1e-5)
    assert view.run.isEnabled() and not view.stop.isEnabled()


def test_a_layers_step_can_be_looked_into(program, view):
    run(program, view)
    view.columns[1].picture.cell_chosen.emit((1, 2))
    program.bench.link.drain()
    got = program.bench.store.newest(FlowHistogramsSnapshot)
    assert (got.layer, got.step) == ("linear2", 2)
    for column, told in zip(view.columns, got.runs, strict=True):
        assert column.histogram._histogram.counts == told.counts
    assert [column.picture.marked_cell() for column in view.columns] == [(1, 2)] * 3
    assert label(view, "flow_chosen") == "Histograms: log₁₀ |gradient| of linear2 in step 3."


def test_one_colour_is_one_size_in_all_three(program, view):
    run(program, view)
    pictures = [column.picture for column in view.columns]
    lows, highs = zip(*(picture.value_range() for picture in pictures), strict=True)
    assert len(set(lows)) == 3
    ends = (min(lows), max(highs))
    assert [picture._shared_range for picture in pictures] == [ends] * 3


def test_dead_units_are_marked(program, view):
    view.columns[1].choose_initialisation("zeros")
    run(program, view)
    table = view.findChild(QTableWidget, "flow_layers_2")
    rows = {table.item(r, 0).text(): table.item(r, 3).text() for r in range(table.rowCount())}
    assert rows["relu1"] == rows["relu2"] == "dead" and rows["linear3"] == ""
    error = theme.current().color("error")
    assert table.item(1, 2).foreground().color() == error


def test_it_fits_a_narrow_window(program, view):
    run(program, view)
    assert view.minimumSizeHint().width() <= 1024 - 96


def test_another_initialisation_takes_the_run_of_the_last_one_away(program, view):
    run(program, view)
    box = view.columns[1]._box
    box.setCurrentIndex(box.findData("orthogonal"))
    assert view.findChild(QTableWidget, "flow_layers_2").rowCount() == 0
    assert view.findChild(QTableWidget, "flow_layers_1").rowCount() == 5


def test_the_same_twice_is_refused_in_place(program, view):
    view.columns[0].choose_initialisation("normal_1")
    run(program, view)
    assert "three different" in label(view, "flow_problem")


def test_an_edit_ends_what_is_shown(program, view):
    run(program, view)
    block = program.bench.store.project.model.blocks[2]
    program.bench.edit("Change", lambda p: edits.set_param(p, block.id, "out_features", 32))
    program.bench.link.drain()
    assert "press Run" in label(view, "flow_problem")
    assert view.findChild(QTableWidget, "flow_layers_1").rowCount() == 0


def test_a_model_that_cannot_run_says_why(program, view):
    program.bench.files.new()
    run(program, view)
    assert "cannot run" in label(view, "flow_problem") and view.run.isEnabled()
