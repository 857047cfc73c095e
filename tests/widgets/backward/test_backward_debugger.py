"""The parts of the backward panel: options, breakpoints, the next node, lists."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QAbstractButton, QLabel, QTabWidget, QTreeWidget

from engine.protocol import (
    Breakpoint,
    BreakpointState,
    ComparisonSnapshot,
    GradientEdit,
    NextNode,
    PendingGradient,
    StartBackwardCommand,
    breakpoint_words,
)
from tests.pictures import assert_same_picture
from tests.widgets.backward.autograd_snapshots import GRAPH, NAMES, backward, summary_of, value_of
from widgets.backward.breakpoint_form import BreakpointForm
from widgets.backward.breakpoint_list import BreakpointList, breakpoints_at
from widgets.backward.next_node import NextNode as NextNodeStrip
from widgets.backward.next_node import as_expression, templates
from widgets.backward.pass_options import PassOptions
from widgets.backward.pass_tabs import PassTabs
from widgets.backward.view import BackwardView


@pytest.fixture
def view(qtbot) -> BackwardView:
    view = BackwardView()
    qtbot.addWidget(view)
    view.resize(384, 840)
    view.show_ready(True)
    exposed(qtbot, view)
    return view


def shown(parent, name: str) -> str:
    label = parent.findChild(QLabel, name)
    assert label is not None
    return label.text() if label.isVisibleTo(parent) else ""


def exposed(qtbot, widget) -> None:
    """Shown and active, so that its shortcuts act."""
    with qtbot.waitActive(widget):
        widget.show()
        widget.activateWindow()


def button(parent, name: str) -> QAbstractButton:
    found = parent.findChild(QAbstractButton, name)
    assert found is not None
    return found


# -- options ---------------------------------------------------------------------------------------


def test_options_make_the_command_and_say_what_is_chosen(qtbot) -> None:
    options = PassOptions()
    qtbot.addWidget(options)
    assert options.command() == StartBackwardCommand() and options.summary() == "node by node"
    assert not options.retain_graph.isEnabled()
    options.gradient.setText(" v ")
    options.inputs.setText("x, w,")
    options.create_graph.setChecked(True)
    options.accumulate.setChecked(True)
    options.real_engine.setChecked(True)
    options.retain_graph.setChecked(True)
    assert options.command("y") == StartBackwardCommand(
        root="y",
        gradient="v",
        create_graph=True,
        accumulate=True,
        inputs=("x", "w"),
        real_engine=True,
        retain_graph=True,
    )
    assert options.summary() == "real engine · graph kept · gradient v · create_graph · only x, w"
    options.inputs.clear()
    assert options.summary().endswith("adds to .grad")
    with qtbot.waitSignal(options.started):
        qtbot.keyClick(options.gradient, Qt.Key.Key_Return)


def test_options_are_folded_at_first(qtbot) -> None:
    options = PassOptions()
    qtbot.addWidget(options)
    assert not options.gradient.isVisibleTo(options)
    button(options, "backward_options_fold").click()
    assert options.gradient.isVisibleTo(options)


# -- breakpoints -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "target", "when", "value", "wanted", "words"),
    [
        (
            "op",
            "addmm",
            "always",
            "",
            Breakpoint(on="op", target="addmm"),
            "before nodes of addmm",
        ),
        (
            "any",
            "",
            "made",
            "",
            Breakpoint(condition="makes_not_finite", of="outgoing"),
            "any node that makes NaN or inf of finite numbers",
        ),
        (
            "module",
            "layers.0",
            "above_in",
            "1e3",
            Breakpoint(on="module", target="layers.0", condition="norm_above", threshold=1000.0),
            "module layers.0 where a norm above 1000 comes in",
        ),
        (
            "node",
            "17",
            "shape_out",
            "(64, 10)",
            Breakpoint(on="node", target="17", condition="shape", of="outgoing", shape=(64, 10)),
            "node 17 where shape (64, 10) goes out",
        ),
        (
            "any",
            "",
            "below_out",
            "1e-6",
            Breakpoint(condition="norm_below", of="outgoing", threshold=1e-6),
            "any node where a norm below 1e-06 goes out",
        ),
    ],
)
def test_the_form_puts_a_breakpoint_together(
    qtbot, where, target, when, value, wanted, words
) -> None:
    form = BreakpointForm()
    qtbot.addWidget(form)
    form.where.setCurrentIndex(form.where.findData(where))
    form.when.setCurrentIndex(form.when.findData(when))
    assert form.target.isVisibleTo(form) == bool(target)
    assert form.value.isVisibleTo(form) == bool(value)
    form.target.setText(target)
    form.value.setText(value)
    with qtbot.waitSignal(form.added) as added:
        form.submit()
    assert added.args == [wanted]
    assert breakpoint_words(wanted) == words


def test_the_form_has_a_field_only_where_one_is_needed(qtbot) -> None:
    form = BreakpointForm()
    qtbot.addWidget(form)
    seen = []
    for where in ("any", "op", "module", "node", "any"):
        form.where.setCurrentIndex(form.where.findData(where))
        seen.append((form.target.isVisibleTo(form), form.target.placeholderText()))
    named = [(True, "addmm"), (True, "layers.0.attn"), (True, "17")]
    assert seen == [(False, ""), *named, (False, "")]


@pytest.mark.parametrize(
    ("where", "target", "when", "value", "words"),
    [
        ("op", "", "always", "", "Type the op"),
        ("node", "addmm", "always", "", "by its number"),
        ("any", "", "always", "", "To stop at every node, step"),
        ("any", "", "above_in", "much", "Type the number"),
        ("any", "", "shape_in", "a, b", "sizes with commas"),
    ],
)
def test_what_makes_no_sense_is_told_in_place(qtbot, where, target, when, value, words) -> None:
    points = BreakpointList()
    qtbot.addWidget(points)
    form = points.form
    form.where.setCurrentIndex(form.where.findData(where))
    form.when.setCurrentIndex(form.when.findData(when))
    form.target.setText(target)
    form.value.setText(value)
    with qtbot.assertNotEmitted(points.changed):
        form.submit()
    assert words in shown(points, "breakpoint_problem")


def test_the_list_switches_removes_and_counts(qtbot) -> None:
    points = BreakpointList()
    qtbot.addWidget(points)
    said: list[tuple[Breakpoint, ...]] = []
    points.changed.connect(said.append)
    first, second = Breakpoint(on="op", target="mul"), Breakpoint(condition="not_finite")
    points.add(first)
    points.add(second)
    points.add(first)
    assert said[-1] == (first, second) == points.breakpoints
    points.show_states((BreakpointState(first, 3, 0), BreakpointState(second, 0, 9)))
    exposed(qtbot, points)
    shown = points.findChild(QTreeWidget, "breakpoints").topLevelItem(0)
    assert shown.text(0) == "before nodes of mul: not in this graph"
    assert "misspelt" in shown.toolTip(0)
    points.show_states((BreakpointState(first, 3, 1), BreakpointState(second, 0, 9)))
    tree = points.findChild(QTreeWidget, "breakpoints")
    item = tree.topLevelItem(0)
    assert (item.text(0), item.text(1)) == ("before nodes of mul", "3")
    item.setCheckState(0, Qt.CheckState.Unchecked)
    off = replace(first, enabled=False)
    assert said[-1] == (off, second)
    points.add(first)  # switches it on again
    assert said[-1] == (first, second)
    second_row = tree.topLevelItem(1)
    assert second_row is not None
    tree.setCurrentItem(second_row)
    tree.setFocus()
    qtbot.keyClick(tree, Qt.Key.Key_Delete)
    assert said[-1] == (first,)
    button(points, "breakpoint_remove").click()
    assert said[-1] == () and "No breakpoints" in points._empty.text()


def test_boxes_with_a_breakpoint_that_is_on_are_told(qtbot) -> None:
    points = BreakpointList()
    qtbot.addWidget(points)
    points.add(Breakpoint(on="op", target="mul"))
    points.add(Breakpoint())
    points.add(Breakpoint(on="node", target="3"))
    points.add(Breakpoint(on="module", target="net.a"))
    assert points.keys() == {"#3", "net.a"}
    points.show_states(
        [BreakpointState(replace(each, enabled=False), 0) for each in points.breakpoints]
    )
    assert points.keys() == frozenset()
    points.toggle("h.[0-1]")
    assert points.keys() == {"h.0", "h.1"}
    points.toggle("h.1")
    assert points.keys() == {"h.0"}
    points.toggle("h.[0-1]")
    assert points.keys() == {"h.0", "h.1"} and len(points.breakpoints) == 6
    points.toggle("h.[0-1]")
    assert points.keys() == frozenset() and len(points.breakpoints) == 4


def test_boxes_of_the_graph_are_nodes_modules_and_folds(qtbot) -> None:
    assert breakpoints_at("#17") == (Breakpoint(on="node", target="17"),)
    assert breakpoints_at("net.attn") == (Breakpoint(on="module", target="net.attn"),)
    assert [b.target for b in breakpoints_at("h.[9-11].mlp.[0-1]")] == [
        "h.9.mlp.0",
        "h.9.mlp.1",
        "h.10.mlp.0",
        "h.10.mlp.1",
        "h.11.mlp.0",
        "h.11.mlp.1",
    ]
    points = BreakpointList()
    qtbot.addWidget(points)
    points.toggle("#3")
    points.toggle("h.[0-1]")
    assert points.keys() == {"#3", "h.0", "h.1"}
    points.toggle("h.[0-1]")
    assert points.keys() == {"#3"}


# -- the next node ---------------------------------------------------------------------------------


def strip(qtbot, shapes=((2, 3),), **kwargs) -> NextNodeStrip:
    found = NextNodeStrip()
    qtbot.addWidget(found)
    found.show_node(5, "Next: MulBackward0", "norm 1", shapes, **kwargs)
    exposed(qtbot, found)
    return found


@pytest.mark.parametrize("key", templates(()))
def test_every_template_is_python(key: str) -> None:
    for shape in ((), (4,), (2, 3)):
        compile(as_expression(templates(shape)[key][2]), "<edit>", "eval")


def test_what_one_would_change_of_a_template_is_selected(qtbot) -> None:
    node = strip(qtbot, shapes=((2, 3), ()))
    selected = {}
    for key in ("element", "clip_value", "expression"):
        node.actions_by_key[key].trigger()
        text = node.field.text()
        start, end = node.field.selectionStart(), node.field.selectionEnd()
        selected[key] = text[:start], text[start:end]
    assert selected["element"] == ("g[", "0, 0")
    assert selected["clip_value"] == ("g.clamp(-", "1.0")
    assert selected["expression"] == ("", node.field.text())
    node._outputs.setCurrentIndex(1)
    node.actions_by_key["element"].trigger()
    assert node.field.text() == templates(())["element"][2]  # this output has no dimension


def test_another_node_closes_the_field_and_the_same_leaves_it_open(qtbot) -> None:
    node = strip(qtbot)
    node.actions_by_key["clip_value"].trigger()
    node.show_node(5, "Next: MulBackward0", "norm 2", ((2, 3),))
    assert node.field.isVisible()
    node.show_node(6, "Next: SumBackward0", "norm 1", ((),))
    assert not node.field.isVisible() and node.node == 6


def test_templates_fill_the_field_and_enter_applies(qtbot) -> None:
    node = strip(qtbot)
    asked: list[tuple[int, str, int]] = []
    node.edited.connect(lambda *edit: asked.append(edit))
    node.actions_by_key["zero"].trigger()
    assert asked == [(5, "torch.zeros_like(g)", 0)] and not node.field.isVisible()
    node.actions_by_key["clip_value"].trigger()
    assert node.field.isVisible() and node.field.text() == "g.clamp(-1.0, 1.0)"
    qtbot.keyClick(node.field, Qt.Key.Key_Escape)
    assert not node.field.isVisible()
    node.actions_by_key["element"].trigger()
    assert (node.field.text(), node.field.selectedText()) == ("g[0, 0] = 1.0", "0, 0")
    qtbot.keyClicks(node.field, "1, -1")
    qtbot.keyClick(node.field, Qt.Key.Key_Return)
    assert asked[-1][1] == "g.index_put((torch.tensor(1), torch.tensor(-1),), g.new_tensor(1.0))"
    node.field.setText("g + 1")
    qtbot.keyClick(node.field, Qt.Key.Key_Return)
    assert asked[-1] == (5, "g + 1", 0)
    node.show_applied()
    assert not node.field.isVisible()


def test_one_output_of_several_is_chosen(qtbot) -> None:
    node = strip(qtbot, ((2,), (3, 4)), edits=(GradientEdit(5, "g * 2", 1),))
    node._outputs.setCurrentIndex(1)
    with qtbot.waitSignal(node.edited) as asked:
        node.findChild(QAction, "next_cut").trigger()
    assert asked.args == [5, "None", 1]
    assert shown(node, "next_edits") == "g 1 ← g * 2"
    with qtbot.waitSignal(node.unedited) as undone:
        button(node, "next_undo").click()
    assert undone.args == [5]
    node.show_node(6, "Next: SumBackward0", "", ((),))
    assert shown(node, "next_edits") == "" and not node.undo.isVisible()


# -- the panel -------------------------------------------------------------------------------------


def paused(**changes):
    """Before the second node, which has got both its contributions."""
    gradient = np.array([[3.0, 4.0]], np.float32)
    node = GRAPH.plan[1]
    return replace(
        backward(1),
        next=NextNode(node, (value_of("gradient in", gradient),), hooks="1 tensor hook"),
        pending=(PendingGradient(node, 2, 2, (summary_of(gradient),)),),
        **changes,
    )


def test_the_next_node_tells_what_has_arrived(view: BackwardView, qtbot) -> None:
    view.show_backward(paused(), GRAPH, NAMES)
    assert shown(view, "next_title") == "Next: ReluBackward0 · relu1"
    assert shown(view, "next_facts") == "norm 5 · 2 of 2 contributions · 1 tensor hook"
    button(view, "next_look").click()
    assert [card.accessibleName() for card in view.values.shown_cards()] == [
        "gradient in: (1, 2) · float32 · cpu · 8 B"
    ]
    edited = paused(edits=(GradientEdit(GRAPH.plan[1], "g * 2"),))
    half = value_of("after the edit", np.array([[6.0, 8.0]], np.float32))
    assert edited.next is not None
    edited = replace(edited, next=replace(edited.next, edited=(half,), hooks=""))
    view.show_backward(edited, GRAPH, NAMES)
    assert shown(view, "next_facts") == "norm 5 → 10 · 2 of 2 contributions"
    assert view.tabs.edits.rows() == [["ReluBackward0 · relu1", "g * 2"]]
    assert view.tabs.tabText(2) == "Edits 1"
    assert view.tabs.pending.rows() == [["ReluBackward0 · relu1", "2 of 2", "norm 5"]]


def test_a_waiting_node_that_is_chosen_can_be_edited(view: BackwardView, qtbot) -> None:
    view.show_backward(paused(), GRAPH, NAMES)
    later = GRAPH.plan[-1]
    view.show_selected(later)
    assert shown(view, "next_title").startswith("Waiting: ")
    assert shown(view, "next_facts") == "no gradient has arrived yet"
    with qtbot.waitSignal(view.next_node.edited) as asked:
        view.next_node.actions_by_key["zero"].trigger()
    assert asked.args[0] == later
    view.show_selected(GRAPH.plan[0])
    assert shown(view, "next_title").startswith("Next: ")


def test_the_start_is_told_for_any_root(view: BackwardView) -> None:
    view.show_backward(backward(0), GRAPH, NAMES)
    assert "which is 1" in shown(view, "node_about")
    view.show_backward(backward(0), replace(GRAPH, root="y"), NAMES)
    assert "starts with a gradient for y" in shown(view, "node_about")


def test_the_end_names_the_call_it_equals(view: BackwardView) -> None:
    same = ComparisonSnapshot(max_difference=0.0, differences={})
    for root, inputs, call in (
        ("", (), "loss.backward()"),
        ("y", (), "y.backward()"),
        ("y, z", (), "backward()"),
        ("y", ("x",), "autograd.grad()"),
    ):
        view.show_backward(replace(backward(6), inputs=inputs), replace(GRAPH, root=root), NAMES)
        assert shown(view, "backward_line").endswith(f"against {call}.")
        view.show_comparison(same)
        assert shown(view, "backward_comparison").startswith(f"Equals {call}: max difference 0")


def test_stops_passes_and_freed_bytes_are_told(view: BackwardView) -> None:
    view.show_backward(
        paused(stopped_by="Paused before AddmmBackward0.", pass_number=2, freed_bytes=512),
        GRAPH,
        NAMES,
    )
    assert shown(view, "backward_stopped") == "Paused before AddmmBackward0."
    assert shown(view, "backward_line") == "Pass 2: 1 of 6 nodes have run."
    assert "would have freed 512 B" in view.findChild(QLabel, "backward_line").toolTip()
    view.show_backward(paused(real_engine=True, retain_graph=False, freed_bytes=2048), GRAPH, NAMES)
    assert shown(view, "backward_line").endswith("2 KiB of saved tensors freed.")
    assert shown(view, "backward_stopped") == ""


def test_the_real_engine_has_no_way_back(view: BackwardView) -> None:
    view.show_backward(paused(real_engine=True), GRAPH, NAMES)
    enabled = {key for key, b in view._bar.buttons.items() if b.isEnabled()}
    assert enabled == {"step", "run", "leaf", "out", "end"}
    view.show_selected(GRAPH.plan[0])  # has run
    assert not view._bar.buttons["to"].isEnabled()
    view.show_selected(GRAPH.plan[4])
    assert view._bar.buttons["to"].isEnabled()


def test_a_leaf_shows_its_grad_before_and_after(view: BackwardView) -> None:
    base = backward(3)
    added = value_of("gradient in", np.array([1.0, 1.0], np.float32))
    before = value_of(".grad before", np.array([2.0, 2.0], np.float32))
    after = value_of(".grad after", np.array([3.0, 3.0], np.float32))
    assert base.step is not None
    step = replace(
        base.step,
        incoming=(added,),
        outgoing=(),
        grad_before=before,
        grad_after=after,
        hooks="1 post-accumulate hook",
        edited=True,
    )
    view.show_backward(replace(base, step=step), GRAPH, NAMES)
    labels = [card.accessibleName().partition(":")[0] for card in view.values.shown_cards()]
    assert labels == ["gradient in", ".grad before", ".grad after"]
    about = shown(view, "node_about")
    assert "The incoming gradient is your edit" in about and "1 post-accumulate hook" in about


def test_moves_by_keyboard(view: BackwardView, qtbot) -> None:
    view.show_backward(paused(), GRAPH, NAMES)
    asked: list[str] = []
    view.move_requested.connect(lambda move, _: asked.append(move))
    control, shift = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier
    view.values.setFocus()
    for key, modifier in (
        (Qt.Key.Key_Right, control),
        (Qt.Key.Key_Right, control | shift),
        (Qt.Key.Key_Left, control | shift),
        (Qt.Key.Key_Down, control),
        (Qt.Key.Key_Up, control),
        (Qt.Key.Key_End, control),
    ):
        qtbot.keyClick(view.values, key, modifier)
    assert asked == ["step", "run", "back_run", "leaf", "out", "end"]


def test_lists_ask(qtbot) -> None:
    tabs = PassTabs()
    qtbot.addWidget(tabs)
    tabs.show_backward(
        replace(
            backward(6),
            edits=(GradientEdit(4, "None"),),
            pending=(PendingGradient(2, 1, 2, ()),),
            pending_more=7,
        ),
        lambda node: f"node {node}",
    )
    assert [tabs.tabText(i) for i in range(4)] == [
        "Gradients",
        "Breakpoints",
        "Edits 1",
        "Pending 8",
    ]
    assert tabs.pending.rows() == [["node 2", "1 of 2", "held by the engine"]]
    assert shown(tabs.pending, "pending_note") == "And 7 more nodes."
    tabs.setCurrentWidget(tabs.edits)
    exposed(qtbot, tabs)
    tree = tabs.edits.findChild(QTreeWidget, "edits")
    with qtbot.waitSignal(tabs.node_chosen) as chosen:
        first_row = tree.topLevelItem(0)
        assert first_row is not None
        tree.setCurrentItem(first_row)
    assert chosen.args == [4]
    tree.setFocus()
    with qtbot.waitSignal(tabs.unedited) as undone:
        qtbot.keyClick(tree, Qt.Key.Key_Delete)
    assert undone.args == [4]
    for name, to_none in (("backward_zero_none", True), ("backward_zero_zeros", False)):
        with qtbot.waitSignal(tabs.zero_requested) as zero:
            tabs.findChild(QAction, name).trigger()
        assert zero.args == [to_none]
    with qtbot.waitSignal(tabs.again_requested):
        button(tabs, "backward_again").click()
    tabs.show_backward(paused(), str)
    assert not button(tabs, "backward_again").isEnabled()


def test_values_and_rule_share_a_place(view: BackwardView) -> None:
    card, formula = QTabWidget(), QLabel("g / x")
    card.addTab(formula, "Formula")
    view.set_rule_card(card)
    view.show_backward(paused(), GRAPH, NAMES)
    assert view.values.isVisible() and not formula.isVisible()
    card.setCurrentWidget(formula)
    view.show_backward(backward(3), GRAPH, NAMES)
    assert formula.isVisible() and not view.values.isVisible()


# -- looks -----------------------------------------------------------------------------------------

EDIT = GradientEdit(node=1, expression="g * 2")
UNDER_WAY = replace(
    backward(3),
    edits=(EDIT,),
    pending=(PendingGradient(4, 1, 2, (summary_of(np.ones((2, 2), np.float32)),)),),
    next=NextNode(node=3, incoming=(value_of("gradient in", np.ones(2, np.float32)),)),
    stopped_by="before node 3",
)


@pytest.mark.parametrize(("tab", "width"), [(0, 520), (1, 520), (2, 384), (3, 300)])
def test_a_pass_under_way_looks_as_it_did(view, qapp, tab: int, width: int) -> None:
    view.resize(width, 900)
    button(view, "backward_options_fold").click()
    view.options.real_engine.setChecked(tab == 0)
    view.show_backward(UNDER_WAY, GRAPH, NAMES)
    view.tabs.breakpoints.toggle("#1")
    view.tabs.setCurrentIndex(tab)
    qapp.processEvents()
    assert_same_picture(view, f"backward_{tab}")


def test_moves_that_have_no_room_are_in_the_menu(view, qapp) -> None:
    view.show_backward(UNDER_WAY, GRAPH, NAMES)
    bar, counts = view._bar, {}
    for width in (900, 384, 300):
        view.resize(width, 840)
        qapp.processEvents()
        shown = [key for key, button in bar.buttons.items() if button.isVisible()]
        folded = [key for key in bar.buttons if bar._actions[key] in bar.more.menu().actions()]
        assert sorted(shown + folded) == sorted(bar.buttons)
        assert bar.more.isVisible() == bool(folded)
        counts[width] = len(folded)
    assert counts[900] == 0 < counts[300]


def test_what_the_next_node_gets_can_be_looked_at_only_where_it_is_next(view) -> None:
    strip = view.next_node
    view.show_backward(UNDER_WAY, GRAPH, NAMES)
    assert strip.look.isVisible()
    strip.look.click()
    assert "It runs next." in shown(view, "node_about")
    view.show_selected(4)
    assert not strip.look.isVisible()
