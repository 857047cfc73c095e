"""Boxes within boxes laid out: nothing overlaps, no line runs through a box that is not its own."""

from __future__ import annotations

import pickle
from functools import cache
from itertools import pairwise
from math import inf
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.engine.autograd.recorded_graphs import recorded, snapshot
from tests.engine.autograd.shaped_models import chain, gpt2, resnet50, unrolled
from tests.widgets.graph.random_hierarchies import opened
from widgets.boxes.boxes import NODE_WIDTH, VisibleGraph
from widgets.boxes.hierarchy import Hierarchy
from widgets.layout import columns, layer_graph
from widgets.layout.level import Level, LevelEdge, place_level
from widgets.layout.nested_layout import TITLE_HEIGHT, layout_nested
from widgets.layout.outline import NestedLayout

DIRECTIONS = st.sampled_from(("backward", "forward"))
STYLES = st.sampled_from(("smooth", "orthogonal"))
ROW_WIDTHS = st.sampled_from((inf, 500.0, 0.0))


def fan(count: int, shared: bool = False) -> torch.Tensor:
    """A sum of many parameters, or of as many products of one."""
    ones = [torch.ones(2, requires_grad=True) for _ in range(1 if shared else count)]
    return torch.stack([ones[0] * i for i in range(count)] if shared else ones).sum()


GRAPHS = {
    "GPT-2": lambda: recorded(*gpt2()),
    "60 layers": lambda: recorded(*gpt2(60)),
    "ResNet-50": lambda: recorded(*resnet50()),
    "chain": lambda: snapshot(chain(1_000)),
    "unrolled": lambda: recorded(*unrolled(steps=200)),
    "fan": lambda: snapshot(fan(1_000)),
    "fan out and in": lambda: snapshot(fan(1_000, shared=True)),
}


@cache
def hierarchy_of(name: str) -> Hierarchy:
    """The boxes of one of GRAPHS, recorded once for all tests."""
    return Hierarchy(GRAPHS[name]())


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


@given(opened(), DIRECTIONS, STYLES, st.sampled_from((inf, 400.0, 1.0)), ROW_WIDTHS)
def test_layout_of_any_graph(drawn, direction, style, column_height, row_width) -> None:
    hierarchy, open_keys = drawn
    visible = hierarchy.visible(open_keys)
    # Columns and rows also where they are not needed: any level is broken at any place.
    in_pieces = patch.multiple(columns, COLUMN_HEIGHT=column_height, SLENDER=0.5, WIDEST=inf)
    with in_pieces, patch.multiple(layer_graph, WIDE_ROW=row_width, MANY_IN_ROW=2):
        layout = layout_nested(visible.outline, direction, style)
    assert layout.curved == (style == "smooth")
    rects = layout.rects
    low, high = rects[:, :2], rects[:, :2] + rects[:, 2:]

    parents = np.array([-1 if box.parent is None else box.parent for box in visible.boxes])
    top, inner = parents < 0, parents >= 0
    assert (low[top] >= 0).all() and (high[top] <= layout.size).all()
    assert (low[inner] >= low[parents[inner]] + (0, TITLE_HEIGHT)).all()  # below the title
    assert (high[inner] <= high[parents[inner]]).all()
    siblings = (parents[:, None] == parents) & ~np.eye(len(parents), dtype=bool)
    apart = np.any((high[:, None] <= low) | (high <= low[:, None]), axis=2)
    assert apart[siblings].all()

    for number, link in enumerate(visible.links):
        route = layout.route(number)
        assert on_border(rects[link.source], route[0])
        assert on_border(rects[link.target], route[-1])
        assert len(route) % 3 == 1 or not layout.curved
        if not layout.curved:  # each piece is upright or level
            assert ((np.diff(route, axis=0) == 0).any(axis=1)).all()
        points = samples(layout, number)
        around = ancestors(visible, link.source) | ancestors(visible, link.target)
        others = [index for index in range(len(visible.boxes)) if index not in around]
        # Strictly within: along a border is beside it.
        inside = (points[:, None] > low[others] + 0.5) & (points[:, None] < high[others] - 0.5)
        assert not inside.all(axis=2).any(), link


@given(opened(), STYLES)
def test_forward_is_backward_upside_down(drawn, style) -> None:
    hierarchy, open_keys = drawn
    visible = hierarchy.visible(open_keys)
    back, forth = (layout_nested(visible.outline, d, style) for d in ("backward", "forward"))
    if back.size[1] > columns.COLUMN_HEIGHT:
        return  # each has its own columns
    assert back.size == forth.size
    for link in visible.links:
        towards = back.rects[link.target, 1] - back.rects[link.source, 1]
        assert towards * (forth.rects[link.target, 1] - forth.rects[link.source, 1]) < 0


@pytest.mark.parametrize(
    ("name", "alike"),
    [
        ("GPT-2", ("net.transformer.h.3", "net.transformer.h.7")),
        ("ResNet-50", ("net.layer3.2", "net.layer3.4")),
    ],
)
def test_whole_models_have_the_root_on_top_and_repeats_alike(name, alike) -> None:
    hierarchy = hierarchy_of(name)
    visible = hierarchy.visible(hierarchy.open_all())
    layout = layout_nested(visible.outline)
    for number, link in enumerate(visible.links):
        below, right = layout.rects[link.target, 1::-1] > layout.route(number)[0, ::-1]
        assert below or right  # in a later column
    place = {box.key: index for index, box in enumerate(visible.boxes)}
    first, second = (
        layout.rects[[i for i in range(len(place)) if place[key] in ancestors(visible, i)]]
        - (*layout.rects[place[key], :2], 0, 0)
        for key in alike
    )
    assert len(first) > 10
    assert (first == second).all()


def test_opened_layers_stand_straight_below_each_other_in_columns() -> None:
    hierarchy = hierarchy_of("GPT-2")
    visible = hierarchy.visible(hierarchy.open_all())
    layout = layout_nested(visible.outline)
    layers = [i for i, box in enumerate(visible.boxes) if box.subtitle == "Block"]
    corners = layout.rects[layers, :2]
    columns: list[list[NDArray[np.float64]]] = [[corners[0]]]
    for before, corner in pairwise(corners):
        if corner[1] > before[1]:
            columns[-1].append(corner)
        else:
            columns.append([corner])
    assert len(columns) > 1
    assert len({len(column) for column in columns[:-1]}) == 1
    for column in columns:
        lefts, tops = np.array(column).T
        assert np.ptp(lefts) <= 8  # the first layer has no layer to pass its lines on to
        assert tops[0] == corners[0, 1]
    assert (np.diff([column[0][0] for column in columns]) > layout.rects[layers[0], 2]).all()


@pytest.mark.parametrize("direction", ["backward", "forward"])
@pytest.mark.parametrize("name", GRAPHS)
def test_a_model_opened_wholly_has_about_the_shape_of_a_window(name, direction) -> None:
    hierarchy = hierarchy_of(name)
    width, height = layout_nested(hierarchy.visible(hierarchy.open_all()).outline, direction).size
    assert 0.5 < width / height < 2 * columns.WIDEST


def test_to_open_a_box_moves_nothing_that_comes_before_it() -> None:
    hierarchy = hierarchy_of("chain")
    (fold,) = (box.key for box in hierarchy.visible(frozenset()).boxes if box.kind == "repeat")
    closed = hierarchy.visible(frozenset({fold}))
    key = f"{fold}/500"
    opened_one = hierarchy.visible(frozenset({fold, key}))
    place = [box.key for box in closed.boxes].index(key)
    before, after = layout_nested(closed.outline), layout_nested(opened_one.outline)
    moved = after.rects[: place + 1, :2] - before.rects[: place + 1, :2]
    assert (moved[:, 1] == 0).all()
    # An open box is wider than a closed one: its own column is centred anew.
    assert np.abs(moved[:, 0]).max() < NODE_WIDTH / 4
    assert (moved[:, 0] != 0).sum() < place / 2


@pytest.mark.parametrize(
    ("count", "width", "whole"),
    [(20, 100, True), (40, 1000, True), (40, 900, False), (40, 100, False)],
)
def test_only_a_level_that_is_high_and_slender_is_broken_into_columns(count, width, whole) -> None:
    edges = tuple(LevelEdge(i, i + 1, width / 2, width / 2) for i in range(count - 1))
    placed = place_level(Level(((float(width), 40.0),) * count, edges))
    height = placed.size[1]
    assert whole == (height <= columns.COLUMN_HEIGHT or height <= columns.SLENDER * width)
    assert (columns.in_columns(placed) is placed) == whole


def test_lines_in_columns_keep_their_order_and_do_not_cross_on_the_way() -> None:
    """Two chains side by side in columns: each line of one goes left of the other's or above."""
    pairs = 30
    sizes = ((100.0, 40.0),) * (2 * pairs)
    edges = tuple(LevelEdge(i, i + 2, 50, 50) for i in range(2 * pairs - 2))
    placed = place_level(Level(sizes, edges))
    with patch.multiple(columns, COLUMN_HEIGHT=500.0, WIDEST=inf):
        wrapped = columns.in_columns(placed)
    turning = [way for way in wrapped.ways if len(way) > 2]
    assert turning and len(turning) % 2 == 0
    for left, right in zip(turning[::2], turning[1::2], strict=True):
        assert not crossings(left, right)


def crossings(one: tuple, other: tuple) -> int:
    """How often two lines of upright and level pieces cross."""

    def crosses(a: tuple, b: tuple, c: tuple, d: tuple) -> bool:
        upright = min(c[0], d[0]) < a[0] < max(c[0], d[0])
        return (
            a[0] == b[0] and c[1] == d[1] and upright and min(a[1], b[1]) < c[1] < max(a[1], b[1])
        )

    return sum(
        crosses(*first, *second) or crosses(*second, *first)
        for first in pairwise(one)
        for second in pairwise(other)
    )


def test_the_links_of_a_shared_weight_join_into_one_trunk() -> None:
    hierarchy = Hierarchy(recorded(*unrolled(steps=120)))
    visible = hierarchy.visible(hierarchy.open_all())
    with patch.object(columns, "COLUMN_HEIGHT", inf):
        layout = layout_nested(visible.outline)
    assert layout.size[0] < 1_200  # a line for each step would be 14 pixels each
    (weight,) = [i for i, box in enumerate(visible.boxes) if box.title == "weight_hh"]
    entries = {
        tuple(layout.route(i)[-1]) for i, link in enumerate(visible.links) if link.target == weight
    }
    assert len(entries) == 1


def test_a_long_chain_is_laid_out_without_recursion() -> None:
    hierarchy = Hierarchy(snapshot(chain(3_000)))
    layout = layout_nested(hierarchy.visible(hierarchy.open_all()).outline)
    assert len(layout.rects) == 6_000 + 3_000 + 3
    assert max(layout.size) < 20_000


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


def test_a_wide_layer_takes_rows_on_both_sides_of_its_trunk() -> None:
    count = 300
    sizes = ((100.0, 40.0),) * (count + 2)
    edges = [LevelEdge(0, i, 50, 50) for i in range(1, count + 1)]
    edges += [LevelEdge(i, count + 1, 50, 50) for i in range(1, count + 1)]
    placed = place_level(Level(sizes, tuple(edges)))
    rows: dict[float, list[float]] = {}
    for x, y in placed.places[1:-1]:
        rows.setdefault(y, []).append(x)
    full = list(rows.values())[:-1]
    assert len(rows) > 5 and len({len(row) for row in full}) == 1
    middle = placed.places[0][0]
    for row in rows.values():
        assert abs((row[0] + row[-1]) / 2 - middle) < 50
    for way in placed.ways:  # straight down the trunk, then to the side once
        assert len({x for x, _ in way}) <= 3


def test_a_box_wider_than_a_row_may_be_stays_below_what_leads_to_it() -> None:
    sizes = ((200.0, 40.0), (9_000.0, 400.0), (200.0, 40.0))
    edges = (LevelEdge(0, 1, 100, 50), LevelEdge(1, 2, 50, 100), LevelEdge(0, 2, 20, 20))
    placed = place_level(Level(sizes, edges))
    (above, _), (wide, _), (below, _) = placed.places
    assert above + 100 == wide + 50 == below + 100


def test_what_joins_a_trunk_does_not_go_along_it_once_more() -> None:
    """Else 2,000 steps of an RNN would have millions of places to go through."""
    count = 500
    sizes = ((100.0, 40.0),) * (count + 1)
    steps = [LevelEdge(i, i + 1, 50, 50) for i in range(count - 1)]
    shared = [LevelEdge(i, count, 50, 50) for i in range(count)]
    graph = layer_graph.LayerGraph(Level(sizes, (*steps, *shared)))
    assert sum(len(chain) for chain in graph.chains if chain) < 3 * count
    placed = place_level(graph.level)
    for way in placed.ways[count - 1 :]:  # all of them lead there none the less
        assert way[-1] == placed.ways[-1][-1]


def test_layout_of_nothing_and_across_processes() -> None:
    empty = VisibleGraph((), (), np.zeros(0, np.int32))
    layout = layout_nested(empty.outline)
    assert (layout.size, len(layout.rects), layout.starts.tolist()) == ((0.0, 0.0), 0, [0])
    hierarchy = hierarchy_of("GPT-2")
    visible = hierarchy.visible(frozenset())
    sent = pickle.loads(pickle.dumps(visible))
    assert (layout_nested(sent.outline).rects == layout_nested(visible.outline).rects).all()
