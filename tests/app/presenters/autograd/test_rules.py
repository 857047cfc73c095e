"""The rule card's presenter: which node's rule is asked for, and when the card is cleared."""

from __future__ import annotations

from typing import Any, cast

import pytest
from PySide6.QtCore import Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QWidget

from app.presenters.autograd.rules import RulesPresenter
from engine.project import edits
from engine.protocol import (
    BackwardSnapshot,
    CellSnapshot,
    CheckRuleCommand,
    ForwardSnapshot,
    GraphSnapshot,
    RuleCommand,
    RuleOpsCommand,
)
from tests.widgets.backward.autograd_snapshots import backward


class Steps(QWidget):
    """Stands for the tab Step through."""

    node_selected = Signal(int)

    @property
    def backward(self) -> Steps:
        return self

    def set_rule_card(self, card: QWidget) -> None:
        card.setParent(self)


@pytest.fixture
def rules(bench, link, qtbot):
    link.get_ready()
    view = Steps()
    qtbot.addWidget(view)
    presenter = RulesPresenter(bench, cast(Any, view), bench.window)
    presenter.card.setCurrentWidget(presenter.card.formula)
    presenter.cleared = []
    presenter.card.clear = lambda: presenter.cleared.append(True)
    yield presenter
    view.deleteLater()


def begin(bench, *plan: int) -> None:
    bench.store.take(GraphSnapshot(revision=1, nodes=(), edges=(), plan=plan))
    bench.store.take(BackwardSnapshot(revision=1, position=0, step=None, gradients=()))


def asked(link) -> list[int]:
    return [command.node for command in link.sent if isinstance(command, RuleCommand)]


def test_the_first_node_of_the_plan_is_shown_before_any_step(rules, bench, link):
    begin(bench, 7, 3)
    assert asked(link) == [7]
    bench.store.take(BackwardSnapshot(revision=1, position=0, step=None, gradients=()))
    assert asked(link) == [7]  # the pass has not moved


def test_a_node_that_is_chosen_is_shown(rules, bench, link):
    begin(bench, 7, 3)
    rules._look_at(3)
    assert asked(link) == [7, 3]


def test_no_rule_is_asked_for_without_a_backward_pass(rules, link):
    rules.ask(2)
    assert link.sent == []


@pytest.mark.parametrize("end", ["forward", "graph", "edit", "engine"])
def test_the_card_is_cleared_by_whatever_ends_the_pass(rules, bench, link, end):
    begin(bench, 7)
    rules.cleared.clear()
    if end == "forward":
        bench.store.take(ForwardSnapshot(revision=1, order=(), position=0, activations=()))
    elif end == "graph":
        bench.store.take(GraphSnapshot(revision=1, nodes=(), edges=(), plan=(1,)))
    elif end == "edit":
        bench.store.set_project(edits.add_block(bench.project, "nn.Linear", 0, 0)[0])
    else:
        link.close()
    assert rules.cleared
    link.fail("too late for a card that was cleared")
    assert "too late" not in rules.card.formula.problem()


def test_a_rule_is_stepped_into_once_its_node_has_run(rules, bench):
    traced: list[int] = []
    rules.trace_requested.connect(traced.append)
    begin(bench, 7, 3)
    rules._look_at(7)
    rules._step_into()
    assert traced == []
    bench.store.take(BackwardSnapshot(revision=1, position=1, step=None, gradients=()))
    rules._look_at(7)
    rules._step_into()
    rules._look_at(3)
    rules._step_into()
    assert traced == [7]


def test_what_the_card_and_the_view_want_is_asked_or_passed_on(rules, bench, link, qtbot):
    begin(bench, 7, 3)
    view, card = rules.card.parent(), rules.card
    view.node_selected.emit(3)
    card.rule_requested.emit(5, 1, (2, 0))
    card.check_requested.emit(6)
    card.ops_requested.emit(8)
    first, chosen, rule, check, ops = link.sent
    assert (first.node, chosen.node) == (7, 3)
    assert (chosen.input, chosen.element) == (-1, None)
    assert (rule.node, rule.input, rule.element) == (5, 1, (2, 0))
    assert (type(check), check.node) == (CheckRuleCommand, 6)
    assert (type(ops), ops.node) == (RuleOpsCommand, 8)
    passed: list[object] = []
    rules.trace_requested.connect(passed.append)
    rules.code_requested.connect(passed.append)
    card.trace_requested.emit(4)
    card.code_requested.emit("x = 1")
    assert passed == [4, "x = 1"]


@pytest.mark.parametrize("question", ["rule", "check", "ops"])
def test_an_answer_or_a_refusal_is_shown_on_its_page(rules, bench, link, question: str):
    begin(bench, 7)
    card = rules.card
    page = {"rule": card.formula, "check": card.check, "ops": card.ops}[question]
    shown: list[object] = []
    setattr(card, f"show_{question}", shown.append)
    page.show_problem = shown.append
    getattr(card, f"{question}_requested").emit(*((7, -1, None) if question == "rule" else (7,)))
    link.fail("It has not run.", "Step first.")
    assert shown == ["It has not run. Step first."]
    getattr(card, f"{question}_requested").emit(*((7, -1, None) if question == "rule" else (7,)))
    link.answer(CellSnapshot(ok=True, error=None))  # of any kind: the card takes it
    assert [type(each) for each in shown[1:]] == [CellSnapshot]


def test_a_rule_is_asked_for_only_while_the_card_shows_rules(rules, bench, link):
    card, hidden = rules.card, QWidget()
    card.addTab(hidden, "Values")
    begin(bench, 7, 3)
    card.setCurrentWidget(hidden)
    rules._look_at(3)
    assert asked(link) == [7]
    card.setCurrentWidget(card.formula)
    assert asked(link) == [7, 3]


def test_the_card_follows_the_step_and_forgets_the_one_before(rules, bench, link):
    forgotten: list[bool] = []
    rules.card.forget_step = lambda: forgotten.append(True)
    begin(bench, 7, 3)
    assert len(forgotten) == 1
    step = backward(1).step
    assert step is not None
    bench.store.take(BackwardSnapshot(revision=1, position=1, step=step, gradients=()))
    assert asked(link) == [7, step.node] and len(forgotten) == 2
    other = BackwardSnapshot(revision=1, position=1, step=step, gradients=(), pass_number=9)
    bench.store.take(other)
    assert len(forgotten) == 3  # the same place of another pass


def test_ctrl_f11_steps_into_the_rule(rules, bench, qtbot):
    traced: list[int] = []
    rules.trace_requested.connect(traced.append)
    begin(bench, 7)
    bench.store.take(BackwardSnapshot(revision=1, position=1, step=None, gradients=()))
    rules._look_at(7)
    view = rules.card.parent()
    (shortcut,) = [each for each in view.findChildren(QShortcut) if each.parent() is view]
    assert shortcut.key() == QKeySequence("Ctrl+F11")
    shortcut.activated.emit()
    assert traced == [7]


def test_no_rule_is_stepped_into_without_its_graph_its_pass_or_a_node(rules, bench):
    traced: list[int] = []
    rules.trace_requested.connect(traced.append)
    rules._step_into()
    rules._look_at(7)
    rules._step_into()
    bench.store.take(BackwardSnapshot(revision=1, position=1, step=None, gradients=()))
    rules._look_at(7)
    rules._step_into()  # of a graph that is not there
    assert traced == []
