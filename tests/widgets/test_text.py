"""Numbers, sizes, shapes and times as text."""

from __future__ import annotations

import math

import pytest

from widgets.text import (
    format_bytes,
    format_duration,
    format_number,
    format_percent,
    format_shape,
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "–"),
        (1234567, "1,234,567"),
        (0.0, "0"),
        (-0.0, "0"),
        (0.5, "0.5"),
        (-0.123456, "-0.1235"),
        (1234.56, "1,235"),
        (99999.6, "100,000"),
        (999999.9, "1e+06"),
        (2.3456e7, "2.346e+07"),
        (0.0001, "0.0001"),
        (0.00001234, "1.234e-05"),
        (0.000099999, "0.0001"),
        (9.99996, "10"),
        (1e-30, "1e-30"),
        (math.nan, "nan"),
        (-math.inf, "-inf"),
    ],
)
def test_format_number(value: float | None, expected: str) -> None:
    assert format_number(value) == expected


def test_format_number_keeps_the_digits_asked_for() -> None:
    assert format_number(0.123456, 2) == "0.12"
    assert format_number(1e9, 1) == "1e+09"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (10 * 1024, "10 KiB"),
        (23.44 * 2**20, "23.4 MiB"),
        (512 * 2**20, "512 MiB"),
        (2**20 - 1, "1 MiB"),
        (139 * 2**30, "139 GiB"),
        (3 * 2**60, "3145728 TiB"),
        (None, "–"),
    ],
)
def test_format_bytes(value: float | None, expected: str) -> None:
    assert format_bytes(value) == expected


def test_format_shape() -> None:
    assert format_shape(("B", 3, 8, 8)) == "(B, 3, 8, 8)"
    assert format_shape(()) == "()"
    assert format_shape((5,)) == "(5,)"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "0 s"),
        (0.0032, "3.2 ms"),
        (0.8, "0.8 s"),
        (9.97, "10 s"),
        (42.2, "42 s"),
        (185, "3 min 5 s"),
        (59.7, "1 min 0 s"),
        (3719, "1 h 2 min"),
        (7199.9, "2 h 0 min"),
        (math.inf, "–"),
        (None, "–"),
    ],
)
def test_format_duration(value: float | None, expected: str) -> None:
    assert format_duration(value) == expected


def test_format_percent() -> None:
    assert format_percent(0.9749) == "97.5 %"
    assert format_percent(math.nan) == "–"
    assert format_percent(None) == "–"
