"""Choosing whose graph is read."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox, QLabel, QToolButton

from engine.project.examples import graph_examples
from engine.protocol import GraphCut, GraphNode, GraphSnapshot, StaleTensor, TensorSpec, Variable
from widgets.autograd.root_bar import MODEL, RootBar

PLAIN = Variable("x", "tensor", "Tensor", shape=(3,), dtype="float32")
LOSS = Variable("loss", "tensor", "Tensor", shape=(), grad_fn="MeanBackward0")
LATER = Variable("y", "tensor", "Tensor", shape=(2, 3), grad_fn="MulBackward0")


@pytest.fixture
def bar(qtbot):
    bar = RootBar()
    qtbot.addWidget(bar)
    bar.show()
    return bar


def box(bar) -> QComboBox:
    return bar.findChild(QComboBox, "graph_root")


def test_offers_the_model_and_every_tensor_with_a_graph_newest_first(bar):
    bar.show_variables((PLAIN, LOSS, LATER))
    offered = [box(bar).itemText(i) for i in range(box(bar).count())]
    assert offered == [MODEL, "y  (2, 3) · MulBackward0", "loss  () · MeanBackward0"]
    assert (bar.root, box(bar).currentText()) == ("", MODEL)


def test_typing_chooses_an_expression_and_stays_when_the_list_changes(bar, qtbot):
    bar.show_variables((LOSS,))
    edit = box(bar).lineEdit()
    assert edit is not None
    edit.selectAll()
    QTest.keyClicks(edit, "x.grad, loss")
    with qtbot.waitSignal(bar.root_chosen) as told:
        QTest.keyClick(edit, Qt.Key.Key_Return)
    assert told.args == ["x.grad, loss"]
    bar.show_variables((LOSS, LATER))
    assert (bar.root, box(bar).currentText()) == ("x.grad, loss", "x.grad, loss")


def test_the_name_loss_is_not_completed_to_the_loss_of_the_model(bar, qtbot):
    edit = box(bar).lineEdit()
    assert edit is not None
    edit.selectAll()
    QTest.keyClicks(edit, "loss")
    assert edit.text() == "loss"
    with qtbot.waitSignal(bar.root_chosen) as told:
        QTest.keyClick(edit, Qt.Key.Key_Return)
    assert told.args == ["loss"]


def test_choosing_tells_the_name_alone(bar, qtbot):
    bar.show_variables((LOSS,))
    with qtbot.waitSignal(bar.root_chosen) as told:
        box(bar).setCurrentIndex(1)
        box(bar).activated.emit(1)
    assert told.args == ["loss"]
    with qtbot.waitSignal(bar.root_chosen) as told:
        bar.choose("")
    assert (told.args, box(bar).currentText()) == ([""], MODEL)


def test_says_how_large_the_graph_is(bar):
    scalar = (TensorSpec((), "float32"),)
    nodes = (
        GraphNode(0, "MulBackward0", "", "operation", None, 5, scalar, saved_bytes=2048),
        GraphNode(1, "AccumulateGrad", "w", "leaf", None, -1, scalar),
    )
    cut = GraphCut(0, 1, "detach", "h")
    bar.show_graph(
        GraphSnapshot(
            nodes=nodes, edges=(), plan=(0, 1), cuts=(cut,), truncated=3, saved_bytes=2048
        )
    )
    facts = bar.findChild(QLabel, "graph_facts")
    assert facts.text() == (
        "5 nodes (1 leaf; the 2 nearest to the root are shown) · 2 KiB saved for backward · 1 cut"
    )
    bar.show_graph(GraphSnapshot(nodes=nodes, edges=(), plan=(0, 1), saved_bytes=2048))
    assert facts.text() == "2 nodes (1 leaf) · 2 KiB saved for backward"
    bar.show_graph(None)
    assert facts.text() == ""


def test_the_newest_tensor_with_a_graph(bar):
    assert bar.newest == ""
    bar.show_variables((LOSS, LATER, PLAIN))
    assert bar.newest == "y"
    bar.show_variables((PLAIN,))
    assert bar.newest == ""


def test_only_tensors_with_a_graph_are_offered(bar):
    net = Variable("net", "module", "Linear", grad_fn="AddBackward0")
    bar.show_variables((PLAIN, net))
    assert [box(bar).itemText(i) for i in range(box(bar).count())] == [MODEL]


def test_a_root_that_is_shown_is_not_told(bar, qtbot):
    bar.show_variables((LOSS, LATER))
    with qtbot.assertNotEmitted(bar.root_chosen):
        for root, text in (("y", "y  (2, 3) · MulBackward0"), ("y.grad", "y.grad"), ("", MODEL)):
            bar.show_root(root)
            assert (bar.root, box(bar).currentText()) == (root, text)
        bar.show_variables((LATER,))
        assert (bar.root, box(bar).currentText()) == ("", MODEL)
    with qtbot.waitSignal(bar.root_chosen) as told:
        bar.choose("y")
    assert told.args == ["y"] and box(bar).currentText() == "y  (2, 3) · MulBackward0"


def test_enter_tells_what_is_typed_once(bar):
    told = []
    bar.root_chosen.connect(told.append)
    bar.show_variables((LOSS, LATER))
    edit = box(bar).lineEdit()
    for typed in (" y.grad ", "y.grad", "loss  () · MeanBackward0", MODEL, MODEL):
        edit.setText(typed)
        edit.returnPressed.emit()
    assert told == ["y.grad", "loss", ""]


def test_tensors_that_were_overwritten_or_freed_are_told(bar):
    scalar = (TensorSpec((), "float32"),)
    node = GraphNode(0, "MulBackward0", "", "operation", None, 5, scalar, freed=True)
    leaf = GraphNode(1, "AccumulateGrad", "w", "leaf", None, -1, scalar)
    cuts = [GraphCut(0, 1, reason, "h") for reason in ("detach", "input", "integer", "no_grad")]
    graph = GraphSnapshot(
        nodes=(node, leaf, leaf), edges=(), plan=(0, 1), cuts=tuple(cuts), saved_bytes=4,
        stale=(StaleTensor(0, "self", 1, 2),) * 2,
    )  # fmt: skip
    bar.show_graph(graph)
    facts = bar.findChild(QLabel, "graph_facts")
    text = (
        "3 nodes (2 leaves) · 4 B saved for backward · 2 cuts · 2 overwritten since: backward will"
        " fail · 1 freed by a backward pass: another cannot run them"
    )
    assert facts.text() == text and facts.toolTip().startswith(f"{text}. What backward needs")


def test_each_example_is_told_from_its_menu(bar):
    told = []
    bar.example_chosen.connect(told.append)
    menu = bar.findChild(QToolButton, "graph_examples").menu()
    for action in menu.actions():
        action.trigger()
    assert told == list(graph_examples().values()) and len(told) > 1
    assert [action.text().replace("&&", "&") for action in menu.actions()] == [
        example.title for example in told
    ]
    assert menu.actions()[0].toolTip() == f"{told[0].tip}\n\n{told[0].code}".rstrip()
