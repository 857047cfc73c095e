"""Labelled points in the plane, drawn at random: x float32 (N, 2), y int64 (N,).

Moons and circles are those of scikit-learn, which takes two seconds to import.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import pi

import numpy as np
from numpy.typing import ArrayLike

from ..project.document import PaintedPoint
from .samples import DataProblem, Samples, number_sources


def moons(samples: int, noise: float, seed: int) -> Samples:
    """Two interleaved half circles: (cos t, sin t) and (1 - cos t, 1/2 - sin t), t in 0..pi,
    plus normal noise of standard deviation `noise`."""
    upper, lower = (np.linspace(0, pi, count) for count in _halves(samples))
    first = np.stack([np.cos(upper), np.sin(upper)], axis=1)
    second = np.stack([1 - np.cos(lower), 0.5 - np.sin(lower)], axis=1)
    return _mixed(first, second, noise, seed)


def circles(samples: int, noise: float, seed: int, factor: float) -> Samples:
    """Two circles about the origin, of radius 1 (class 0) and `factor` (class 1), plus normal
    noise of standard deviation `noise`."""
    outer, inner = (np.linspace(0, 2 * pi, n, endpoint=False) for n in _halves(samples))
    first = np.stack([np.cos(outer), np.sin(outer)], axis=1)
    second = factor * np.stack([np.cos(inner), np.sin(inner)], axis=1)
    return _mixed(first, second, noise, seed)


def spirals(samples: int, noise: float, turns: float, seed: int) -> Samples:
    """Two Archimedean spirals, class k in {0, 1}: r (cos a, sin a) with the radius r uniform in
    0..1 and the angle a = 2 pi turns r + pi k, plus normal noise of standard deviation `noise`."""
    random = np.random.default_rng(seed % 2**64)
    y = np.arange(samples) % 2
    radius = random.uniform(0, 1, samples)
    angle = 2 * pi * turns * radius + pi * y
    x = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    x += random.normal(0, noise, x.shape)
    return _points(x, y)


def painted(points: Sequence[PaintedPoint], target: str) -> Samples:
    """The points that the user has painted: x (N, 2) and their classes; or, with the target
    "numbers", x (N, 1) and y (N, 1). Raises DataProblem without any."""
    if not points:
        raise DataProblem("No points are painted yet.", hint="Paint some: drag in the plane.")
    x, y = np.array([point[:2] for point in points], np.float32), [point[2] for point in points]
    if target == "numbers":
        return Samples(x[:, :1], x[:, 1:], (), ("y",), number_sources(["x"]))
    classes = tuple(map(str, range(max(2, max(y) + 1))))
    return Samples(x, np.array(y, np.int64), classes, sources=number_sources(["x", "y"]))


def _halves(samples: int) -> tuple[int, int]:
    return samples // 2, samples - samples // 2


def _mixed(first: np.ndarray, second: np.ndarray, noise: float, seed: int) -> Samples:
    """Points of class 0 and of class 1 in a random order, with noise."""
    random = np.random.RandomState(seed % 2**32)
    order = np.arange(len(first) + len(second))
    random.shuffle(order)
    x = np.concatenate([first, second])[order]
    return _points(x + random.normal(scale=noise, size=x.shape), order >= len(first))


def _points(x: ArrayLike, y: ArrayLike) -> Samples:
    return Samples(np.asarray(x, np.float32), np.asarray(y, np.int64), ("0", "1"))
