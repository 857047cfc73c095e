"""The picture of one forward: a module is found in it, and a box tells its module."""

from __future__ import annotations

import pytest
import torch
from PySide6.QtWidgets import QMenu
from torch import nn

from engine.protocol import GraphSnapshot
from tests.engine.autograd.recorded_graphs import recorded
from widgets.boxes.hierarchy import Hierarchy
from widgets.layout.nested_layout import layout_nested
from widgets.structure.calls_picture import CallsGraph, CallsPane


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *(nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3)) for _ in range(4))
        )
        self.unused = nn.Linear(3, 3)
        self.head = nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.head(self.body(x) * 2)[:, :1].expand(-1, 3))


@pytest.fixture(scope="module")
def graph() -> GraphSnapshot:
    net = Net()
    return recorded(net, lambda: net(torch.ones(5, 3)).mean(), "Net")


@pytest.fixture
def pane(qtbot, graph) -> CallsPane:
    pane = CallsPane()
    view = pane.view
    view.layout_requested.connect(
        lambda v, d, s: view.show_layout(v, layout_nested(v.outline, d, s))
    )
    qtbot.addWidget(pane)
    pane.resize(700, 700)
    pane.show()
    view.show_graph(graph)
    return pane


def selected(view: CallsGraph) -> str:
    assert view.facts is not None and view.selected_box is not None
    return view.facts.visible.boxes[view.selected_box].key


def test_every_module_that_ran_has_a_box_or_a_node(graph):
    hierarchy = Hierarchy(graph)
    for path, _ in Net().named_modules():
        full = f"Net.{path}" if path else "Net"
        found = hierarchy.box_of_module(full)
        if path == "unused":
            assert found is None
            continue
        assert found is not None
        assert f"{hierarchy.module_of(found[0])}.".startswith(f"{full}.")
        assert found[0] in {box.key for box in hierarchy.visible(found[1]).boxes}
    for key in hierarchy.visible(hierarchy.open_all()).boxes:
        if key.kind != "cut":
            assert hierarchy.module_of(key.key) in {"", "Net"} | {
                f"Net.{path}" for path, _ in Net().named_modules()
            }


@pytest.mark.parametrize("path", ["Net", "Net.body.2", "Net.body.2.0", "Net.head"])
def test_a_module_is_selected_and_what_hides_it_is_opened(pane, qtbot, path):
    view = pane.view
    view.close_all()
    told = []
    view.module_chosen.connect(told.append)
    view.show_module(path)
    assert selected(view) == path and told == []
    assert (
        not view.viewport()
        .rect()
        .intersected(
            view.mapFromScene(view.node_rect(view.hierarchy.nodes_in(path)[0])).boundingRect()
        )
        .isEmpty()
    )


def test_a_module_of_one_node_is_that_node(pane, graph):
    pane.view.show_module("Net.body.1.1")
    key = selected(pane.view)
    assert key.startswith("#") and graph.nodes[int(key[1:])].op == "relu"
    assert pane.view.selected == int(key[1:])


def test_a_module_that_was_not_called_leaves_nothing_selected(pane):
    pane.view.show_module("Net.head")
    pane.view.show_module("Net.unused")
    assert pane.view.selected_box is None


def test_a_module_is_shown_once_the_picture_is_there(qtbot, graph):
    pane = CallsPane()
    qtbot.addWidget(pane)
    view, requests = pane.view, []
    view.layout_requested.connect(lambda *request: requests.append(request))
    view.show_graph(graph)
    view.show_module("Net.body.3")
    while requests:
        visible, direction, style = requests.pop(0)
        view.show_layout(visible, layout_nested(visible.outline, direction, style))
    assert selected(view) == "Net.body.3"


def test_a_box_and_a_node_tell_their_module(pane, qtbot):
    view = pane.view
    view.open_all()
    with qtbot.waitSignal(view.module_chosen) as told:
        view.select_box(view.facts.index_of["Net.body.0"])
    assert told.args == ["Net.body.0"]
    node = view.hierarchy.nodes_in("Net.head")[0]
    with qtbot.waitSignal(view.module_chosen) as told:
        view.select_box(view.facts.index_of[f"#{node}"])
    assert told.args == ["Net.head"]
    with qtbot.waitSignal(view.module_chosen) as told:
        view.select_box(view.facts.index_of["#0"])
    assert told.args == [""]


def test_nothing_offers_to_step(pane):
    view = pane.view
    view.open_all()
    node, menu = view.facts.index_of["#0"], QMenu()
    view.fill_menu(menu, node)
    titles = {action.text() for action in menu.actions()}
    assert "Copy name" in titles
    assert "Run to here" not in titles and "Toggle breakpoint" not in titles
    assert not pane.bar._follow.isVisibleTo(pane)
