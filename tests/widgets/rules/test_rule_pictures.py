"""The rule card looks as it did when a person last looked at it: a linear layer's step, checked
and stepped into."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from app import templates
from engine.protocol import (
    CheckRuleCommand,
    GraphSnapshot,
    MoveBackwardCommand,
    RuleCheckSnapshot,
    RuleCommand,
    RuleOpsCommand,
    StartBackwardCommand,
    StartForwardCommand,
    join_graph,
)
from engine.server.session import Session
from tests.pictures import assert_same_picture
from widgets import theme
from widgets.rules.rule_card import RuleCard

THEMES = {"light": theme.LIGHT, "dark": theme.DARK}


@pytest.fixture(scope="module")
def told():
    """The rule of the last layer's product for its weight, the check, and the operators."""
    answers = []
    session = Session(answers.append)
    project = templates.load_template("lenet")
    session.handle(StartForwardCommand(model=project.model, training=project.training))
    session.handle(StartBackwardCommand())
    session.handle(MoveBackwardCommand(move="end"))
    graph = join_graph([a for a in answers if isinstance(a, GraphSnapshot)])
    node = next(node.id for node in graph.nodes if node.name == "AddmmBackward0")
    found = []
    for command in (
        RuleCommand(node=node, input=2),
        CheckRuleCommand(node=node),
        RuleOpsCommand(node=node),
    ):
        session.handle(command)
        found.append(answers[-1])
    session.close()
    rule, check, ops = found
    # In which order the sums run, and so how they are rounded, depends on the processor.
    assert rule.max_difference < 1e-7
    return replace(rule, max_difference=2**-29), without_rounding(check), ops


def without_rounding(check: RuleCheckSnapshot) -> RuleCheckSnapshot:
    """The check as if finite differences had hit: how far they lie off, and so which are worst,
    depends on the processor."""
    elements = sorted(check.elements, key=lambda e: (e.label, e.element))
    exact = (replace(e, numeric=e.analytic, difference=0.0) for e in elements)
    return replace(check, elements=tuple(exact))


@pytest.mark.parametrize("name", THEMES)
@pytest.mark.parametrize("page", ["formula", "check", "inside"])
def test_rule_card(qtbot, qapp, told, page, name) -> None:
    theme.apply(qapp, THEMES[name])
    rule, check, ops = told
    card = RuleCard()
    qtbot.addWidget(card)
    card.resize(384, 520)
    card.show_rule(rule)
    card.show_check(check)
    card.show_ops(ops)
    card.setCurrentIndex(["formula", "check", "inside"].index(page))
    card.show()
    qapp.processEvents()
    assert_same_picture(card, f"rule_{page}_{name}")
