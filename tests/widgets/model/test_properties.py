"""The panel of the selected block: name, parameters, costs, problems."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QPushButton

from engine.project import catalogue
from engine.project.document import Block
from engine.project.problems import Fix, Problem
from engine.protocol import BlockReport, ModelSnapshot, TensorSpec
from tests.pictures import assert_same_picture
from tests.words import assert_same_words
from widgets.model.problems import ProblemCard
from widgets.model.properties import BlockProperties

LINEAR = Block("b7", "nn.Linear", "linear1", {"in_features": 512, "out_features": 10})
FIX = Fix("set in_features to 576", "b7", "in_features", 576)
MISFIT = Problem("Linear expects 512 features, gets 576.", "b7", "input", "mat1 and mat2", FIX)
REPORT = BlockReport("b7", {"output": TensorSpec(("B", 10), "float32")}, 5130, 20520, 40, (MISFIT,))


def snapshot(**changes) -> ModelSnapshot:
    fields: dict = {
        "blocks": (REPORT,),
        "parameters": 1_234_567,
        "parameter_bytes": 4_938_268,
        "activation_bytes": 2048,
        "problems": (),
        "runnable": False,
        "code": "",
        "lines": {},
    }
    return ModelSnapshot(**(fields | changes))


@pytest.fixture
def panel(qtbot) -> BlockProperties:
    widget = BlockProperties()
    qtbot.addWidget(widget)
    widget.resize(320, 700)
    widget.show()
    widget.activateWindow()
    qtbot.waitUntil(widget.isActiveWindow)
    return widget


def show_linear(panel: BlockProperties, block: Block = LINEAR, report=REPORT) -> None:
    panel.show_block(block, catalogue.kind("nn.Linear"), report, snapshot())


def text(panel: BlockProperties, name: str) -> str:
    label = panel.findChild(QLabel, name)
    assert label is not None and label.isVisible()
    return label.text()


def test_a_block_is_shown_with_name_shape_and_cost(panel):
    show_linear(panel)
    assert text(panel, "properties_title") == "Linear"
    assert text(panel, "properties_torch_name") == "torch.nn.Linear"
    assert text(panel, "properties_summary") == catalogue.kind("nn.Linear").summary
    assert panel.name.text() == "linear1"
    assert panel.facts.facts() == {
        "Output": "(B, 10)  float32",
        "Parameters": "5,130 (20 KiB)",
        "Activations": "40 B per sample",
    }


def test_each_output_port_is_named_when_there_are_several(panel):
    outputs = {
        "output": TensorSpec(("B", 8, 32), "float32"),
        "h_n": TensorSpec((1, "B", 32), "float32"),
    }
    block = Block("b1", "nn.GRU", "gru1", {})
    panel.show_block(block, catalogue.kind("nn.GRU"), BlockReport("b1", outputs), None)
    assert panel.facts.facts()["Output h_n"] == "(1, B, 32)  float32"


def test_a_parameter_edit_names_the_block(panel, qtbot):
    show_linear(panel)
    edit = panel.form.field("in_features").lineEdit()
    edit.selectAll()
    with qtbot.waitSignal(panel.param_edited) as told:
        QTest.keyClicks(edit, "576")
        QTest.keyClick(panel.form.field("in_features"), Qt.Key.Key_Return)
    assert told.args == ["b7", "in_features", 576]


def test_the_problem_is_in_words_and_its_fix_one_click(panel, qtbot):
    show_linear(panel)
    assert text(panel, "problem_text") == MISFIT.message
    button = panel.findChild(QPushButton, "problem_fix")
    with qtbot.waitSignal(panel.fix_requested) as told:
        QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    assert told.args == [FIX]
    show_linear(panel, report=BlockReport("b7"))
    assert not panel.problems.isVisible()


def test_a_rename_is_asked_for_on_enter(panel, qtbot):
    show_linear(panel)
    panel.name.selectAll()
    with qtbot.waitSignal(panel.rename_requested) as told:
        QTest.keyClicks(panel.name, "head")
        QTest.keyClick(panel.name, Qt.Key.Key_Return)
    assert told.args == ["b7", "head"]


def test_a_bad_name_is_refused_in_place_as_it_is_typed(panel, qtbot):
    show_linear(panel)
    panel.name.setFocus()
    panel.name.selectAll()
    with qtbot.assertNotEmitted(panel.rename_requested):
        QTest.keyClicks(panel.name, "2nd")
        assert "2nd" in text(panel, "block_name_error")
        QTest.keyClick(panel.name, Qt.Key.Key_Return)
    assert panel.name.text() == "2nd"
    QTest.keyClick(panel.name, Qt.Key.Key_Escape)
    assert panel.name.text() == "linear1"
    assert not panel.findChild(QLabel, "block_name_error").isVisible()


def test_a_refused_name_keeps_its_reason_until_it_changes(panel):
    show_linear(panel)
    panel.show_name_error("Another block is named head.")
    show_linear(panel)
    assert text(panel, "block_name_error") == "Another block is named head."
    panel.name.setFocus()
    QTest.keyClicks(panel.name, "x")
    assert not panel.findChild(QLabel, "block_name_error").isVisible()


def test_a_new_report_keeps_a_name_being_typed(panel):
    show_linear(panel)
    panel.name.selectAll()
    QTest.keyClicks(panel.name, "hea")
    show_linear(panel, report=BlockReport("b7"))
    assert panel.name.text() == "hea"
    show_linear(panel, block=Block("b8", "nn.Linear", "linear2"))
    assert panel.name.text() == "linear2"


def test_without_a_selection_the_model_is_told(panel, qtbot):
    total = snapshot(problems=(Problem("The model has no output.", severity="warning"),))
    panel.show_block(None, None, None, total)
    assert panel.facts.facts() == {
        "Blocks": "1",
        "Parameters": "1,234,567 (4.71 MiB)",
        "Activations": "2 KiB per sample",
    }
    assert not panel.name.isVisible()
    assert [problem.severity for problem in panel.problems.problems()] == ["error", "warning"]
    first = panel.problems.findChild(ProblemCard)
    with qtbot.waitSignal(panel.problem_activated) as told:
        QTest.mouseClick(first, Qt.MouseButton.LeftButton)
    assert told.args == ["b7"]


def test_an_empty_model_says_what_to_do(panel):
    panel.show_block(None, None, None, None)
    assert "Drag a block" in text(panel, "properties_summary")
    assert panel.facts.facts() == {}


def test_an_unknown_kind_is_told_and_kept(panel):
    panel.show_block(Block("b1", "nn.FromTheFuture", "x1"), None, None, None)
    assert text(panel, "properties_title") == "nn.FromTheFuture"
    assert "keeps it unchanged" in text(panel, "properties_summary")


def test_a_problem_is_reached_by_keyboard_and_keeps_torchs_words(qtbot):
    card = ProblemCard(MISFIT)
    qtbot.addWidget(card)
    assert MISFIT.detail in card.toolTip()
    with qtbot.waitSignal(card.activated) as told:
        QTest.keyClick(card, Qt.Key.Key_Return)
    assert told.args == ["b7"]
    alone = ProblemCard(Problem("The model is empty."))
    qtbot.addWidget(alone)
    with qtbot.assertNotEmitted(alone.activated):
        QTest.mouseClick(alone, Qt.MouseButton.LeftButton)


def test_keys_that_the_panel_does_not_need_scroll_it(panel):
    show_linear(panel)
    panel.resize(320, 200)
    panel.setFocus()
    QTest.keyClick(panel, Qt.Key.Key_PageDown)
    assert panel.verticalScrollBar().value() > 0


def test_the_focus_is_seen_on_a_problem(panel, qtbot):
    show_linear(panel)
    card = panel.findChild(ProblemCard)
    panel.name.setFocus()
    without = card.grab().toImage()
    card.setFocus()
    assert card.hasFocus() and card.grab().toImage() != without


def test_a_problem_that_is_gone_is_seen_no_more(panel):
    show_linear(panel)
    old = panel.findChild(ProblemCard)
    assert old.isVisible()
    other = Problem("Linear has no input.", "b7")
    report = BlockReport("b7", REPORT.outputs, 5130, 20520, 40, (other,))
    show_linear(panel, report=report)
    assert not old.isVisible()
    assert [card.problem for card in panel.problems._cards] == [other]


def test_a_block_at_fault_looks_as_it_did(panel, qapp):
    show_linear(panel)
    panel.show_name_error("A name is letters, digits and _.")
    qapp.processEvents()
    assert_same_picture(panel, "properties")
    assert_same_words(panel, "properties")


def test_the_model_looks_as_it_did(panel, qapp):
    long = Problem("It has an output that leads nowhere, and so its gradient is never computed.")
    panel.show_block(None, None, None, snapshot(problems=(long,)))
    qapp.processEvents()
    assert_same_picture(panel, "properties_of_the_model")
    assert_same_words(panel, "properties_of_the_model")


def test_a_problem_says_where_a_click_leads_and_torchs_own_words(qtbot):
    tips = []
    for problem in (
        Problem("It has no input."),
        Problem("It has no input.", detail="torch said so"),
        Problem("It has no input.", block="b7"),
        Problem("It has no input.", block="b7", detail="torch said so"),
    ):
        card = ProblemCard(problem)
        qtbot.addWidget(card)
        tips.append(card.toolTip())
    click = "Click to select the block."
    assert tips == ["It has no input.", "torch said so", click, f"torch said so\n\n{click}"]


def test_long_figures_wrap_in_a_narrow_panel(panel, qapp):
    outputs = {"output": TensorSpec(("B", *(1000,) * 12), "complex128")}
    show_linear(panel, report=BlockReport("b7", outputs, 5130, 20520, 40, ()))
    qapp.processEvents()
    figures = [figure for _, figure in panel.facts._rows]
    assert figures[0].height() > 2 * figures[1].height()
    assert all(figure.geometry().right() < panel.width() for figure in figures)


def test_escape_leads_back_and_other_keys_do_not(panel, qtbot):
    show_linear(panel)
    with qtbot.assertNotEmitted(panel.left):
        QTest.keyClick(panel, Qt.Key.Key_A)
    with qtbot.waitSignal(panel.left):
        QTest.keyClick(panel, Qt.Key.Key_Escape)


def test_editing_begins_at_the_first_parameter_or_at_the_name(panel, qapp):
    show_linear(panel)
    qapp.processEvents()  # the fields are shown
    panel.edit()
    field = panel.form.field("in_features")
    assert panel.focusWidget() in (field, field.lineEdit())
    assert field.lineEdit().selectedText() == "512"
    panel.show_block(Block("b2", "nn.ReLU", "relu1"), catalogue.kind("nn.Identity"), None, None)
    qapp.processEvents()
    panel.edit()
    assert panel.focusWidget() is panel.name
