"""The bar over both passes: what it offers at each place, and its words."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.widgets.backward.autograd_snapshots import GRAPH, backward, forward
from widgets.autograd.pass_bar import PassBar, next_words, position_words

LENGTH = len(GRAPH.plan)


@pytest.fixture
def bar(qtbot) -> PassBar:
    made = PassBar()
    qtbot.addWidget(made)
    made.show_ready(True)
    return made


def offered(bar: PassBar) -> set[str]:
    names = ("start", "back", "step", "run", "compare")
    return {name for name in names if getattr(bar, name).isEnabled()}


def test_before_the_engine_is_there_nothing_is_offered(bar) -> None:
    bar.show_forward(forward(2))
    bar.show_ready(False)
    assert offered(bar) == set()


@pytest.mark.parametrize(("position", "back"), [(0, set()), (1, {"back"}), (4, {"back"})])
def test_forward_goes_back_from_the_first_block_on(bar, position, back) -> None:
    bar.show_forward(forward(position))
    assert offered(bar) == {"start", "step", "run"} | back


@pytest.mark.parametrize(
    ("position", "offers"),
    [
        (0, {"start", "step", "run"}),
        (1, {"start", "back", "step", "run"}),
        (LENGTH, {"start", "back", "compare"}),
    ],
)
def test_backward_ends_in_a_comparison(bar, position, offers) -> None:
    bar.show_backward(GRAPH, backward(position))
    assert offered(bar) == offers
    bar.show_backward(GRAPH, replace(backward(position), real_engine=True))
    assert offered(bar) == offers - {"back"}


def test_before_its_first_node_backward_goes_back_into_forward(bar) -> None:
    bar.show_forward(forward(4))
    bar.show_backward(GRAPH, backward(0))
    assert "back" in offered(bar)
    bar.show_backward(replace(GRAPH, root="y"), backward(0))  # a graph of the console has none
    assert "back" not in offered(bar)


def test_where_the_pass_stands_in_words() -> None:
    assert position_words(None, None, 0) == ""
    assert position_words(forward(3), None, 0) == "Forward: 3 of 4 blocks"
    assert position_words(forward(4), backward(3), 1234) == "Backward: 3 of 1,234 nodes"


def test_what_comes_next_in_words() -> None:
    assert next_words(forward(2), "relu1") == (
        "2 of 4 blocks have run.\n\nNext: relu1. Step runs it, Run goes on to the loss."
    )
    done = "Next: backward. Step reads the graph that autograd recorded; each further step runs"
    assert next_words(forward(4)) == (f"Forward is done. The loss is 0.1875.\n\n{done} one node.")
    assert next_words(replace(forward(4), loss=None)) == f"Forward is done. \n\n{done} one node."


def test_more_is_told_and_shows_which_way_it_goes(bar) -> None:
    told = []
    bar.more_toggled.connect(told.append)
    closed = bar.more.icon().pixmap(16, 16).toImage()
    bar.show_more(True)
    opened = bar.more.icon().pixmap(16, 16).toImage()
    assert opened != closed
    bar.more.click()
    assert told == [True, False]
    assert bar.more.icon().pixmap(16, 16).toImage() == closed
