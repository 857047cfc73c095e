"""Images that `lab.log` is given, as small pictures."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, isqrt

import torch
from torch import Tensor

from ..datasets.pictures import pictures_of
from ..protocol import LoggedImages

MOST_IMAGES = 8
"""The first ones of a batch are shown."""
STEP_BYTES = 1 << 14
"""The most bytes of all pictures of one step: the more there are, the smaller each is."""
MOST_READ = 1024
"""The most rows or columns that are read: of a longer side every second, third ... one."""
_CHANNELS = (1, 3, 4)


def is_image(shape: Sequence[int]) -> bool:
    """Whether a tensor of this shape is an image or a batch of them: see `as_batch`."""
    if 0 in shape or len(shape) not in (2, 3, 4):
        return False
    return len(shape) < 4 or _channel_dim(shape) is not None


def as_batch(values: Tensor) -> Tensor:
    """(N, C, H, W) of (H, W), (C, H, W), (H, W, C) and batches of them, where C is 1, 3 or 4; other
    tensors of three dimensions are batches of grey images."""
    if values.dim() == 2:
        return values[None, None]
    channels = _channel_dim(values.shape)
    if channels is None:
        return values[:, None]
    batch = values.movedim(channels, -3)
    return batch if batch.dim() == 4 else batch[None]


def _channel_dim(shape: Sequence[int]) -> int | None:
    """The third dimension from the end or the last one; if either may be it, the smaller."""
    found = [dim for dim in (-3, -1) if shape[dim] in _CHANNELS]
    return min(found, key=lambda dim: shape[dim], default=None)


def look_at_images(values: Tensor, step: int) -> LoggedImages:
    """Small pictures of images. Black is 0 and white 255 for uint8, 1 for other numbers from 0 to
    1; else they are the lowest and the highest number. NaN is black; of four channels the first
    three are shown."""
    batch = as_batch(values)
    rows, columns = (ceil(side / MOST_READ) for side in batch.shape[2:])
    shown = batch[:MOST_IMAGES, :3, ::rows, ::columns].float()
    finite = shown[shown.isfinite()]
    low, high = map(float, torch.aminmax(finite)) if finite.numel() else (0.0, 0.0)
    if values.dtype == torch.uint8:
        low, high = 0.0, 255.0
    elif low >= 0.0 and high <= 1.0:
        low, high = 0.0, 1.0
    whole = torch.nan_to_num(shown, low, high, low)
    side = isqrt(STEP_BYTES // (len(whole) * whole.shape[1]))
    return LoggedImages(
        step=step,
        shape=tuple(values.shape),
        count=len(batch),
        low=low,
        high=high,
        images=pictures_of(whole, side, (low, high)),
    )
