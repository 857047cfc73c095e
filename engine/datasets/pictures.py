"""Samples as small pictures."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from ..protocol import SampleImage


def pictures_of(
    x: Tensor, most: int, ends: tuple[float, float] | None = None
) -> tuple[SampleImage, ...]:
    """Images (N, C, H, W), in their common range or with `ends` as black and white, made smaller if
    a side is longer than `most` pixels. Of other than three channels the first is shown."""
    if not x.numel():
        return ()
    x = x.float() if x.shape[1] == 3 else x[:, :1].float()
    largest = max(x.shape[2:])
    if largest > most:
        size = [max(1, side * most // largest) for side in x.shape[2:]]
        x = functional.interpolate(x, size, mode="area")
    least, largest = ends or (float(x.amin()), float(x.amax()))
    bytes_of = ((x - least) / max(largest - least, 1e-30) * 255).round().to(torch.uint8)
    height, width = x.shape[2:]
    pixels = (bytes(image.movedim(0, -1).flatten().tolist()) for image in bytes_of)
    return tuple(SampleImage(width, height, x.shape[1] == 1, each) for each in pixels)
