"""Labelled points in the plane, drawn at random: x float32 (N, 2), y int64 (N,)."""

from __future__ import annotations

from math import pi

import numpy as np
from numpy.typing import ArrayLike

from .samples import Samples


def moons(samples: int, noise: float, seed: int) -> Samples:
    """Two interleaved half circles: (cos t, sin t) and (1 - cos t, 1/2 - sin t), t in 0..pi,
    plus normal noise of standard deviation `noise`."""
    from sklearn.datasets import make_moons

    return _points(*make_moons(samples, noise=noise, random_state=seed % 2**32))


def circles(samples: int, noise: float, seed: int, factor: float) -> Samples:
    """Two circles about the origin, of radius 1 (class 0) and `factor` (class 1), plus normal
    noise of standard deviation `noise`."""
    from sklearn.datasets import make_circles

    return _points(*make_circles(samples, noise=noise, factor=factor, random_state=seed % 2**32))


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


def _points(x: ArrayLike, y: ArrayLike) -> Samples:
    return Samples(np.asarray(x, np.float32), np.asarray(y, np.int64), ("0", "1"))
