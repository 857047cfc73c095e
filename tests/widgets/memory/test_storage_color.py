"""The colour of a storage and its chip: a pill with the number, which one can read."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from msgspec.structs import replace
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QImage, QPainter

from widgets import theme
from widgets.colormap import distinct_colors, oklab
from widgets.memory.storage_color import CHIP_HEIGHT, COLORS, paint_storage_chip, storage_color


def chip(number: int, width: int = 60) -> QImage:
    image = QImage(width, 30, QImage.Format.Format_RGB32)
    image.fill(QColor("#808080"))
    with QPainter(image) as painter:
        painter.setFont(theme.sans_font(11))
        paint_storage_chip(painter, QRectF(0, 0, width, 30), number)
    return image


def colors_of(image: QImage) -> set[str]:
    points = ((x, y) for x in range(image.width()) for y in range(image.height()))
    return {image.pixelColor(x, y).name() for x, y in points}


def extent(image: QImage) -> tuple[int, int]:
    """The pixels of the chip's middle row: its first, and how many."""
    row = [image.pixelColor(x, 15).name() for x in range(image.width())]
    inside = [x for x, color in enumerate(row) if color != "#808080"]
    return inside[0], len(inside)


def luminance(color: QColor) -> float:
    """WCAG 2, relative luminance."""
    linear = [
        channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4
        for channel in (color.red() / 255, color.green() / 255, color.blue() / 255)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize(
    "ground",
    ["#0a5a0a", "#0000ff", "#ff0000", "#767676", "#757575", "#78780a", "#ffffff", "#000000",
     "#0a0a0a", "#5a0a78", "#00a000", "#8c0a0a"],
)  # fmt: skip
def test_the_number_has_the_better_contrast(qapp, ground) -> None:
    theme.apply(qapp, replace(theme.LIGHT, series=(ground,)))
    shade = luminance(QColor(ground))
    on_white, on_black = 1.05 / (shade + 0.05), (shade + 0.05) / 0.05
    seen = colors_of(chip(1)) - {ground}
    better, worse = ("#ffffff", "#000000") if on_white > on_black else ("#000000", "#ffffff")
    assert better in seen and worse not in seen


@pytest.mark.parametrize("ground", [theme.LIGHT, theme.DARK])
def test_many_storages_have_colours_of_their_own(qapp, ground) -> None:
    theme.apply(qapp, ground)
    names = [storage_color(number).name() for number in range(1, COLORS + 1)]
    assert names[: len(ground.series)] == list(ground.series)
    rgb = np.array([(c.red(), c.green(), c.blue()) for c in map(QColor, names)], np.uint8)
    lab = oklab(rgb)
    own = len(ground.series)  # of these a person has chosen the gaps
    for count, least in ((16, 0.08), (COLORS, 0.04)):
        pairs = itertools.combinations(range(count), 2)
        gaps = [np.linalg.norm(lab[a] - lab[b]) for a, b in pairs if b >= own]
        assert min(gaps) > least
    assert storage_color(COLORS + 1) == storage_color(1)


def test_the_chip_is_as_wide_as_its_number_and_never_wider_than_its_place(qapp) -> None:
    first, narrow = extent(chip(1))
    assert narrow == pytest.approx(1.5 * CHIP_HEIGHT, abs=2) and first == (60 - narrow) // 2
    _, wide = extent(chip(123))
    assert narrow < wide < 60
    assert extent(chip(1234567890)) == (0, 60)
    image = chip(1)
    column = [image.pixelColor(30, y).name() for y in range(30)]
    assert len([color for color in column if color != "#808080"]) == CHIP_HEIGHT


@pytest.mark.parametrize("colors", [theme.LIGHT, theme.DARK], ids=lambda colors: colors.name)
def test_the_colours_that_are_added_are_as_strong_as_those_before(colors) -> None:
    names = distinct_colors(colors.series, colors.surface, 40)[len(colors.series) :]
    rgb = np.array([[int(name[at : at + 2], 16) for at in (1, 3, 5)] for name in names], np.uint8)
    lab = oklab(rgb)
    strength = np.hypot(lab[:, 1], lab[:, 2])
    assert ((strength > 0.07) & (strength < 0.21)).all()
    assert ((lab[:, 0] > 0.34) & (lab[:, 0] < 0.91)).all()
