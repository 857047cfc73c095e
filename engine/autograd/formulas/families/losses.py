"""Losses."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..book import enter, pointwise
from ..linear import Computed
from ..node_values import NodeValues
from ..pointwise import Let


def _count(v: Any) -> int:
    """The number that a loss is divided by: for "mean" the number of elements, else 1."""
    return v.x.numel() if v.given["reduction"] == 1 else 1


_N = {"N": Let("the number of elements for the mean, else 1", _count)}
_T = {"t": "target"}

pointwise(
    "MseLossBackward0",
    "2 · (prediction - target) / number of elements.",
    saved=_T,
    lets=_N,
    holomorphic=False,
    x="g * 2 * (x - t) / N",
    t="-g * 2 * (x - t) / N",
)
pointwise(
    "SmoothL1LossBackward0",
    "(prediction - target) / β while they are close, beyond that only its sign: an outlier's"
    " gradient is bounded.",
    saved=_T,
    lets=_N,
    holomorphic=False,
    x="where(abs(x - t) < beta, g * (x - t) / beta / N, g * sign(x - t) / N)",
    t="where(abs(x - t) < beta, -g * (x - t) / beta / N, -g * sign(x - t) / N)",
)
pointwise(
    "HuberLossBackward0",
    "(prediction - target) while they are close, beyond that δ times its sign: an outlier's"
    " gradient is bounded.",
    saved=_T,
    lets=_N,
    holomorphic=False,
    x="where(abs(x - t) <= delta, g * (x - t) / N, g * delta * sign(x - t) / N)",
    t="where(abs(x - t) <= delta, -g * (x - t) / N, -g * delta * sign(x - t) / N)",
)
pointwise(
    "BinaryCrossEntropyBackward0",
    "(p - t) / (p · (1 - p)): large for a confident mistake, but bounded.",
    saved={**_T, "w": "weight"},
    defaults={"w": 1.0},
    lets=_N,
    holomorphic=False,
    x="g * w * (x - t) / max(x * (1 - x), 1e-12) / N",
    t="g * w * (log(1 - x) - log(x)) / N",
)
pointwise(
    "BinaryCrossEntropyWithLogitsBackward0",
    "σ(x) - t: the probability minus the target, weighted, over the number of elements.",
    saved={**_T, "w": "weight", "k": "pos_weight"},
    defaults={"w": 1.0, "k": 1.0},
    lets={**_N, "s": Let("σ(x)", lambda v: torch.sigmoid(v.x))},
    holomorphic=False,
    meanings={"k": "the weight of positive targets"},
    x="g * w * ((1 - t) * s - k * t * (1 - s)) / N",
    t="g * w * (-log(s) * k + log(1 - s)) / N",
)
pointwise(
    "SoftMarginLossBackward0",
    "-t · σ(-t · x): the further x is from the sign of its target, the larger.",
    saved=_T,
    lets=_N,
    holomorphic=False,
    x="-g * t * sigmoid(-t * x) / N",
)


def _nll(given: NodeValues) -> Tensor:
    target, g = given["t"], given.gradient()
    x = given["x"]
    classes = x.dim() - 1 if x.dim() < 2 else 1
    weights = given["w"] if given.has("w") else torch.ones(x.shape[classes], dtype=x.dtype)
    ignored = target == given["ignore_index"]
    chosen = torch.where(ignored, torch.zeros_like(target), target)
    w = torch.where(ignored, torch.zeros((), dtype=x.dtype), weights[chosen])
    total = given["W"] if given["reduction"] == 1 else 1.0
    pulls = (-g * w / total).unsqueeze(classes)
    return torch.zeros(x.shape, dtype=g.dtype).scatter(classes, chosen.unsqueeze(classes), pulls)


enter(
    "NllLossBackward0 NllLoss2DBackward0",
    "-1/batch at each sample's class, 0 elsewhere.",
    Computed(
        "x",
        "-g · w[t] / W at the class t of each sample, 0 elsewhere",
        _nll,
        ("g", "w", "t", "W"),
    ),
    saved={"t": "target", "w": "weight", "W": "total_weight"},
    defaults={"w": 1.0},
    meanings={
        "t": "the target classes",
        "w": "the weight of each class, 1 by default",
        "W": "the sum of the samples' weights; 1 unless the loss is a mean",
    },
)
