"""The rule card's presenter: which node's rule is asked for, and when the card is cleared."""

from __future__ import annotations

from typing import Any, cast

import pytest
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.presenters.autograd.rules import RulesPresenter
from engine.project import edits
from engine.protocol import BackwardSnapshot, ForwardSnapshot, GraphSnapshot, RuleCommand


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
