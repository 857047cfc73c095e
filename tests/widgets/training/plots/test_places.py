"""Where plots stand in the grid of a run."""

from __future__ import annotations

import pytest

from widgets.training.plots.places import UNITS, columns_in, places


@pytest.mark.parametrize("columns", [1, 2, 3])
@pytest.mark.parametrize("heads", [1, 2])
def test_each_row_is_filled_and_no_plot_covers_another(heads: int, columns: int) -> None:
    for count in range(heads, 14):
        cells = [
            (place.row, column)
            for place in places(count, heads, columns)
            for column in range(place.column, place.column + place.units)
        ]
        assert len(set(cells)) == len(cells) == UNITS * len({row for row, _ in cells})


def test_the_first_plots_have_rows_of_their_own_and_twice_the_height() -> None:
    found = places(7, 2, 3)
    assert [(place.row, place.units) for place in found] == [
        (0, 3), (0, 3), (1, 2), (1, 2), (1, 2), (2, 3), (2, 3),
    ]  # fmt: skip
    assert [place.stretch for place in found] == [2, 2, 1, 1, 1, 1, 1]
    assert [place.row for place in places(4, 2, 1)] == [0, 1, 2, 3]
    assert [place.units for place in places(3, 1, 2)] == [6, 3, 3]


def test_a_third_column_needs_wider_plots_than_a_second() -> None:
    widths = (407, 408, 975, 976)
    assert [columns_in(width, 200, 8) for width in widths] == [1, 2, 2, 3]
    assert columns_in(1200, 400, 8) == 2
