"""Colour maps for numbers: a table of 256 colours each, perceptually even, safe for the
colour-blind. Beside `widgets.theme` the only place that names a colour.

Colours between anchors are mixed in Oklab (B. Ottosson, "A perceptual color space for image
processing", 2020), where equal steps look equally large. The sequential anchors are nine of
viridis (S. van der Walt and N. Smith, 2015, CC0). The diverging map runs from blue through the
theme's own background to orange: zero disappears, the sign is told by hue, the size by contrast.
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
    """(256, 3) sRGB, from dark to light: for numbers of one sign."""
    return _table(_SEQUENTIAL, even=True)


def diverging(theme: Theme) -> NDArray[np.uint8]:
    """(256, 3) sRGB, blue - background - orange: for numbers around zero."""
    return _table(_DIVERGING[theme.name], even=False)


def oklab(rgb: NDArray[np.uint8]) -> NDArray[np.float64]:
    """(N, 3) sRGB of 0 to 255 as Oklab lightness, a and b."""
    srgb = rgb / 255.0
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    return np.cbrt(linear @ _TO_LMS.T) @ _TO_LAB.T


@cache
def _table(anchors: tuple[str, ...], even: bool) -> NDArray[np.uint8]:
    """`even` spreads the anchors by their distance in Oklab, so that equal steps in the table
    look equal; else they stand at equal steps (which keeps zero in the middle)."""
    rgb = np.array([[int(name[i : i + 2], 16) for i in (1, 3, 5)] for name in anchors], np.uint8)
    anchor_lab = oklab(rgb)
    gaps = np.linalg.norm(np.diff(anchor_lab, axis=0), axis=1)
    stops = np.concatenate([[0.0], np.cumsum(gaps if even else np.ones_like(gaps))])
    at = np.linspace(0.0, stops[-1], SIZE)
    lab = np.stack([np.interp(at, stops, anchor_lab[:, i]) for i in range(3)], axis=1)
    linear = (lab @ np.linalg.inv(_TO_LAB).T) ** 3 @ np.linalg.inv(_TO_LMS).T
    linear = np.clip(linear, 0.0, 1.0)
    srgb = np.where(linear <= 0.0031308, linear * 12.92, 1.055 * linear ** (1 / 2.4) - 0.055)
    table = np.rint(srgb * 255).astype(np.uint8)
    table.setflags(write=False)
    return table
