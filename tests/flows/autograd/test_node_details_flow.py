"""A node's details through the window: they follow the steps and the selection."""

from __future__ import annotations

from engine.protocol import GraphSnapshot
from widgets.rules.node_page import NodePage
from widgets.rules.rule_card import RuleCard


def test_details_follow_the_steps_and_the_selection(mlp) -> None:
    steps = mlp.window.page("autograd").steps
    page = steps.findChild(NodePage)
    tabs = steps.findChild(RuleCard)
    steps.forward.start_requested.emit(0)
    steps.backward.start_requested.emit()
    mlp.bench.link.drain()
    assert page.node is None  # not looked at, not asked for
    tabs.setCurrentWidget(page)
    mlp.bench.link.drain()
    assert page.node == 0
    steps.backward.move_requested.emit("step", -1)
    steps.backward.move_requested.emit("step", -1)
    mlp.bench.link.drain()
    graph = mlp.bench.store.newest(GraphSnapshot)
    assert page.node == graph.plan[1]
    product = next(node for node in graph.nodes if node.name == "AddmmBackward0")
    steps.node_selected.emit(product.id)
    mlp.bench.link.drain()
    assert page.node == product.id
    assert [row[0] for row in page.saved.rows()] == ["mat1", "mat2"]
    assert f"{product.module}.weight" in page.saved.rows()[1][3]
    assert any(row[1].endswith("loss") or "#" in row[1] for row in page.facts.rows())
    steps.forward.start_requested.emit(0)
    mlp.bench.link.drain()
    assert page.node is None
