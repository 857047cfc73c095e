"""The parameters beside the plots: what steps change comes first, what is missing is red."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt

from engine.protocol import StructureSnapshot, StructureTotals
from tests.pictures import assert_same_picture
from tests.widgets.structure.small_structure import WEIGHTS
from tests.words import assert_same_words
from widgets import theme
from widgets.structure import weights_model as columns
from widgets.training.parameter_pane import ParameterPane

ROWS = tuple(replace(row, update=0.00123) for row in WEIGHTS if row.kind == "parameter")
WHOLE = StructureSnapshot(
    title="net.py: Net()",
    totals=StructureTotals(5, 32, 10, 128, 0, 0),
    weights=ROWS,
    optimizers=("opt",),
)


@pytest.fixture
def pane(qtbot) -> ParameterPane:
    pane = ParameterPane()
    qtbot.addWidget(pane)
    pane.resize(480, 240)
    with qtbot.waitExposed(pane):
        pane.show()
    return pane


def titles(pane: ParameterPane) -> list[str]:
    """The columns that are shown, from the left."""
    header = pane.table.table.horizontalHeader()
    order = [header.logicalIndex(place) for place in range(header.count())]
    return [columns.COLUMNS[c].title for c in order if not header.isSectionHidden(c)]


def red(pane: ParameterPane, column: int) -> list[str]:
    model = pane.table.model
    role, error = Qt.ItemDataRole.ForegroundRole, theme.current().color("error")
    return [r.name for i, r in enumerate(ROWS) if model.data(model.index(i, column), role) == error]


def test_what_steps_change_comes_first(pane) -> None:
    pane.show_parameters(WHOLE)
    assert titles(pane)[:4] == ["Name", "Gradient", "Update", "Optimizer"]
    assert not {"Count", "Size", "dtype", "Kind"} & set(titles(pane))
    pane.show_parameters(replace(WHOLE, optimizers=(), weights=WEIGHTS))
    assert "Update" not in titles(pane) and "Optimizer" not in titles(pane)


def test_numbers_are_short_and_what_goes_without_saying_is_left_out(pane) -> None:
    rows = tuple(replace(row, trainable=True, std=0.123456) for row in ROWS)
    pane.show_parameters(replace(WHOLE, weights=rows))
    model, table = pane.table.model, pane.table.table
    assert model.index(0, columns.STD).data() == "0.123"
    assert "Trainable" not in titles(pane)
    pane.show_parameters(WHOLE)
    assert "Trainable" in titles(pane)
    for column in (columns.GRADIENT, columns.TRAINABLE, columns.OPTIMIZER):
        words = columns.COLUMNS[column].title
        assert table.columnWidth(column) > table.fontMetrics().horizontalAdvance(words)


def test_no_gradient_and_no_optimizer_are_red(pane) -> None:
    pane.show_parameters(WHOLE)
    trainable = [row for row in ROWS if row.trainable]
    assert red(pane, columns.OPTIMIZER) == [row.name for row in trainable if not row.fed_by]
    missing = [row.name for row in trainable if row.gradient is None]
    assert red(pane, columns.GRADIENT) == missing and missing
    before = tuple(replace(row, gradient=None) for row in ROWS)
    pane.show_parameters(replace(WHOLE, weights=before))
    assert red(pane, columns.GRADIENT) == []  # no backward has run yet


def test_only_what_the_reader_selects_is_told(pane) -> None:
    told: list[str] = []
    pane.chosen.connect(told.append)
    pane.show_parameters(WHOLE)
    pane.show_chosen(ROWS[1].name)
    assert [row.name for row in pane.table.chosen] == [ROWS[1].name]
    pane.show_parameters(replace(WHOLE, weights=ROWS[::-1]))
    assert told == []
    pane.table.choose(ROWS[0].name)
    assert told == [ROWS[0].name]


def test_picture_and_words(pane) -> None:
    pane.show_trouble("The engine starts.")
    assert pane.currentWidget() is pane.trouble
    pane.show_parameters(WHOLE)
    assert_same_picture(pane, "train_parameters")
    assert_same_words(pane, "train_parameters")
