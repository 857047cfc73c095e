"""Boxes within boxes laid out: nothing overlaps, no line runs through a box that is not its own."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.engine.autograd.recorded_graphs import recorded, snapshot
from tests.engine.autograd.shaped_models import chain, gpt2, resnet50, unrolled
from tests.widgets.random_hierarchies import opened
from widgets.autograd.boxes import NestedLayout, VisibleGraph
from widgets.autograd.hierarchy import Hierarchy
from widgets.autograd.layers import Level, LevelEdge, place_level
from widgets.autograd.nested_layout import TITLE_HEIGHT, layout_nested

DIRECTIONS = st.sampled_from(("backward", "forward"))
STYLES = st.sampled_from(("smooth", "orthogonal"))


def ancestors(visible: VisibleGraph, box: int) -> set[int]:
    found: set[int] = set()
    parent = visible.boxes[box].parent
    while parent is not None:
        found.add(parent)
        parent = visible.boxes[parent].parent
    return found


def samples(layout: NestedLayout, link: int) -> NDArray[np.float64]:
    """Points along a link's way, close to each other."""
    points = layout.route(link)
    steps = np.linspace(0, 1, 24)[:, None]
    if not layout.curved:
        return np.concatenate([a + (b - a) * steps for a, b in pairwise(points)])
    pieces = zip(points[:-1:3], points[1::3], points[2::3], points[3::3], strict=True)
    return np.concatenate(
        [
            (1 - steps) ** 3 * a
            + 3 * (1 - steps) ** 2 * steps * b
            + 3 * (1 - steps) * steps**2 * c
            + steps**3 * d
            for a, b, c, d in pieces
        ]
    )


def on_border(rect: NDArray[np.float64], point: NDArray[np.float64]) -> bool:
    """Whether a point lies on the upper or lower border of a box."""
    x, y, width, height = rect
    return bool(x <= point[0] <= x + width) and point[1] in (y, y + height)


@given(opened(), DIRECTIONS, STYLES)
def test_layout_of_any_graph(drawn, direction, style) -> None:
    hierarchy, open_keys = drawn
    visible = hierarchy.visible(open_keys)
    layout = layout_nested(visible, direction, style)
    assert layout.curved == (style == "smooth")
    rects = layout.rects
    low, high = rects[:, :2], rects[:, :2] + rects[:, 2:]

    for index, box in enumerate(visible.boxes):
        if box.parent is None:
            assert (low[index] >= 0).all() and (high[index] <= layout.size).all()
        else:  # within the parent, below its title
            assert (low[index] >= low[box.parent] + (0, TITLE_HEIGHT)).all()
            assert (high[index] <= high[box.parent]).all()
        for other in range(index):
            if visible.boxes[other].parent == box.parent:
                apart = (high[index] <= low[other]) | (high[other] <= low[index])
                assert apart.any(), (box.key, visible.boxes[other].key)

    for number, link in enumerate(visible.links):
        route = layout.route(number)
        assert on_border(rects[link.source], route[0])
        assert on_border(rects[link.target], route[-1])
        assert len(route) % 3 == 1 or not layout.curved
        if not layout.curved:  # each piece is upright or level
            assert ((np.diff(route, axis=0) == 0).any(axis=1)).all()
        points = samples(layout, number)
        around = ancestors(visible, link.source) | ancestors(visible, link.target)
        for other in set(range(len(visible.boxes))) - around:
            # Strictly within: along a border is beside it.
            inside = (points > low[other] + 0.5) & (points < high[other] - 0.5)
            assert not inside.all(axis=1).any(), (link, visible.boxes[other].key)


@given(opened(), STYLES)
def test_forward_is_backward_upside_down(drawn, style) -> None:
    hierarchy, open_keys = drawn
    visible = hierarchy.visible(open_keys)
    back, forth = (layout_nested(visible, d, style) for d in ("backward", "forward"))
    assert back.size == forth.size
    for link in visible.links:
        towards = back.rects[link.target, 1] - back.rects[link.source, 1]
        assert towards * (forth.rects[link.target, 1] - forth.rects[link.source, 1]) < 0


@pytest.mark.parametrize(
    ("model", "alike"),
    [
        (gpt2, ("net.transformer.h.3", "net.transformer.h.7")),
        (resnet50, ("net.layer3.2", "net.layer3.4")),
    ],
)
def test_whole_models_have_the_root_on_top_and_repeats_alike(model, alike) -> None:
    hierarchy = Hierarchy(recorded(*model()))
    visible = hierarchy.visible(hierarchy.open_all())
    layout = layout_nested(visible)
    for number, link in enumerate(visible.links):
        assert layout.route(number)[0, 1] < layout.rects[link.target, 1]
    place = {box.key: index for index, box in enumerate(visible.boxes)}
    first, second = (
        layout.rects[[i for i in range(len(place)) if place[key] in ancestors(visible, i)]]
        - (*layout.rects[place[key], :2], 0, 0)
        for key in alike
    )
    assert len(first) > 10
    assert (first == second).all()


def test_opened_layers_stand_straight_below_each_other() -> None:
    hierarchy = Hierarchy(recorded(*gpt2()))
    visible = hierarchy.visible(hierarchy.open_all())
    layout = layout_nested(visible)
    lefts = {
        float(layout.rects[i, 0])
        for i, box in enumerate(visible.boxes)
        if box.kind == "module" and box.subtitle == "Block"
    }
    assert max(lefts) - min(lefts) <= 8  # the first layer has no layer to pass its lines on to


def test_the_links_of_a_shared_weight_join_into_one_trunk() -> None:
    hierarchy = Hierarchy(recorded(*unrolled(steps=120)))
    visible = hierarchy.visible(hierarchy.open_all())
    layout = layout_nested(visible)
    assert layout.size[0] < 1_200  # a line for each step would be 14 pixels each
    (weight,) = [i for i, box in enumerate(visible.boxes) if box.title == "weight_hh"]
    entries = {
        tuple(layout.route(i)[-1]) for i, link in enumerate(visible.links) if link.target == weight
    }
    assert len(entries) == 1


def test_a_long_chain_is_laid_out_without_recursion() -> None:
    hierarchy = Hierarchy(snapshot(chain(3_000)))
    layout = layout_nested(hierarchy.visible(hierarchy.open_all()))
    assert len(layout.rects) == 6_000 + 3_000 + 3
    assert layout.size[0] < 400


def test_long_edges_beyond_the_budget_take_a_lane_at_the_side() -> None:
    count = 400
    sizes = ((100.0, 40.0),) * count
    chain_edges = [LevelEdge(i, i + 1, 50, 50) for i in range(count - 1)]
    skips = [LevelEdge(i, count - 1 - i, 50, 50) for i in range(0, count // 2 - 5)]
    placed = place_level(Level(sizes, (*chain_edges, *skips)))
    right = max(x for x, _ in placed.places) + 100
    longest = placed.ways[count - 1]
    assert max(x for x, _ in longest) > right
    assert len(longest) == 4  # out to the lane in one gap, down it, and back in one gap
    assert placed.size[0] < 20_000


def test_layout_of_nothing_and_across_processes() -> None:
    empty = VisibleGraph((), (), np.zeros(0, np.int32))
    layout = layout_nested(empty)
    assert (layout.size, len(layout.rects), layout.starts.tolist()) == ((0.0, 0.0), 0, [0])
    hierarchy = Hierarchy(recorded(*gpt2()))
    visible = hierarchy.visible(frozenset())
    sent = pickle.loads(pickle.dumps(visible))
    assert (layout_nested(sent).rects == layout_nested(visible).rects).all()
