"""Lines of modules: which are drawn, what they show, what is chosen."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from engine.protocol import EACH_MODULE, MAX_LINES, ModuleNormsSnapshot, NormLine
from tests.labels import said
from tests.pictures import assert_same_picture
from widgets import theme
from widgets.training.over_time.module_pane import ModulePane

NAMES = tuple(f"layer{i}" for i in range(15))
STEPS = (1, 2, 4, 8)


def line(name: str, place: int) -> NormLine:
    gradient = tuple((place + 1) / step for step in STEPS)
    return NormLine(name, gradient, (2.0, 2.0, 0.0, 4.0), (0.2, 0.1, 0.1, 0.1))


def found(names: tuple[str, ...] = NAMES, deepest: int = 1) -> ModuleNormsSnapshot:
    lines = tuple(line(name, place) for place, name in enumerate(names[:MAX_LINES]))
    return ModuleNormsSnapshot(folder="f", steps=STEPS, names=names, deepest=deepest, lines=lines)


@pytest.fixture
def pane(qtbot) -> ModulePane:
    pane = ModulePane()
    qtbot.addWidget(pane)
    pane.resize(760, 420)
    pane.show()
    return pane


def test_the_ratio_is_the_update_over_the_weights(pane: ModulePane) -> None:
    pane.show_norms(found())
    assert [each.name for each in pane.chart.lines] == list(NAMES[:MAX_LINES])
    ratio = pane.chart.lines[0].y
    assert ratio[:2] == (0.1, 0.05) and ratio[2] != ratio[2] and ratio[3] == 0.025
    pane._figure.setCurrentIndex(1)
    assert pane.chart.lines[1].y == (2.0, 1.0, 0.5, 0.25)


def test_ticks_say_which_lines_are_wanted_and_the_oldest_goes(pane: ModulePane) -> None:
    asked = []
    pane.asked.connect(lambda: asked.append(pane.wanted))
    pane.show_norms(found())
    assert not asked and len(pane.names.ticked) == MAX_LINES
    pane.names.item(14).setCheckState(Qt.CheckState.Checked)
    assert asked == [(*NAMES[1:MAX_LINES], "layer14")]
    assert pane.names.item(0).checkState() == Qt.CheckState.Unchecked
    pane.names.item(1).setCheckState(Qt.CheckState.Unchecked)
    assert asked[-1] == (*NAMES[2:MAX_LINES], "layer14")


def test_depths_are_offered_as_deep_as_the_model_is(pane: ModulePane) -> None:
    asked = []
    pane.asked.connect(lambda: asked.append((pane.depth, pane.by_parameter)))
    pane.show_norms(found(deepest=3))
    depth = pane._depth
    assert depth.count() == 5 and pane.depth == EACH_MODULE
    for place in (1, 2, 4):
        depth.setCurrentIndex(place)
        depth.activated.emit(place)
    assert asked == [(EACH_MODULE, True), (0, False), (2, False)]
    pane.show_norms(found(deepest=3))
    assert pane.depth == 2


def test_a_line_and_a_name_choose_and_what_is_chosen_is_lit(pane: ModulePane) -> None:
    chosen = []
    pane.chosen.connect(lambda name, is_parameter: chosen.append((name, is_parameter)))
    pane.show_norms(found(("", "layer1")))
    assert pane.chart.lines[0].name == "(model)"
    pane.names.setCurrentRow(1)
    pane.chart.chosen.emit("(model)")
    assert chosen == [("layer1", False), ("", False)]
    pane.show_chosen("layer1")
    pane.show_chosen(None)
    assert len(chosen) == 2


def test_before_the_first_look_it_says_so(pane: ModulePane) -> None:
    pane.show_norms(ModuleNormsSnapshot(folder=""))
    assert said(pane, "module_lines_trouble").startswith("No run yet")
    pane.show_norms(ModuleNormsSnapshot(folder="f"))
    assert said(pane, "module_lines_trouble").startswith("The run has started")


@pytest.mark.parametrize("name", ["light", "dark"])
def test_it_looks_as_it_did(pane: ModulePane, name: str, qapp) -> None:
    theme.apply(qapp, {"light": theme.LIGHT, "dark": theme.DARK}[name])
    pane.show_norms(found())
    assert_same_picture(pane, f"module_lines_{name}")
