"""A model's predictions over the plane, for samples of two numbers."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .predictions import at_rest

SIDE = 96
"""The number of points along each axis."""
MARGIN = 0.15
"""The share of the points' range that is added on each side."""


def bounds_of(points: Tensor) -> tuple[float, float, float, float]:
    """(left, right, bottom, top) of the plane around points (N, 2)."""
    least, largest = points.amin(0), points.amax(0)
    margin = ((largest - least) * MARGIN).clamp(min=1e-3)
    (left, bottom), (right, top) = (least - margin).tolist(), (largest + margin).tolist()
    return left, right, bottom, top


def predict_plane(model: nn.Module, bounds: tuple[float, float, float, float]) -> Tensor:
    """Predict SIDE x SIDE points in rows from top to bottom. For scores: the probability of each
    class, float32 (SIDE, SIDE, C); for one number: (SIDE, SIDE, 1)."""
    left, right, bottom, top = bounds
    x, y = torch.linspace(left, right, SIDE), torch.linspace(top, bottom, SIDE)
    points = torch.stack(torch.meshgrid(x, y, indexing="xy"), -1).view(-1, 2)
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    with at_rest(model):
        output = model(points.to(device)).float().cpu()
    if output.shape[1] > 1:
        output = output.softmax(1)
    return output.view(SIDE, SIDE, -1)
