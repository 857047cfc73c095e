"""Gradient flow: three runs, their words on each layer, and one scale of colours."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from engine.protocol import (
    ErrorReport,
    FlowHistogram,
    FlowHistogramsSnapshot,
    FlowSnapshot,
    Picture,
)
from tests.labels import said
from tests.pictures import assert_same_picture
from widgets.derivatives.flow_view import FlowView


def picture(*rows: tuple[float, ...]) -> Picture:
    array = np.array(rows, "<f4")
    return Picture(array.shape, array.tobytes(), array.shape)


FLOW = FlowSnapshot(
    initialisation="default",
    step=2,
    steps=3,
    layers=("linear1", "linear2"),
    parameters=(12, 6),
    rms=picture((1e-6, 1e-5, np.nan), (0.1, 1.0, np.nan)),
    norms=(1e-5, 2.5),
    verdicts=("vanishing", ""),
    activations=("relu1", "relu2"),
    dead=picture((0.0, 0.25, np.nan), (0.5, 1.0, np.nan)),
    order=("linear1", "relu1", "linear2", "relu2"),
    losses=(2.25, 1.5),
)


@pytest.fixture
def view(qtbot) -> FlowView:
    view = FlowView()
    qtbot.addWidget(view)
    view.resize(1200, 700)
    view.show()
    return view


def flow(view: FlowView, column: int, **changes) -> FlowSnapshot:
    return replace(FLOW, initialisation=view.columns[column].initialisation, **changes)


def test_parameters_of_the_subject_itself_have_a_row_with_a_name(view, qtbot):
    view.show_flow(flow(view, 0, layers=("", "linear2"), order=("", "linear2")))
    column = view.columns[0]
    assert [row[0] for row in column.table.rows()] == ["the whole subject", "linear2"]
    assert column._cell_name((0, 1)) == "the whole subject, step 2: log₁₀"
    with qtbot.waitSignal(view.layer_chosen) as chosen:
        column.table.selectRow(0)
    assert chosen.args == [""]


def test_a_run_fills_its_own_column(view):
    view.show_flow(flow(view, 1))
    texts = [said(view, f"flow_loss_{number}") for number in (1, 2, 3)]
    assert texts == ["", "loss 2.25 → 1.5 after 2 of 3 steps", ""]
    assert view.columns[1].table.rows() == [
        ["linear1", "1e-05", "", "vanishing"],
        ["relu1", "", "25.0 %", ""],
        ["linear2", "2.5", "", ""],
        ["relu2", "", "100.0 %", "dead"],
    ]
    half = picture((0.0, 0.0, np.nan), (0.5, 0.5, np.nan))
    view.show_flow(flow(view, 1, dead=half, losses=()))
    assert view.columns[1].table.rows()[3] == ["relu2", "", "50.0 %", "dying"]
    assert said(view, "flow_loss_2").startswith("loss – → –")


def test_before_the_first_step_and_without_activations_nothing_is_dead(view):
    view.show_flow(flow(view, 0, step=0))
    assert [row[2] for row in view.columns[0].table.rows()] == ["", "0.0 %", "", "50.0 %"]
    view.show_flow(flow(view, 0, activations=(), dead=None, order=FLOW.layers))
    assert [row[2] for row in view.columns[0].table.rows()] == ["", ""]


def test_all_runs_share_the_widest_scale(view):
    view.show_flow(flow(view, 0))
    view.show_flow(flow(view, 2, rms=picture((1e-8, 1e-8, 1e-8), (10.0, 10.0, 10.0))))
    ends = {column.picture.colour_range() for column in (view.columns[0], view.columns[2])}
    ((low, high),) = ends
    assert low <= -8 and high >= 1
    view.columns[2].clear()
    assert view.columns[0].picture.colour_range() != (low, high)


def test_run_asks_for_three_different_beginnings(view):
    asked = []
    view.run_requested.connect(lambda steps, keys: asked.append((steps, tuple(keys))))
    first = tuple(column.initialisation for column in view.columns)
    view.steps.setValue(7)
    view.columns[0].choose_initialisation(first[1])
    view.run.click()
    assert asked == [] and said(view, "flow_problem").startswith("Choose three different")
    view.columns[0].choose_initialisation(first[0])
    view.run.click()
    assert asked == [(7, first)] and said(view, "flow_problem") == ""


@pytest.mark.parametrize(
    ("column", "changes", "running"),
    [
        (0, {"step": 3}, True),
        (2, {"step": 2}, True),
        (2, {"step": 3}, False),
        (2, {"step": 1, "ended": "The loss is NaN."}, False),
        (0, {"step": 1, "ended": "The loss is NaN."}, True),
        (0, {"step": 1, "ended": "Stopped."}, False),
    ],
)
def test_the_last_run_ends_them_all(view, column, changes, running):
    view.run.click()
    view.show_flow(flow(view, column, **changes))
    assert (view.run.isEnabled(), view.stop.isEnabled()) == (not running, running)
    assert said(view, f"flow_ended_{column + 1}") == changes.get("ended", "")


def test_an_error_or_another_model_ends_the_runs(view):
    for end in (lambda: view.show_error(ErrorReport("E", "It broke.", "Mend it.")), view.clear):
        view.run.click()
        assert not view.run.isEnabled()
        end()
        assert view.run.isEnabled() and not view.stop.isEnabled()
    view.show_error(ErrorReport("E", "It broke.", "Mend it."))
    assert said(view, "flow_problem") == "It broke. Mend it."


def test_a_step_of_a_layer_is_chosen_and_its_histograms_shown(view):
    asked = []
    view.histograms_requested.connect(lambda layer, step: asked.append((layer, step)))
    view.show_flow(flow(view, 0))
    view.columns[0].picture.cell_chosen.emit((1, 0))
    assert asked == [("linear2", 0)]
    run = FlowHistogram(view.columns[0].initialisation, (1, 2, 0), 3, 2.5)
    zeros = FlowHistogram(view.columns[1].initialisation, (0, 0, 0), 6, 0.0)
    told = FlowHistogramsSnapshot(layer="linear2", step=0, low=-3.0, high=0.0, runs=(run, zeros))
    view.show_flow(flow(view, 1))
    view.show_histograms(told)
    assert said(view, "flow_chosen").endswith("of linear2 in step 1.")
    assert [column.picture.marked_cell() for column in view.columns] == [(1, 0), (1, 0), None]
    view.columns[0].choose_initialisation("zeros")
    view.clear()
    assert said(view, "flow_chosen") == ""


def test_the_runs_look_as_they_did(view, qapp):
    for number, ended in enumerate(("", "", "The loss is NaN.")):
        view.show_flow(flow(view, number, ended=ended))
    runs = tuple(
        FlowHistogram(column.initialisation, counts, 4, 1.0)
        for column, counts in zip(view.columns, ((1, 5, 2), (0, 0, 0), (0, 9, 1)), strict=True)
    )
    told = FlowHistogramsSnapshot(layer="linear2", step=1, low=-6.0, high=0.0, runs=runs)
    view.show_histograms(told)
    qapp.processEvents()
    assert_same_picture(view, "gradient_flow")


def test_a_row_of_the_table_tells_its_layer(view, qtbot):
    view.show_flow(flow(view, 1))
    with qtbot.waitSignal(view.layer_chosen) as told:
        view.columns[1].table.selectRow(3)
    assert told.args == ["relu2"]
    view.show_flow(flow(view, 1, losses=(1.0,)))
    assert [index.row() for index in view.columns[1].table.selectionModel().selectedRows()] == [3]
