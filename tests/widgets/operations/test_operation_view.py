"""Operations explained before they run: the line, the answers, the cards."""

from __future__ import annotations

import pytest
import torch
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel

from engine.protocol import (
    ErrorReport,
    ExplainCommand,
    ExplainedStep,
    ExplanationSnapshot,
    FactRow,
    LayoutSpec,
    RunCellCommand,
    Variable,
)
from engine.server.session import Session
from tests.pictures import assert_same_picture
from tests.words import assert_same_words
from widgets import theme
from widgets.operations.kind_mark import KINDS, KindMark
from widgets.operations.operation_table import GROUPS, line_for
from widgets.operations.operation_view import NO_TENSOR_TEXT, OperationView
from widgets.operations.prediction_table import PredictionTable
from widgets.operations.step_card import NOT_CHECKED

X = Variable(name="x", kind="tensor", type="Tensor", shape=(2, 3), dtype="float32")
TRANSPOSED = ExplainedStep(
    code="x.T",
    operation="T",
    kind="view",
    why="only shape and strides change places.",
    operands=("x",),
    layouts=(LayoutSpec((2, 3), (3, 1), 0, "float32", "cpu"),),
    results=(LayoutSpec((3, 2), (1, 3), 0, "float32", "cpu"),),
    result_count=1,
    shares_with=("x",),
)
REFUSED = ExplainedStep(
    code="x.T.view(-1)",
    operation="view",
    kind="refused",
    operands=("x.T",),
    layouts=TRANSPOSED.results,
    reasoning=("dimension 0: 3 elements, 1 apart", "no stride fits"),
    refusal="view must not copy.",
    hint="reshape copies where it must.",
)


@pytest.fixture
def view(qtbot) -> OperationView:
    made = OperationView()
    qtbot.addWidget(made)
    made.show_variables([X])
    made.show_expression("x")
    made.resize(960, 560)
    made.show()
    qtbot.waitExposed(made)
    return made


@pytest.fixture
def asked(view: OperationView) -> list[ExplainCommand]:
    commands: list[ExplainCommand] = []
    view.asked.connect(commands.append)
    return commands


def pick(view: OperationView, name: str) -> None:
    item = view.list.item_of(name)
    view.list.scrollToItem(item)
    place = view.list.visualItemRect(item).center()
    QTest.mouseClick(view.list.viewport(), Qt.MouseButton.LeftButton, pos=place)


def test_picking_writes_the_line_for_the_selected_tensor(view, asked) -> None:
    pick(view, "view")
    assert view.line.text() == "y = x.view(3, -1)"
    assert asked[-1].source == "y = x.view(3, -1)" and not asked[-1].run
    QTest.keyClick(view.list, Qt.Key.Key_Down)
    assert asked[-1].source == "y = x.reshape(-1)"
    pick(view, "+=")
    assert view.line.text() == "x += 1"


def test_a_narrow_list_cuts_its_names_and_does_not_scroll_sideways(view) -> None:
    view.list.setFixedWidth(60)
    QApplication.processEvents()
    assert not view.list.horizontalScrollBar().isVisible()


def test_what_was_typed_comes_back_by_undo(view) -> None:
    QTest.keyClicks(view.line, "x[0]")
    pick(view, "T")
    assert view.line.text() == "y = x.T"
    view.line.undo()
    assert view.line.text() == "x[0]"


def test_it_is_asked_once_when_typing_pauses(qtbot, view, asked) -> None:
    with qtbot.waitSignal(view.asked):
        QTest.keyClicks(view.line, "x.T")
    assert [command.source for command in asked] == ["x.T"]


def test_only_the_answer_to_the_line_as_it_stands_is_shown(view) -> None:
    QTest.keyClicks(view.line, "x.T")
    view.show_snapshot(ExplanationSnapshot(source="x", problem="old"))
    assert view.problem.isHidden()
    view.show_snapshot(ExplanationSnapshot(source="x.T", steps=(TRANSPOSED,)))
    assert view.cards[0].isVisible() and view.run_button.isEnabled()


def test_a_card_tells_kind_layout_and_why(view) -> None:
    QTest.keyClicks(view.line, "x.T")
    view.show_snapshot(ExplanationSnapshot(source="x.T", steps=(TRANSPOSED,)))
    card = view.cards[0]
    assert card.mark.word == "VIEW" and card.code.text() == "x.T"
    assert card.why.text() == "Why: only shape and strides change places."
    assert card.shares.text() == "Shares memory with x."
    assert card.table.rows() == ["x", "prediction"]
    told = {name: card.table.text(name, "prediction") for name in ("shape", "stride", "offset")}
    assert told == {"shape": "(3, 2)", "stride": "(1, 3)", "offset": "0"}
    assert card.table.text("shape", "PyTorch") == "" and view.verdict.isHidden()


def test_prediction_stands_beside_fact_with_ticks_and_crosses(view, asked) -> None:
    QTest.keyClicks(view.line, "x.T")
    QTest.mouseClick(view.check_button, Qt.MouseButton.LeftButton)
    assert asked[-1] == ExplainCommand(source="x.T", run=True)
    facts = (
        FactRow("shape", "(3, 2)", "(3, 2)", True),
        FactRow("stride", "(1, 3)", "(2, 1)", False),
    )
    right = with_facts(TRANSPOSED, facts[:1], actual=TRANSPOSED.results)
    view.show_snapshot(ExplanationSnapshot(source="x.T", steps=(right,), ran=True))
    table = view.cards[0].table
    assert (table.text("shape", "PyTorch"), table.text("mark", "PyTorch")) == ("(3, 2)", "✓")
    assert view.verdict.property("role") == "success"
    wrong = with_facts(TRANSPOSED, facts, actual=OTHERWISE)
    view.show_snapshot(ExplanationSnapshot(source="x.T", steps=(wrong,), ran=True))
    assert (table.text("stride", "PyTorch"), table.text("mark", "PyTorch")) == ("(2, 1)", "✗")
    assert view.verdict.text().startswith("✗") and view.verdict.property("role") == "error"
    # A cell that changes nothing of it leaves the facts; one that does takes them away.
    view.show_snapshot(ExplanationSnapshot(source="x.T", steps=(TRANSPOSED,)))
    assert table.text("mark", "PyTorch") == "✗"
    view.show_snapshot(ExplanationSnapshot(source="x.T", steps=(REFUSED,)))
    assert view.verdict.isHidden()


def explained(*sources: str, run: bool = False) -> list[ExplainedStep]:
    """What the engine tells of lines on `x` of (2, 3): the last step of each."""
    got: list = []
    session = Session(got.append)
    session.handle(RunCellCommand(source="x = torch.arange(6.).view(2, 3)"))
    steps = []
    for source in sources:
        session.handle(ExplainCommand(source=source, run=run))
        assert isinstance(got[-1], ExplanationSnapshot), got[-1]
        steps.append(got[-1].steps[-1])
    return steps


def test_every_operand_has_a_row(qtbot) -> None:
    table = PredictionTable()
    qtbot.addWidget(table)
    cat, where, einsum = explained(
        "torch.cat([x, x[:1], x[1:], x])",
        "torch.where(x > 0, x, x.sum(0))",
        "torch.einsum('ij,j,ij->i', x, x[0], x)",
    )
    table.show_step(cat)
    assert table.rows() == ["x", "x[:1]", "x[1:]", "x", "prediction"]
    assert [table.text("offset", row) for row in ("x[:1]", "x[1:]")] == ["0", "3"]
    assert table.text("shape", "prediction") == str(tuple(cat.results[0].shape)) == "(6, 3)"
    table.show_step(where)
    assert table.rows() == ["x > 0", "x", "x.sum(0)", "prediction"]
    assert table.text("dtype", "x > 0") == "bool"
    assert table.text("shape", "x.sum(0)") == "(3,)"
    table.show_step(einsum)
    assert table.rows() == ["x", "x[0]", "x", "prediction"]


@pytest.mark.parametrize(
    "source, shapes",
    [
        ("x.chunk(2, dim=1)", ["(2, 2)", "(2, 1)"]),
        ("x.split([1, 2], dim=1)", ["(2, 1)", "(2, 2)"]),
        ("x.unbind(1)", ["(2,)", "(2,)", "(2,)"]),
        ("x.max(dim=1)", ["(2,)", "(2,)"]),
    ],
)
def test_every_result_has_a_row(qtbot, source, shapes) -> None:
    table = PredictionTable()
    qtbot.addWidget(table)
    (step,) = explained(source, run=True)
    table.show_step(step)
    names = [f"prediction [{number}]" for number in range(len(shapes))]
    assert table.rows() == ["x", *names, "kind", "results", "shares with"]
    assert [table.text("shape", name) for name in names] == shapes
    assert [table.text("mark", name) for name in names] == ["✓"] * len(shapes)
    pieces = eval(source, {"x": torch.arange(6.0).view(2, 3)})
    assert [table.text("offset", name) for name in names] == [
        str(piece.storage_offset()) for piece in pieces
    ]


def test_of_several_results_the_one_that_differs_stands_beside_its_prediction(qtbot) -> None:
    table = PredictionTable()
    qtbot.addWidget(table)
    (step,) = explained("x.chunk(2, dim=1)", run=True)
    moved = replace(step.actual[1], storage_offset=5)
    table.show_step(replace(step, actual=(step.actual[0], moved)))
    assert table.rows()[:4] == ["x", "prediction [0]", "prediction [1]", "PyTorch [1]"]
    assert (table.text("offset", "PyTorch [1]"), table.text("mark", "PyTorch [1]")) == ("5", "✗")
    assert table.text("mark", "prediction [1]") == ""


def test_results_that_are_too_many_to_send_are_counted(qtbot) -> None:
    table = PredictionTable()
    qtbot.addWidget(table)
    (step,) = explained("torch.arange(100).unbind(0)")
    table.show_step(step)
    assert table.rows()[-2:] == ["… and 68 more", "results"]
    assert table.text("shape", "results") == "100"
    table.show_step(TRANSPOSED)
    assert table.rows() == ["x", "prediction"]
    assert [label.text() for label in table.findChildren(QLabel) if label.isVisibleTo(table)][
        -1
    ] == "cpu"


def test_a_refusal_tells_the_usual_fix_and_then_torchs_words(view) -> None:
    QTest.keyClicks(view.line, "x.T.view(-1)")
    source = view.source
    view.show_snapshot(ExplanationSnapshot(source=source, steps=(TRANSPOSED, REFUSED)))
    card = view.cards[1]
    assert card.mark.word == "REFUSED" and card.mark.role == "error"
    assert card.refusal.text() == "view must not copy." and card.table.isHidden()
    assert card.hint.text() == "Try: reshape copies where it must."
    assert card.words.text() == NOT_CHECKED and "no stride fits" in card.reasoning.text()
    fact = FactRow("torch", "is refused", "is refused: RuntimeError: no", True)
    step = with_facts(REFUSED, (fact,), "RuntimeError: no")
    view.show_snapshot(ExplanationSnapshot(source=source, steps=(TRANSPOSED, step), ran=True))
    assert card.words.text() == "RuntimeError: no"
    assert card.verdict.text() == "✓ PyTorch refuses, as predicted."


def test_errors_stand_under_the_line_which_is_not_lost(view) -> None:
    QTest.keyClicks(view.line, "y =")
    view.show_snapshot(ExplanationSnapshot(source="y =", problem="No Python.", hint="Write one."))
    assert view.problem.text() == "No Python." and view.hint.text() == "Write one."
    assert not view.run_button.isEnabled() and not view.check_button.isEnabled()
    view.show_error(ErrorReport("LabError", "It is busy."))
    assert view.problem.text() == "It is busy." and view.line.text() == "y ="


def test_what_has_no_rule_can_still_be_run(view, qtbot) -> None:
    QTest.keyClicks(view.line, " x.sum() ")
    view.show_snapshot(ExplanationSnapshot(source="x.sum()", note="There is no rule for `sum`."))
    assert view.note.text() == "There is no rule for `sum`." and view.problem.isHidden()
    assert not view.check_button.isEnabled()
    with qtbot.waitSignal(view.run_requested) as run:
        QTest.mouseClick(view.run_button, Qt.MouseButton.LeftButton)
    assert run.args == ["x.sum()"]


def test_a_picked_line_follows_the_selection_but_not_to_its_own_result(view) -> None:
    pick(view, "T")
    view.show_variables([X, Variable(name="y", kind="tensor", type="Tensor", shape=(3, 2))])
    view.show_expression("y")
    assert view.line.text() == "y = x.T"
    view.show_expression("x.grad")
    assert view.line.text() == "z = x.grad.T"
    QTest.keyClicks(view.line, " ")
    view.show_expression("x")
    assert view.line.text() == "z = x.grad.T "
    assert not view.list.selectedItems()


def test_empty_it_says_what_to_do(qtbot) -> None:
    view = OperationView()
    qtbot.addWidget(view)
    assert view.note.text() == NO_TENSOR_TEXT and not view.run_button.isEnabled()
    pick(view, "T")
    assert view.line.text() == "" and view.note.text() == NO_TENSOR_TEXT
    assert not view.list.selectedItems()
    view.show_expression("x")
    assert "Pick an operation" in view.note.text()


def test_kinds_have_colours_of_their_own_in_both_themes(qtbot) -> None:
    application = QApplication.instance()
    assert isinstance(application, QApplication)
    mark = KindMark()
    qtbot.addWidget(mark)
    mark.resize(mark.sizeHint())
    before = theme.current()
    for colors in (theme.LIGHT, theme.DARK):
        theme.apply(application, colors)
        seen = set()
        for kind in KINDS:
            mark.show_kind(kind)
            seen.add(mark.grab().toImage().pixelColor(6, mark.height() // 2).name())
        assert seen == {getattr(colors, role) for _, role, _ in KINDS.values()}
        assert len(seen) == len(KINDS)
    theme.apply(application, before)


@pytest.mark.parametrize("colors", [theme.LIGHT, theme.DARK], ids=["light", "dark"])
def test_an_explanation_looks_as_it_did(qapp, view, colors: theme.Theme) -> None:
    theme.apply(qapp, colors)
    QTest.keyClicks(view.line, "x.T.view(-1)")
    facts = (
        FactRow("kind", "view", "view", True),
        FactRow("shape", "(3, 2)", "(3, 2)", True),
        FactRow("stride", "(1, 3)", "(2, 1)", False),
    )
    refused = replace(REFUSED, failed=explained("x.T.view(-1)")[0].failed)
    steps = (with_facts(TRANSPOSED, facts, actual=OTHERWISE), refused)
    view.show_snapshot(ExplanationSnapshot(source=view.source, steps=steps, ran=True))
    view.setFocus()
    assert_same_picture(view, f"operation_{colors.name}")
    if colors is theme.LIGHT:
        assert_same_words(view, "operation_explained")


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("view", ("x.view(1, -1)", "x.view(5, -1)", "x.view(3, -1)")),
        ("permute", ("x.permute(())", "x.permute(0)", "x.permute(1, 0)")),
        ("expand", ("x.expand(2)", "x.expand(2, 5)", "x.expand(2, 2, 3)")),
        ("repeat", ("x.repeat(2)", "x.repeat(2)", "x.repeat(1, 2)")),
    ],
)
def test_a_line_is_written_for_the_shape_and_runs(name: str, lines: tuple[str, ...]) -> None:
    operations = (operation for group in GROUPS.values() for operation in group)
    operation = next(each for each in operations if each.name == name)
    for shape, line in zip(((), (5,), (2, 3)), lines, strict=True):
        assert line_for(operation, "x", shape) == f"y = {line}"
        exec(line, {"x": torch.zeros(shape)})
    assert line_for(operation, "x", None) == f"y = {lines[2]}"  # a shape that is not known


def test_a_text_that_is_cut_is_whole_in_its_tooltip(view) -> None:
    QTest.keyClicks(view.line, "x.T")
    layout = LayoutSpec((12345678,) * 9, (1,) * 9, 0, "float32", "cpu")
    long = replace(TRANSPOSED, results=(layout,))
    tips = []
    for step in (TRANSPOSED, long):
        view.show_snapshot(ExplanationSnapshot(source="x.T", steps=(step,)))
        table = view.cards[0].table
        label = table._cells[table.rows().index("prediction") + 1, 1]
        tips.append((label.toolTip(), label.text().endswith("…")))
    assert tips == [("", False), (str((12345678,) * 9), True)]


def test_every_operation_to_pick_has_a_rule_and_does_as_predicted() -> None:
    answers: list[object] = []
    session = Session(answers.append)
    session.handle(RunCellCommand(source="x = torch.arange(24.).view(2, 3, 4)\no = x * 2"))
    for operation in (operation for group in GROUPS.values() for operation in group):
        # T is for matrices alone: torch warns of others
        name, shape = ("x[0]", (3, 4)) if operation.name == "T" else ("x", (2, 3, 4))
        source = line_for(operation, name, shape, "" if name == "x[0]" else "o", ("x", "o"))
        answers.clear()
        session.handle(ExplainCommand(source=source, run=True))
        explained = answers[-1]
        assert isinstance(explained, ExplanationSnapshot), explained
        assert explained.ran and explained.steps[-1].kind != "refused", source
        assert all(fact.agrees for step in explained.steps for fact in step.facts), source
    session.close()


def test_an_operation_on_two_takes_the_newest_tensor_of_the_same_kind(view) -> None:
    twin, other = replace(X, name="w"), replace(X, name="h", dtype="float16")
    for variables, line in (
        ([X, other], "y = x + x"),
        ([X, twin, replace(twin, name="v"), other], "y = x + v"),
    ):
        view.show_variables(variables)
        pick(view, "+")
        assert view.line.text() == line
    view.show_variables([replace(X, name=name) for name in "xyzwuv"])
    pick(view, "T")
    assert view.line.text() == "y2 = x.T"
    view.show_variables([replace(X, name=name) for name in ("x", *"yzwuv", "y2", "y3")])
    pick(view, "T")
    assert view.line.text() == "y4 = x.T"


def test_a_card_in_a_narrow_column_is_no_higher_than_its_text(view) -> None:
    long = replace(TRANSPOSED, why="only shape and strides change places, and so " * 12)
    QTest.keyClicks(view.line, "x.T")
    view.show_snapshot(ExplanationSnapshot(source="x.T", steps=(long,)))
    QApplication.processEvents()
    card = view.cards[0]
    assert card.why.height() <= card.why.heightForWidth(card.why.width()) + 1
    assert card.minimumSizeHint().height() < card.height()


@pytest.mark.parametrize(
    ("kind", "shares", "told"),
    [
        ("view", ("x", "y"), "Shares memory with x, y."),
        ("copy", (), "Shares memory with no tensor of this line."),
        ("in place", ("x",), ""),
        ("same", ("x",), ""),
    ],
)
def test_what_shares_memory_is_told_of_views_and_copies(view, kind, shares, told) -> None:
    QTest.keyClicks(view.line, "x.T")
    step = replace(TRANSPOSED, kind=kind, shares_with=shares)
    view.show_snapshot(ExplanationSnapshot(source="x.T", steps=(step,)))
    assert view.cards[0].shares.text() == told
    assert view.cards[0].shares.isVisible() == bool(told)


def test_a_refusal_that_torch_does_not_make_is_told(view) -> None:
    QTest.keyClicks(view.line, "x.T.view(-1)")
    fact = FactRow("torch", "is refused", "gives (6,)", False)
    step = with_facts(REFUSED, (fact,))
    view.show_snapshot(ExplanationSnapshot(source=view.source, steps=(step,), ran=True))
    card = view.cards[0]
    assert card.verdict.text() == "✗ Predicted: is refused. PyTorch: gives (6,)."
    assert card.verdict.property("role") == "error" and card.words.isHidden()


def test_forgetting_and_starting_anew_keep_or_drop_the_line(view, asked) -> None:
    pick(view, "T")
    view.show_snapshot(ExplanationSnapshot(source=view.source, steps=(TRANSPOSED,)))
    view.forget("The engine has stopped.")
    assert view.line.text() == "y = x.T" and view.note.text() == "The engine has stopped."
    assert not view.cards[0].isVisible() and not view.run_button.isEnabled()
    view.start_anew()
    assert view.line.text() == "" and not view.list.selectedItems()
    assert "Pick an operation" in view.note.text()
    asked.clear()
    view.show_expression("x")  # nothing is picked, so nothing is asked
    view.forget("Why?")
    view.refresh()
    assert asked == [] and "Pick an operation" in view.note.text()


def test_a_picked_operation_can_be_picked_again_and_is_asked_anew(view, asked) -> None:
    pick(view, "T")
    pick(view, "T")
    assert [command.source for command in asked][-2:] == ["y = x.T"] * 2
    view.line.setFocus()
    QTest.keyClick(view.line, Qt.Key.Key_Return)
    assert asked[-1] == ExplainCommand(source="y = x.T", run=True)


def test_an_error_takes_the_cards_and_the_verdict_away(view) -> None:
    QTest.keyClicks(view.line, "x.T")
    ran = with_facts(TRANSPOSED, (FactRow("shape", "a", "a", True),), actual=TRANSPOSED.results)
    view.show_snapshot(ExplanationSnapshot(source="x.T", steps=(ran,), ran=True))
    assert view.verdict.isVisible() and view.cards[0].isVisible()
    view.show_error(ErrorReport("LabError", "It is busy.", "Wait."))
    assert view.verdict.isHidden() and view.cards[0].isHidden() and view.hint.text() == "Wait."
    view.show_snapshot(ExplanationSnapshot(source="x.T", steps=(TRANSPOSED,)))
    assert view.cards[0].isVisible()  # the old answer is not kept in its place


OTHERWISE = (LayoutSpec((3, 2), (2, 1), 0, "float32", "cpu"),)
"""What torch would give for TRANSPOSED if it did otherwise."""


def with_facts(
    step: ExplainedStep,
    facts: tuple[FactRow, ...],
    error: str = "",
    actual: tuple[LayoutSpec, ...] = (),
) -> ExplainedStep:
    return replace(step, facts=facts, error=error, actual=actual)
