"""Arrange: a model's blocks on the grid and apart, its wires forward and straight if they can."""

from __future__ import annotations

import random
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.project import catalogue, files
from engine.project.document import Block, Model, Wire, replace
from tests.widgets.small_model import SMALL_MODEL, make_block, make_wire
from widgets.layout import BLOCK_WIDTH, GRID, LAYER_GAP, PORT_LINE, block_size, port_y
from widgets.layout.model_layout import layout_model

Places = dict[str, tuple[float, float]]
KINDS = ("nn.Linear", "torch.add", "torch.cat")
TEMPLATES = sorted(Path("assets/templates").glob("*.tlab"))


def overlapping(model: Model, places: Places) -> list[tuple[str, str]]:
    sides = {block.id: (*places[block.id], *block_size(block)) for block in model.blocks}
    return [
        (one, other)
        for (one, a), (other, b) in combinations(sides.items(), 2)
        if a[0] < b[0] + b[2] and b[0] < a[0] + a[2] and a[1] < b[1] + b[3] and b[1] < a[1] + a[3]
    ]


def port_place(model: Model, places: Places, block_id: str, port: str) -> float:
    """How far down in the picture a port stands."""
    block = next(each for each in model.blocks if each.id == block_id)
    for ports in catalogue.ports(block):
        names = [each.name for each in ports]
        if port in names:
            return places[block_id][1] + port_y(names.index(port), len(names))
    raise KeyError(port)


@st.composite
def models(draw) -> Model:
    """Blocks in any order, and wires among them that may run in loops, twice, or to themselves."""
    count = draw(st.integers(1, 14))
    blocks = []
    for index in range(count):
        blocks.append(make_block(f"b{index}", draw(st.sampled_from(KINDS)), 0, 0))
    ends = st.tuples(*[st.integers(0, count - 1)] * 2)
    wires = []
    for source, target in draw(st.lists(ends, max_size=2 * count)):
        inputs, _ = catalogue.ports(blocks[target])
        port = draw(st.sampled_from([each.name for each in inputs]))
        wires.append(Wire(f"b{source}", "output", f"b{target}", port))
    return Model(tuple(draw(st.permutations(blocks))), tuple(wires))


@given(models(), st.sampled_from((None, (900.0, 600.0))))
def test_blocks_of_any_model_lie_on_the_grid_and_apart(model: Model, room) -> None:
    places = layout_model(model, room)
    assert places.keys() == {block.id for block in model.blocks}
    assert not overlapping(model, places)
    assert all(x % GRID == 0 and y % GRID == 0 for x, y in places.values())
    assert min(x for x, _ in places.values()) == min(y for _, y in places.values()) == 0
    assert places == layout_model(model, room)


@given(models())
def test_wires_run_forward_but_for_one_of_each_loop(model: Model) -> None:
    forward = [w for w in model.wires if int(w.source[1:]) < int(w.target[1:])]
    straight = replace(model, wires=tuple(forward))
    places = layout_model(straight)
    width = {block.id: block_size(block)[0] for block in model.blocks}
    for wire in forward:
        assert places[wire.source][0] + width[wire.source] < places[wire.target][0]
    looped = layout_model(model)
    for wire in forward:
        back = [w for w in model.wires if w not in forward]
        ahead = looped[wire.source][0] + width[wire.source] < looped[wire.target][0]
        assert ahead or back, "without a wire back there is no loop to break"


@given(models())
def test_a_wire_twice_and_a_wire_to_its_own_block_change_nothing(model: Model) -> None:
    once = replace(model, wires=tuple(dict.fromkeys(model.wires)))
    own = tuple(Wire(b.id, "output", b.id, catalogue.ports(b)[0][0].name) for b in model.blocks)
    assert layout_model(replace(once, wires=once.wires + own)) == layout_model(
        replace(once, wires=tuple(w for w in once.wires if w.source != w.target))
    )


def test_a_chain_is_one_straight_line() -> None:
    places = layout_model(SMALL_MODEL)
    assert len({places[key][1] for key in ("x", "a", "b", "out")}) == 1
    assert [places[key][0] for key in ("x", "a", "b", "out")] == [0, 304, 608, 912]


def test_wires_meet_their_own_ports_without_a_bend_wider_than_the_grid() -> None:
    """A block of two inputs hangs so that its first port is in line with what leads there."""
    model = Model(
        (
            make_block("x", "Input", 0, 0, shape=(4,)),
            make_block("a", "nn.Linear", 0, 0),
            make_block("sum", "torch.add", 0, 0),
        ),
        (make_wire("x", "a"), make_wire("a", "sum"), make_wire("x", "sum", "other")),
    )
    places = layout_model(model)
    above = port_place(model, places, "a", "output")
    assert above == places["a"][1] + PORT_LINE
    assert abs(port_place(model, places, "sum", "input") - above) <= GRID / 2


def test_neighbours_leave_room_for_the_shape_on_their_wire() -> None:
    steep = Model(
        (
            make_block("x", "Input", 0, 0, shape=(4,)),
            *(make_block(key, "nn.Linear", 0, 0) for key in "abcd"),
        ),
        tuple(make_wire("x", key) for key in "abcd"),
    )
    for model, room in ((steep, None), (SMALL_MODEL, None), (SMALL_MODEL, (600.0, 600.0))):
        lefts = sorted({x for x, _ in layout_model(model, room).values()})
        assert lefts[1] - lefts[0] - BLOCK_WIDTH >= LAYER_GAP


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_the_blocks_of_a_template_do_so_too(path) -> None:
    model = files.load(path).model
    lefts = sorted({block.x for block in model.blocks})
    assert all(b - a - BLOCK_WIDTH >= LAYER_GAP for a, b in pairwise(lefts))


def test_an_empty_model_has_no_places() -> None:
    assert layout_model(Model()) == {}
    assert layout_model(Model(), room=(800, 600)) == {}


def test_a_block_of_unknown_kind_is_an_error() -> None:
    with pytest.raises(KeyError, match=r"nn\.Ghost"):
        layout_model(Model((Block("a", "nn.Ghost", "a", {}, 0, 0),)))


def test_room_breaks_a_long_model_into_rows() -> None:
    assert layout_model(SMALL_MODEL, room=(4000, 700)) == layout_model(SMALL_MODEL)
    rows = layout_model(SMALL_MODEL, room=(600, 600))
    assert max(x for x, _ in rows.values()) < max(x for x, _ in layout_model(SMALL_MODEL).values())
    assert rows["x"][1] == rows["a"][1] < rows["b"][1] == rows["out"][1]
    assert (rows["x"][0], rows["a"][0]) == (rows["b"][0], rows["out"][0])


def test_a_row_ends_where_the_fewest_wires_go_on() -> None:
    blocks = [make_block(str(i), "torch.add", 0, 0) for i in range(6)]
    chain = [make_wire(str(i), str(i + 1)) for i in range(5)]
    wires = (*chain, make_wire("2", "4", "other"))
    rows = layout_model(Model(tuple(blocks), wires), room=(1000, 700))
    first_row = {key for key, (_, y) in rows.items() if y < 100}
    assert first_row == {"0", "1"}, "a cut after 2 or 3 would cross the skip connection"


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_every_template_is_arranged_into_a_window(path: Path) -> None:
    model = files.load(path).model
    places = layout_model(model, room=(1200.0, 700.0))
    assert not overlapping(model, places)
    across = max(x for x, _ in places.values())
    down = max(y for _, y in places.values())
    assert across < 1_400 and down < 900
    shuffled = list(model.blocks)
    random.Random(0).shuffle(shuffled)
    again = layout_model(replace(model, blocks=tuple(shuffled)), room=(1200.0, 700.0))
    assert not overlapping(model, again)
