"""The selection: what it tells, what it remembers, and what it forgets."""

from __future__ import annotations

import pytest

from app.selection.references import Blocks, Call, Element, Module, Node
from app.selection.selection import MAX_REMEMBERED, Selection

A, B, C = Blocks(("a",)), Module("b"), Element("c", (1,))


@pytest.fixture
def selection(qtbot):
    return Selection()


def test_a_choice_is_told_once(selection):
    told: list = []
    selection.changed.connect(told.append)
    selection.choose(A, "canvas")
    selection.choose(Blocks(("a",)), "graph")
    selection.choose(None)
    selection.choose(None)
    assert told == [A, None] and selection.current is None


def test_it_goes_back_and_forward_to_the_view_of_each_choice(selection):
    returned: list = []
    selection.returned.connect(lambda view, reference: returned.append((view, reference)))
    for view, reference in (("canvas", A), ("structure", B), ("values", C)):
        selection.choose(reference, view)
    selection.back()
    selection.back()
    selection.back()
    assert selection.current == A
    selection.forward()
    assert returned == [("structure", B), ("canvas", A), ("structure", B)]
    selection.choose(A, "canvas")  # what could be gone forward to is forgotten
    selection.forward()
    assert selection.current == A
    selection.back()
    assert selection.current == B


def test_it_goes_back_from_another_view_to_the_one_of_the_choice(selection):
    returned: list = []
    selection.returned.connect(lambda view, reference: returned.append((view, reference)))
    selection.look_in("values")  # nothing is selected
    selection.choose(A, "canvas")
    selection.choose(B, "structure")
    selection.look_in("values")
    assert selection.current == B
    selection.back()
    assert selection.current == B
    selection.back()
    selection.forward()
    selection.forward()
    assert returned == [("structure", B), ("canvas", A), ("structure", B), ("values", B)]


def test_after_nothing_is_selected_back_goes_to_the_newest_choice(selection):
    selection.choose(A)
    selection.choose(B)
    selection.choose(None)
    selection.back()
    assert selection.current == B
    selection.back()
    assert selection.current == A


def test_steps_along_a_trace_are_one_choice(selection):
    selection.choose(A)
    selection.choose(Call(3, 1), "trace")
    selection.choose(Call(4, 1), "trace", step=True)
    selection.choose(Call(5, 1), "trace", step=True)
    selection.back()
    assert selection.current == A
    selection.forward()
    assert selection.current == Call(5, 1)


def test_nodes_and_calls_go_with_their_engine(selection):
    selection.choose(A)
    selection.choose(Node(1, 7))
    selection.choose(B)
    selection.choose(Call(2, 8))
    selection.end_engine()
    assert selection.current is None
    selection.back()
    assert selection.current == B
    selection.back()
    assert selection.current == A


def test_what_no_engine_numbered_stays_selected_when_it_ends(selection):
    selection.choose(Node(1, 7))
    selection.choose(B)
    told: list = []
    selection.changed.connect(told.append)
    selection.end_engine()
    assert selection.current == B and told == []


def test_a_new_project_knows_no_earlier_choice_and_memory_has_a_bound(selection):
    for number in range(MAX_REMEMBERED + 50):
        selection.choose(Element("x", (number,)))
    for _ in range(MAX_REMEMBERED + 50):
        selection.back()
    assert selection.current == Element("x", (50,))
    selection.forget()
    selection.forward()
    selection.back()
    assert selection.current is None
