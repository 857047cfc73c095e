"""The views of a backward pass: lists of nodes, gradients, and the messages of empty states."""

from __future__ import annotations

import math

import numpy as np
import pytest
from msgspec import structs
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QAbstractButton, QLabel, QPushButton, QSpinBox, QTabBar, QToolButton

from engine.protocol import (
    Activation,
    ComparisonSnapshot,
    ForwardSnapshot,
    GradientEdit,
    ValueSnapshot,
)
from tests.labels import said
from tests.pictures import assert_same_picture
from tests.widgets.backward.autograd_snapshots import (
    BIAS_GRAD,
    GRAPH,
    NAMES,
    WEIGHT_GRAD,
    backward,
    forward,
    summary_of,
    value_of,
)
from tests.words import assert_same_words
from widgets.autograd.autograd_view import AutogradView
from widgets.autograd.block_list import rows_of
from widgets.boxes.sums import CURRENT
from widgets.layout.nested_layout import layout_nested
from widgets.values.value_stack import ValueStack


@pytest.fixture
def view(qtbot) -> AutogradView:
    view = AutogradView()
    graph = view.graph
    graph.layout_requested.connect(lambda v, d: graph.show_layout(v, layout_nested(v.outline, d)))
    qtbot.addWidget(view)
    view.resize(1440, 900)
    view.show_engine_state("ready")
    view.show()
    qtbot.waitExposed(view)
    return view


def click(view: AutogradView, qtbot, name: str) -> None:
    button = view.findChild(QAbstractButton, name)
    assert button is not None and button.isEnabled()
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)


def enabled(view: AutogradView, bar: str) -> set[str]:
    buttons = {
        m: view.findChild(QToolButton, f"{bar}_{m}") for m in ("reset", "back", "step", "to", "end")
    }
    return {move for move, button in buttons.items() if button is not None and button.isEnabled()}


def cards(view: AutogradView, stack: str) -> list[tuple[str, str]]:
    """(label, norm) of each card shown."""
    found = view.findChild(ValueStack, stack)
    assert found is not None
    out = []
    for card in found.shown_cards():
        label, norm = card.findChild(QLabel, "value_label"), card.findChild(QLabel, "value_norm")
        assert label is not None and norm is not None
        shown = label.isVisibleTo(view)
        out.append((label.text(), norm.text()) if shown else (card.accessibleName(), ""))
    return out


# -- forward ---------------------------------------------------------------------------------------


def test_start_asks_for_the_batch_chosen(view: AutogradView, qtbot) -> None:
    batch = view.findChild(QSpinBox, "forward_batch")
    assert batch is not None
    batch.setValue(7)
    with qtbot.waitSignal(view.forward.start_requested) as started:
        click(view, qtbot, "forward_start")
    assert started.args == [7]


def test_empty_states_say_what_to_do(view: AutogradView) -> None:
    assert "Start brings a batch" in said(view, "forward_line")
    assert "loss.grad_fn" in said(view, "backward_line")
    assert enabled(view, "forward") == set() == enabled(view, "backward")


def test_rows_show_state_shape_and_statistics(view: AutogradView) -> None:
    view.show_forward(forward(2), NAMES)
    rows = view.forward.blocks.rows()
    assert [(row.name, row.state) for row in rows] == [
        ("x", "done"),
        ("linear1", "current"),
        ("relu1", "next"),
        ("loss", "waiting"),
    ]
    assert [row.shape_text() for row in rows] == ["(2, 2)", "(2, 2)", "", ""]
    # [-1, 0.5, 0.25, -2]: mean -0.5625, unbiased std 1.161447...
    assert [row.numbers_text() for row in rows] == [
        "mean 2.5 · std 1.29",
        "mean -0.562 · std 1.16",
        "next",
        "",
    ]
    assert {row.scale for row in rows} == {4.0}
    assert said(view, "forward_line") == "2 of 4 blocks run · batch 3 (2 samples)"


def test_the_loss_is_told_when_it_is_reached(view: AutogradView) -> None:
    view.show_forward(forward(4), NAMES)
    assert said(view, "forward_line").endswith("loss\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}0.1875")
    assert view.forward.blocks.rows()[-1].numbers_text() == "= 0.1875"


def test_bad_numbers_stand_out_in_the_list() -> None:
    bad = summary_of(np.array([1.0, math.nan, math.inf], np.float32))
    snapshot = ForwardSnapshot(
        order=("b1",), position=1, activations=(Activation("b1", (bad,), 0.1),)
    )
    assert rows_of(snapshot, {})[0].numbers_text() == "1 NaN, 1 inf"


def test_the_block_that_ran_last_shows_what_it_gave_beside_what_it_got(view: AutogradView) -> None:
    view.show_forward(forward(2), NAMES)
    assert cards(view, "forward_values") == [("output", "2.305"), ("input", "5.477")]
    left, right = view.forward.values.shown_cards()
    assert left.mapTo(view, QPoint()).y() == right.mapTo(view, QPoint()).y()
    view.show_forward(forward(1), NAMES)
    assert cards(view, "forward_values") == [("output", "5.477")]  # sqrt(1 + 4 + 9 + 16)
    view.show_forward(forward(0), NAMES)
    assert cards(view, "forward_values") == []


def test_step_buttons_follow_the_position_and_ask(view: AutogradView, qtbot) -> None:
    view.show_forward(forward(0), NAMES)
    assert enabled(view, "forward") == {"step", "end"}
    view.show_forward(forward(4), NAMES)
    assert enabled(view, "forward") == {"reset", "back", "to"}
    view.show_forward(forward(2), NAMES)
    assert enabled(view, "forward") == {"reset", "back", "step", "to", "end"}
    asked: list[tuple[str, str]] = []
    view.forward.move_requested.connect(lambda move, target: asked.append((move, target)))
    for move in ("reset", "back", "step", "end"):
        click(view, qtbot, f"forward_{move}")
    view.forward.blocks.setCurrentRow(3)
    click(view, qtbot, "forward_to")
    assert asked == [("reset", ""), ("back", ""), ("step", ""), ("end", ""), ("to", "loss")]


def test_forward_by_keyboard(view: AutogradView, qtbot) -> None:
    view.show_forward(forward(2), NAMES)
    asked: list[tuple[str, str]] = []
    view.forward.move_requested.connect(lambda move, target: asked.append((move, target)))
    blocks = view.forward.blocks
    blocks.setFocus()
    control = Qt.KeyboardModifier.ControlModifier
    qtbot.keyClick(blocks, Qt.Key.Key_Right, control)
    qtbot.keyClick(blocks, Qt.Key.Key_Left, control)
    qtbot.keyClick(blocks, Qt.Key.Key_Down)
    qtbot.keyClick(blocks, Qt.Key.Key_Return)
    assert asked == [("step", ""), ("back", ""), ("to", "b3")]


def test_a_block_that_has_run_is_inspected(view: AutogradView, qtbot) -> None:
    view.show_forward(forward(2), NAMES)
    with qtbot.waitSignal(view.inspect_requested) as asked:
        view.forward.blocks.setCurrentRow(0)
    assert asked.args == ["activation", "b1"]
    array = np.full((2, 2), 3.0, np.float32)
    view.show_value(ValueSnapshot(of="activation", key="b1", values=(value_of("output", array),)))
    assert cards(view, "forward_values") == [("output", "6")]
    given, weight = (value_of(name, array[:1]) for name in ("input", "weight"))
    view.show_value(
        ValueSnapshot(
            of="activation", key="b1", values=(value_of("output", array),), inputs=(given,),
            weights=(weight,),
        )
    )  # fmt: skip
    labels = [label for label, _ in cards(view, "forward_values")]
    assert labels == ["output", "input", "weight"]
    with qtbot.assertNotEmitted(view.inspect_requested):
        view.forward.blocks.setCurrentRow(3)


def test_showing_a_snapshot_asks_nothing(view: AutogradView, qtbot) -> None:
    with qtbot.assertNotEmitted(view.inspect_requested):
        for position in (0, 1, 2, 3, 4, 2):
            view.show_forward(forward(position), NAMES)


# -- backward --------------------------------------------------------------------------------------


def started(view: AutogradView, position: int) -> AutogradView:
    view.show_graph(GRAPH, NAMES)
    view.show_backward(backward(position))
    return view


def test_backward_asks(view: AutogradView, qtbot) -> None:
    with qtbot.waitSignal(view.backward.start_requested):
        click(view, qtbot, "backward_start")
    started(view, 3)
    asked: list[tuple[str, int]] = []
    view.backward.move_requested.connect(lambda move, node: asked.append((move, node)))
    for move in ("reset", "back", "step", "end"):
        click(view, qtbot, f"backward_{move}")
    view.graph.select(4)
    click(view, qtbot, "backward_to")
    qtbot.keyClick(view.graph, Qt.Key.Key_Return)
    assert asked == [("reset", -1), ("back", -1), ("step", -1), ("end", -1), ("to", 4), ("to", 4)]


def test_a_step_shows_the_rule_and_its_gradients(view: AutogradView) -> None:
    started(view, 3)
    assert said(view, "backward_line") == "3 of 6 nodes have run."
    assert said(view, "node_title") == "AddmmBackward0 · linear1"
    assert "xᵀ·g for W" in said(view, "node_about")
    # norms: sqrt(2)/4, sqrt(0.0625 + 0.25), none, sqrt(0.5625 + 1 + 0.25 + 0.0625)
    assert cards(view, "backward_values") == [
        ("gradient in", "0.3536"),
        ("to linear1.bias", "0.559"),
        ("No gradient: this input does not need one", ""),
        ("to t", "1.369"),
    ]
    assert view.graph.state_of(2) == CURRENT


def test_the_root_waits_for_the_first_step(view: AutogradView) -> None:
    started(view, 0)
    assert said(view, "node_title") == "MeanBackward0 · loss"
    assert "which is 1" in said(view, "node_about")
    assert enabled(view, "backward") == {"step", "end"}


def test_parameters_fill_with_gradients(view: AutogradView, qtbot) -> None:
    started(view, 3)
    table = view.backward.table

    def rows() -> list[list[str]]:
        out = []
        for row in range(table.rowCount()):
            items = [table.item(row, column) for column in range(4)]
            out.append([item.text() if item else "" for item in items])
        return out

    assert rows() == [
        ["○", "linear1.weight", "(2, 2)", "–"],
        ["○", "linear1.bias", "(2,)", "–"],
    ]
    view.show_backward(backward(6))
    weight_norm = f"{np.linalg.norm(WEIGHT_GRAD):.3f}"
    bias_norm = f"{np.linalg.norm(BIAS_GRAD):.3f}"
    assert rows() == [
        ["●", "linear1.weight", "(2, 2)", weight_norm],
        ["●", "linear1.bias", "(2,)", bias_norm],
    ]
    with qtbot.waitSignal(view.inspect_requested) as asked:
        table.setCurrentCell(1, 1)
    assert asked.args == ["gradient", "linear1.bias"]
    view.show_value(
        ValueSnapshot(
            of="gradient", key="linear1.bias", values=(value_of("linear1.bias.grad", BIAS_GRAD),)
        )
    )
    assert said(view, "node_title") == "linear1.bias.grad"
    assert cards(view, "backward_values") == [("linear1.bias.grad", "0.559")]


def test_a_parameter_without_gradient_is_shown_itself(view: AutogradView, qtbot) -> None:
    started(view, 0)
    with qtbot.waitSignal(view.inspect_requested) as asked:
        view.backward.table.setCurrentCell(0, 1)
    assert asked.args == ["parameter", "linear1.weight"]


def test_a_node_that_has_run_is_inspected(view: AutogradView, qtbot) -> None:
    started(view, 3)
    with qtbot.waitSignal(view.inspect_requested) as asked:
        view.graph.select(0)
    assert asked.args == ["gradient", "0"]
    assert said(view, "node_title") == "MeanBackward0 · loss"
    array = np.full((2, 2), 0.25, np.float32)
    view.show_value(ValueSnapshot(of="gradient", key="0", values=(value_of("to relu", array),)))
    assert cards(view, "backward_values") == [("to relu", "0.5")]
    with qtbot.assertNotEmitted(view.inspect_requested):
        view.graph.select(5)
    assert said(view, "node_about").endswith("It has not run yet.")
    # A late answer about the node before is dropped.
    view.show_value(ValueSnapshot(of="gradient", key="0", values=(value_of("late", array),)))
    assert cards(view, "backward_values") == []


def test_comparison_is_told_in_words_and_per_parameter(view: AutogradView, qtbot) -> None:
    compare = view.findChild(QPushButton, "backward_compare")
    assert compare is not None
    started(view, 3)
    assert not compare.isEnabled()
    view.show_backward(backward(6))
    assert "Every .grad is filled in" in said(view, "backward_line")
    with qtbot.waitSignal(view.backward.compare_requested):
        click(view, qtbot, "backward_compare")
    view.show_comparison(
        ComparisonSnapshot(
            max_difference=0.0, differences={"linear1.weight": 0.0, "linear1.bias": 0.0}
        )
    )
    assert said(view, "backward_comparison") == (
        "Equals loss.backward(): max difference 0 over all parameters."
    )
    view.show_comparison(
        ComparisonSnapshot(
            max_difference=1.5e-7, differences={"linear1.weight": 1.5e-7, "linear1.bias": 0.0}
        )
    )
    assert said(view, "backward_comparison") == (
        "Differs from loss.backward(): max difference 1.5e-07, in linear1.weight."
    )
    item = view.backward.table.item(0, 4)
    assert item is not None and item.text() == "1.5e-07"
    label = view.findChild(QLabel, "backward_comparison")
    assert label is not None and label.property("role") == "error"
    edited = structs.replace(backward(6), edits=(GradientEdit(0, "g * 2"),))
    view.show_backward(edited)
    view.show_comparison(ComparisonSnapshot(max_difference=2.0, differences={}))
    assert said(view, "backward_comparison") == (
        "Differs because you edited a gradient. Max difference 2."
    )
    view.show_comparison(
        ComparisonSnapshot(max_difference=float("inf"), differences={"x": float("inf")})
    )
    assert said(view, "backward_comparison") == (
        "Differs because you edited a gradient: only one of the two passes has a gradient, in x."
    )
    view.show_comparison(
        ComparisonSnapshot(max_difference=float("inf"), differences={}, zeroed=True)
    )
    assert said(view, "backward_comparison") == (
        "Differs from loss.backward() because zero_grad emptied .grad during this pass."
    )
    assert label.property("role") == "warning"
    view.show_backward(backward(3))
    assert said(view, "backward_comparison") == ""


# -- the page --------------------------------------------------------------------------------------


def test_a_layout_of_an_older_graph_is_dropped(qtbot) -> None:
    view = AutogradView()
    qtbot.addWidget(view)
    asked = []
    view.graph.layout_requested.connect(lambda visible, direction: asked.append(visible))
    view.show_graph(GRAPH, NAMES)
    view.show_graph(type(GRAPH)(nodes=GRAPH.nodes[:1], edges=(), plan=(0,)), NAMES)
    older, newer = asked
    view.graph.show_layout(older, layout_nested(older.outline))
    assert view.graph.content_rect().isEmpty()
    view.graph.show_layout(newer, layout_nested(newer.outline))
    assert not view.graph.content_rect().isEmpty()


def test_backward_before_a_graph_is_ignored(view: AutogradView) -> None:
    view.show_backward(backward(3))
    assert "loss.grad_fn" in said(view, "backward_line")


def test_a_lost_engine_empties_the_page(view: AutogradView) -> None:
    view.show_forward(forward(4), NAMES)
    started(view, 6)
    view.show_engine_state("lost")
    assert "Start brings a batch" in said(view, "forward_line")
    assert "loss.grad_fn" in said(view, "backward_line")
    for name in ("forward_start", "backward_start"):
        button = view.findChild(QPushButton, name)
        assert button is not None and not button.isEnabled()


def test_problems_are_shown_and_taken_back_by_the_next_step(view: AutogradView) -> None:
    view.show_problem("linear1 expects 512 features, gets 576.")
    assert said(view, "autograd_problem") == "linear1 expects 512 features, gets 576."
    view.show_forward(forward(1), NAMES)
    assert said(view, "autograd_problem") == ""


def test_every_button_has_a_name_a_tooltip_and_an_accessible_name(view: AutogradView) -> None:
    started(view, 3)
    view.show_forward(forward(2), NAMES)
    for button in (*view.findChildren(QPushButton), *view.findChildren(QToolButton)):
        if isinstance(button.parent(), QTabBar):
            continue  # Qt's own arrows
        assert button.objectName() and button.toolTip() and button.accessibleName()


def test_the_forward_pass_looks_as_it_did(view: AutogradView, qapp) -> None:
    view.show_forward(forward(3), NAMES)
    qapp.processEvents()
    assert_same_picture(view.forward, "forward_view")
    assert_same_words(view.forward, "forward_view")


def test_before_the_first_block_none_is_chosen_and_the_list_begins_at_its_top(view) -> None:
    rows = view.forward.blocks
    asked: list = []
    rows.chosen.connect(asked.append)
    view.show_forward(forward(0), NAMES)
    assert rows.selected_block() is None
    assert [row.state for row in rows.rows()] == ["next", "waiting", "waiting", "waiting"]
    view.show_forward(forward(2), NAMES)
    assert rows.selected_block() == "b2" and asked == []
    assert [row.state for row in rows.rows()] == ["done", "current", "next", "waiting"]


def test_a_long_name_is_cut_before_the_shape(view: AutogradView, qapp) -> None:
    names = {**NAMES, "b2": "a_layer_whose_name_is_longer_than_the_list_of_blocks_is_wide"}
    view.show_forward(forward(3), names)
    qapp.processEvents()
    assert_same_picture(view.forward.blocks, "forward_long_name")
