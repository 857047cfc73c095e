"""Changes of the samples of a batch, drawn anew for each batch, and Normalize.

A function here takes a batch (B, ...), float32, and a generator on the CPU, so that the same is
drawn for every device. It uses nothing of this program: the training script has its source.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn


def generator_of(seed: int, *place: int) -> torch.Generator:
    """The generator of an epoch, or of a batch of it: it depends on these numbers only, so a run
    that is resumed, or has gone back, draws the same."""
    mixed = np.random.SeedSequence([seed % 2**64, *place]).generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(mixed[0]))


def random_horizontal_flip(x: Tensor, generator: torch.Generator, p: float) -> Tensor:
    """Images (B, C, H, W), each mirrored left to right with probability p."""
    chosen = (torch.rand(len(x), generator=generator) < p).to(x.device)
    return torch.where(chosen[:, None, None, None], x.flip(-1), x)


def random_vertical_flip(x: Tensor, generator: torch.Generator, p: float) -> Tensor:
    """Images (B, C, H, W), each mirrored top to bottom with probability p."""
    chosen = (torch.rand(len(x), generator=generator) < p).to(x.device)
    return torch.where(chosen[:, None, None, None], x.flip(-2), x)


def random_crop(x: Tensor, generator: torch.Generator, padding: int) -> Tensor:
    """Images (B, C, H, W), each padded with zeros and cut to its size at a place of its own."""
    samples, channels, height, width = x.shape
    corners = torch.randint(2 * padding + 1, (2, samples), generator=generator).to(x.device)
    rows = corners[0, :, None] + torch.arange(height, device=x.device)
    columns = corners[1, :, None] + torch.arange(width, device=x.device)
    padded = nn.functional.pad(x, [padding] * 4)
    sample = torch.arange(samples, device=x.device)[:, None, None, None]
    channel = torch.arange(channels, device=x.device)[:, None, None]
    return padded[sample, channel, rows[:, None, :, None], columns[:, None, None, :]]


def gaussian_noise(x: Tensor, generator: torch.Generator, sigma: float) -> Tensor:
    """x of any shape plus normal noise of standard deviation sigma."""
    return x + sigma * torch.randn(x.shape, generator=generator).to(x.device)


DRAWN: dict[str, Callable[..., Tensor]] = {
    "RandomHorizontalFlip": random_horizontal_flip,
    "RandomVerticalFlip": random_vertical_flip,
    "RandomCrop": random_crop,
    "GaussianNoise": gaussian_noise,
}
NORMALIZE = "Normalize"


def normalized(x: Tensor, mean: Tensor, deviation: Tensor) -> Tensor:
    """`x` (N, C, ...) less the mean of each channel, divided by its deviation unless that is 0:
    both are float64 (1, C, 1, ...), those of the training samples."""
    return ((x - mean) / torch.where(deviation == 0, 1.0, deviation)).float()
