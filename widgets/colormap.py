"""Colour maps for numbers: tables of 256 colours, safe for the colour-blind. Colours are named
only here and in `widgets.theme`.

Colours between anchors are mixed in Oklab (B. Ottosson, "A perceptual color space for image
processing", 2020), where equal steps look equally large. The sequential anchors are nine of
viridis (S. van der Walt and N. Smith, 2015, CC0). The diverging map runs from blue through the
theme's background to orange: zero has the colour of the background, the hue shows the sign, and
the contrast shows the magnitude.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from .theme import Theme

_SEQUENTIAL = (
    "#440154",
    "#472d7b",
    "#3b528b",
    "#2c728e",
    "#21918c",
    "#28ae80",
    "#5ec962",
    "#addc30",
    "#fde725",
)
_DIVERGING = {
    "light": ("#1550ab", "#6b9fe0", "#f4f6f9", "#e0975a", "#8f3a00"),
    "dark": ("#a3d5ff", "#4482c6", "#262b35", "#b9742f", "#ffc680"),
}
GROUND_GAP = 0.25
"""How far a colour's lightness in Oklab is from that of the ground at least."""
SIZE = 256
"""Entries in a colour table."""

_TO_LMS = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def sequential() -> NDArray[np.uint8]:
    """The map for numbers of one sign, from dark to light: uint8 sRGB, shape (256, 3)."""
    return _table(_SEQUENTIAL, even=True)


def diverging(theme: Theme) -> NDArray[np.uint8]:
    """The map for numbers of both signs, blue - background - orange: uint8 sRGB, shape (256, 3)."""
    return _table(_DIVERGING[theme.name], even=False)


def oklab(rgb: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Convert sRGB of 0 to 255, shape (N, 3), to Oklab: lightness, a and b, shape (N, 3)."""
    srgb = rgb / 255.0
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    return np.cbrt(linear @ _TO_LMS.T) @ _TO_LAB.T


@cache
def distinct_colors(first: tuple[str, ...], ground: str, count: int) -> tuple[str, ...]:
    """`first`, then more colours up to `count`. Each of these is, of those that differ clearly from
    the ground in lightness, the one farthest in Oklab from all before it."""
    hues, steps = np.arange(0.0, 2 * np.pi, np.pi / 36), np.arange(0.35, 0.9, 0.05)
    light, hue, chroma = (
        grid.ravel() for grid in np.meshgrid(steps, hues, (0.08, 0.14, 0.2), indexing="ij")
    )
    lab = np.stack([light, chroma * np.cos(hue), chroma * np.sin(hue)], axis=1)
    (ground_light, _, _), *chosen = oklab(_rgb_of((ground, *first)))
    linear = _linear(lab)
    shown = ((linear >= 0) & (linear <= 1)).all(1) & (np.abs(light - ground_light) > GROUND_GAP)
    lab, rgb = lab[shown], _srgb(linear[shown])
    gap = np.min([np.linalg.norm(lab - other, axis=1) for other in chosen], axis=0)
    names = list(first)
    while len(names) < count:
        farthest = int(gap.argmax())
        names.append("#{:02x}{:02x}{:02x}".format(*rgb[farthest].tolist()))
        gap = np.minimum(gap, np.linalg.norm(lab - lab[farthest], axis=1))
    return tuple(names[:count])


def _rgb_of(names: tuple[str, ...]) -> NDArray[np.uint8]:
    return np.array([[int(name[i : i + 2], 16) for i in (1, 3, 5)] for name in names], np.uint8)


def _linear(lab: NDArray[np.float64]) -> NDArray[np.float64]:
    """Linear sRGB of Oklab colours; outside of 0 to 1 where a screen has no such colour."""
    return (lab @ np.linalg.inv(_TO_LAB).T) ** 3 @ np.linalg.inv(_TO_LMS).T


def _srgb(linear: NDArray[np.float64]) -> NDArray[np.uint8]:
    linear = np.clip(linear, 0.0, 1.0)
    srgb = np.where(linear <= 0.0031308, linear * 12.92, 1.055 * linear ** (1 / 2.4) - 0.055)
    return np.rint(srgb * 255).astype(np.uint8)


@cache
def _table(anchors: tuple[str, ...], even: bool) -> NDArray[np.uint8]:
    """Mix a table from its anchors. With `even`, anchors are as far apart as they are in Oklab:
    equal steps in the table then look equal. Without, anchors are at equal steps: the middle
    anchor is then in the middle of the table, at zero."""
    anchor_lab = oklab(_rgb_of(anchors))
    gaps = np.linalg.norm(np.diff(anchor_lab, axis=0), axis=1)
    stops = np.concatenate([[0.0], np.cumsum(gaps if even else np.ones_like(gaps))])
    at = np.linspace(0.0, stops[-1], SIZE)
    lab = np.stack([np.interp(at, stops, anchor_lab[:, i]) for i in range(3)], axis=1)
    table = _srgb(_linear(lab))
    table.setflags(write=False)
    return table
