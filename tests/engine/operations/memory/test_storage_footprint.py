"""Element -> cell -> element, against numpy's own strided views."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.operations.memory.footprint import Footprint, contiguous_strides, explain_contiguity


@st.composite
def footprints(draw) -> Footprint:
    ndim = draw(st.integers(0, 4))
    shape = tuple(draw(st.lists(st.integers(0, 4), min_size=ndim, max_size=ndim)))
    strides = tuple(draw(st.lists(st.integers(0, 9), min_size=ndim, max_size=ndim)))
    return Footprint(shape, strides, draw(st.integers(0, 7)))


def cells_by_numpy(print_: Footprint) -> np.ndarray:
    """The cell of each element: a strided view of 0, 1, 2, ..."""
    storage = np.arange(print_.end + 20)
    strides = tuple(s * storage.itemsize for s in print_.strides)
    return np.lib.stride_tricks.as_strided(storage[print_.offset :], print_.shape, strides)


@settings(max_examples=400)
@given(footprints())
def test_elements_and_cells_agree_with_numpy_both_ways(print_: Footprint) -> None:
    cells = cells_by_numpy(print_)
    for index in np.ndindex(print_.shape):
        assert print_.cell_of(index) == cells[index]
        assert index in set(print_.elements_at(print_.cell_of(index)))
    for cell in range(print_.end + 5):
        expected = {tuple(index) for index in np.argwhere(cells == cell).tolist()}
        found = list(print_.elements_at(cell))
        assert len(found) == len(set(found))
        assert set(found) == expected
        assert print_.count_at(cell, 99) == min(len(expected), 99)


@settings(max_examples=400)
@given(footprints())
def test_contiguity_is_torchs(print_: Footprint) -> None:
    t = torch.zeros(print_.end + 200).as_strided(print_.shape, print_.strides, print_.offset)
    told = explain_contiguity(print_, t.element_size())
    assert told.is_contiguous == t.is_contiguous()
    assert told.expected == contiguous_strides(print_.shape) == torch.empty(print_.shape).stride()
    copy = t.contiguous()
    copied = 0 if copy.data_ptr() == t.data_ptr() else copy.untyped_storage().nbytes()
    assert told.copy_bytes == copied


def test_a_cell_of_two_stretched_dimensions_holds_every_element_over_them() -> None:
    found = list(Footprint((2, 3, 2), (0, 0, 1)).elements_at(1))
    assert found == [(i, j, 1) for i in range(2) for j in range(3)]


def test_positions_count_row_by_row() -> None:
    t = torch.arange(24).view(2, 3, 4)
    print_ = Footprint((2, 3, 4), (12, 4, 1))
    for index in np.ndindex(2, 3, 4):
        assert print_.position_of(index) == t[index]


@pytest.mark.parametrize(
    ("t", "dim", "words"),
    [
        (torch.zeros(3, 4).T, 1, "neighbours in dim 1 are 4 cells apart"),
        (torch.zeros(3, 1).expand(3, 4), 1, "stride 0"),
        (torch.zeros(6, 8)[:, :4], 0, "dim 0 has stride 8; row by row it would be 4"),
        (torch.zeros(2, 3, 4).transpose(0, 1), 1, "dim 1 has stride 12; row by row it would be 4"),
    ],
)
def test_the_dimension_that_breaks_the_order_is_named(t, dim, words) -> None:
    told = explain_contiguity(
        Footprint(tuple(t.shape), t.stride(), t.storage_offset()), t.element_size()
    )
    assert told.breaking_dim == dim
    assert words in told.text


def test_an_index_that_is_not_there_is_refused() -> None:
    print_ = Footprint((2, 3), (3, 1))
    for index in ((2, 0), (0, -1), (1,), (0, 0, 0)):
        with pytest.raises(IndexError):
            print_.cell_of(index)


def test_a_search_ends_where_many_strides_interlock() -> None:
    print_ = Footprint((400, 400, 400, 400), (15, 14, 13, 1000003))
    assert print_.count_at(print_.end // 2 + 1, 99) <= 99  # ends, whatever it finds


def test_a_cell_of_a_huge_tensor_is_found_at_once() -> None:
    print_ = Footprint((1000, 1000, 1000), (1_000_000, 1000, 1))
    assert list(print_.elements_at(123_456_789)) == [(123, 456, 789)]
    expanded = Footprint((10**9, 2), (0, 1))
    assert expanded.count_at(1, 99) == 99
