"""Normalisation layers."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from ..book import enter, pointwise
from ..linear import Computed
from ..node_values import NodeValues
from ..pointwise import Let

# The rule of every normalisation y = w · h + b with h = (x - m) · r, where m is the mean and r is
# 1 / std of a group: with u = g · w, x gets r · (u - mean(u) - h · mean(u · h)) over the group.
_X = "r * (u - e - h * f)"
_MEANINGS = {"w": "the learned scale", "b": "the learned shift", "r": "1 / std of each group"}


def channel(given: NodeValues, t: Tensor) -> tuple[Tensor, tuple[int, ...]]:
    """(C,) -> (1, C, 1, ...), against a gradient of shape (N, C, ...)."""
    rank = given.gradient().dim()
    return t.reshape([-1 if d == 1 else 1 for d in range(rank)]), (1,)


def _over_channel(v: Any) -> list[int]:
    return [d for d in range(v.g.dim()) if d != 1]


_SCALE = Let("(x - m) · r: the normalised input", lambda v: (v.x - v.m) * v.r)
_U = Let("g · w", lambda v: v.g * v.w)
pointwise(
    "NativeBatchNormBackward0",
    "Goes back through the normalisation of each channel, and to its scale and shift.",
    saved={"x": "input", "w": "weight", "m": "result1", "r": "result2"},
    align={"w": channel, "b": channel, "m": channel, "r": channel},
    defaults={"w": 1.0},
    when=lambda given: bool(given["training"]),
    holomorphic=False,
    lets={
        "h": _SCALE,
        "u": _U,
        "e": Let("mean of u over the channel", lambda v: v.u.mean(_over_channel(v), keepdim=True)),
        "f": Let(
            "mean of u · h over the channel",
            lambda v: (v.u * v.h).mean(_over_channel(v), keepdim=True),
        ),
    },
    meanings=_MEANINGS | {"m": "the batch's mean of each channel"},
    x=_X,
    w="g * h",
    b="g",
)
pointwise(
    "NativeBatchNormBackward0",
    "With running statistics the normalisation is a constant scale: g · w / std.",
    saved={"x": "input", "w": "weight", "m": "running_mean", "v": "running_var"},
    align={"w": channel, "b": channel, "m": channel, "v": channel},
    defaults={"w": 1.0},
    holomorphic=False,
    lets={
        "r": Let("1 / √(running variance + eps)", lambda v: (v.v + v.given["eps"]).rsqrt()),
        "h": _SCALE,
    },
    meanings=_MEANINGS | {"m": "the running mean of each channel"},
    x="g * w * r",
    w="g * h",
    b="g",
)


def _normalized_dims(v: Any) -> list[int]:
    rank, folded = v.g.dim(), len(v.given["normalized_shape"])
    return list(range(rank - folded, rank))


pointwise(
    "NativeLayerNormBackward0",
    "Goes back through the normalisation of each sample, and to its scale and shift.",
    saved={"x": "input", "w": "weight", "m": "result1", "r": "result2"},
    defaults={"w": 1.0},
    holomorphic=False,
    lets={
        "h": _SCALE,
        "u": _U,
        "e": Let(
            "mean of u over the sample", lambda v: v.u.mean(_normalized_dims(v), keepdim=True)
        ),
        "f": Let(
            "mean of u · h over the sample",
            lambda v: (v.u * v.h).mean(_normalized_dims(v), keepdim=True),
        ),
    },
    meanings=_MEANINGS | {"m": "the mean of each sample"},
    x=_X,
    w="g * h",
    b="g",
)


def _per_group(given: NodeValues, t: Tensor) -> tuple[Tensor, tuple[int, ...]]:
    """(N, groups) -> (N, C, 1, ...)."""
    channels = given["C"] // given["group"]
    wide = t.reshape(given["N"], given["group"]).repeat_interleave(channels, 1)
    return wide.reshape(*wide.shape, *[1] * (given.gradient().dim() - 2)), (0, 1)


def _group_mean(given: NodeValues, t: Tensor) -> Tensor:
    return _per_group(given, t.reshape(given["N"], given["group"], -1).mean(-1))[0]


pointwise(
    "NativeGroupNormBackward0",
    "Goes back through the normalisation of each group of channels, and to its scale and shift.",
    saved={"x": "input", "w": "weight", "m": "result1", "r": "result2"},
    align={"w": channel, "b": channel, "m": _per_group, "r": _per_group},
    defaults={"w": 1.0},
    when=lambda given: all(g is None for g in given.incoming[1:]),
    holomorphic=False,
    lets={
        "h": _SCALE,
        "u": _U,
        "e": Let("mean of u over the group", lambda v: _group_mean(v.given, v.u)),
        "f": Let("mean of u · h over the group", lambda v: _group_mean(v.given, v.u * v.h)),
    },
    meanings=_MEANINGS | {"m": "the mean of each group"},
    x=_X,
    w="g * h",
    b="g",
)


def _rows(given: NodeValues, t: Tensor) -> Tensor:
    """The sums over all dimensions but `dim`, with keepdim: a norm each."""
    dim = given["dim"]
    return t.sum([d for d in range(t.dim()) if d != dim], keepdim=True)


def _direction(given: NodeValues) -> Tensor:
    v, scale, norm, g = given["v"], given["s"], given["n"], given.gradient()
    norm = norm.reshape(scale.shape)
    return scale / norm * (g - v * _rows(given, g * v) / norm**2)


enter(
    "WeightNormInterfaceBackward0",
    "y = s · v / |v|: v gets the part of g at right angles to it, the length s gets the rest.",
    Computed("v", "s / |v| · (g - v · Σ g·v / |v|²)", _direction, ("g", "v", "s", "n")),
    Computed(
        "s",
        "Σ g · v / |v|",
        lambda given: (
            _rows(given, given.gradient() * given["v"]) / given["n"].reshape(given["s"].shape)
        ),
        ("g", "v", "n"),
    ),
    saved={"v": "v", "s": "g", "n": "result1"},
    meanings={"n": "|v|, the norms that forward computed"},
)
