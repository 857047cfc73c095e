"""The bar of the tab Step through takes a batch forward and then backward, and keeps its More."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QAbstractButton, QComboBox, QTabWidget

from app import templates
from engine.project.examples import graph_examples
from engine.protocol import BackwardSnapshot, ComparisonSnapshot, ForwardSnapshot
from tests.flows.autograd.test_graph_examples_flow import choose
from tests.gestures import click
from widgets import theme

pytestmark = pytest.mark.one_program


def bar_of(program):
    program.window.show_workspace("autograd")
    return program.window.page("autograd").steps.bar


def press(program, name: str) -> None:
    click(getattr(bar_of(program), name))
    program.bench.link.drain()


def places(program) -> tuple[int | None, int | None]:
    """The positions of forward and backward; None where there is no pass."""
    found = [program.bench.newest(kind) for kind in (ForwardSnapshot, BackwardSnapshot)]
    return tuple(None if each is None else each.position for each in found)  # type: ignore


@pytest.fixture
def with_model(program):
    program.bench.files.new(templates.load_template("mlp"))
    program.bench.link.drain()
    return program


def test_one_bar_goes_forward_and_then_backward(with_model):
    program, bar = with_model, bar_of(with_model)
    steps = program.window.page("autograd").steps
    assert places(program) == (None, None) and not bar.back.isEnabled()
    press(program, "start")
    length = len(program.bench.newest(ForwardSnapshot).order)
    assert places(program) == (0, None)
    assert "Next:" in steps.graph._empty_text
    press(program, "step")
    assert places(program) == (1, None)
    press(program, "back")
    assert places(program) == (0, None)
    press(program, "run")
    assert places(program) == (length, None) and not bar.compare.isEnabled()
    assert "Next: backward. Step reads the graph" in steps.graph._empty_text
    press(program, "step")
    assert places(program) == (length, 0)
    press(program, "step")
    assert places(program) == (length, 1)
    press(program, "back")
    press(program, "back")  # before the first node it undoes the loss
    assert places(program) == (length - 1, None)
    press(program, "run")
    press(program, "run")
    assert program.bench.newest(BackwardSnapshot).next is None
    assert not bar.step.isEnabled() and not bar.run.isEnabled()
    press(program, "compare")
    assert program.bench.newest(ComparisonSnapshot).max_difference == 0


def test_step_alone_gets_through_the_whole_pass(with_model):
    program, bar = with_model, bar_of(with_model)
    presses = 0
    while bar.step.isEnabled() and presses < 99:
        press(program, "step")
        presses += 1
    backward = program.bench.newest(BackwardSnapshot)
    assert backward.next is None and all(g.gradient is not None for g in backward.gradients)


def test_a_graph_of_the_console_has_no_forward_column(program):
    steps = choose(program, next(iter(graph_examples().values())).title)
    assert not steps.forward.isVisible()
    press(program, "run")
    press(program, "back")
    press(program, "start")
    assert places(program) == (None, 0)


def shown(program) -> set[str]:
    program.window.show_workspace("autograd")
    steps = program.window.page("autograd").steps
    return {
        button.objectName()
        for button in steps.findChildren(QAbstractButton)
        if button.isVisible() and button.objectName() and button.parent() is not steps.graph
    }


def test_more_shows_all_controls_and_is_remembered(program):
    choose(program, next(iter(graph_examples().values())).title)
    few = shown(program)
    assert {"pass_start", "pass_back", "pass_step", "pass_run", "pass_compare"} <= few
    assert not {"backward_start", "forward_start", "graph_filter", "next_edit"} & few
    steps = program.window.page("autograd").steps
    card = steps.findChild(QTabWidget, "rule_card")
    assert [card.tabText(i) for i in range(card.count()) if card.isTabVisible(i)] == [
        "Values",
        "Formula",
    ]
    press(program, "more")
    many = shown(program)
    assert {"backward_start", "graph_filter", "next_edit", "backward_step"} <= many
    assert len(few) < len(many) / 2
    assert all(card.isTabVisible(i) for i in range(card.count()))
    assert program.bench.settings.autograd_more
    press(program, "more")
    assert shown(program) == few and not program.bench.settings.autograd_more


def contrast(a, b) -> float:
    """The contrast of two colours as WCAG has it."""

    def light(color) -> float:
        parts = (color.redF(), color.greenF(), color.blueF())
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((light(a), light(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_fields_have_an_outline_in_the_dark_theme(program, qapp):
    bar_of(program)
    field = program.window.page("autograd").steps.roots.findChild(QComboBox, "graph_root")
    try:
        theme.apply(qapp, theme.DARK)
        qapp.processEvents()
        picture = field.grab().toImage()
        around = theme.DARK.color("window")
        best = max(contrast(picture.pixelColor(x, picture.height() // 2), around) for x in range(3))
        assert best > 2
    finally:
        theme.apply(qapp, theme.LIGHT)


def test_the_values_keep_their_place_from_step_to_step(program):
    steps = choose(program, next(iter(graph_examples().values())).title)
    places = set()
    for _ in range(5):
        program.bench.link.drain()
        QCoreApplication.processEvents()
        values = steps.backward.values
        places.add(values.mapTo(steps, values.rect().topLeft()).y())
        if steps.bar.step.isEnabled():
            press(program, "step")
    assert program.bench.newest(BackwardSnapshot).next is None and len(places) == 1
