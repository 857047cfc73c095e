"""Random directions in the space of the weights, as long as the weights themselves (H. Li et al.,
"Visualizing the loss landscape of neural nets", 2018, section 4)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from ...system.errors import LabError

SMALL = 1e-10
"""Is added to the norm of a direction, as in the authors' code: it may be 0."""


def moving(model: nn.Module) -> list[nn.Parameter]:
    """The parameters that a slice moves: those that learn. Raises LabError without any."""
    found = [
        p
        for p in model.parameters()
        if not is_lazy(p) and p.requires_grad and (p.is_floating_point() or p.is_complex())
    ]
    if not found:
        raise LabError(
            "The model has no parameters that learn, so its loss has no landscape.",
            hint="Add a block with weights, or let a frozen one learn again.",
        )
    return found


def directions(weights: Sequence[Tensor], count: int, seed: int) -> list[list[Tensor]]:
    """`count` random directions, each with one tensor per weight.

    Each filter (a slice of dim 0) has the norm of the filter of the weights. Biases and the
    parameters of norms, which have one dim at most, stay where they are; a model that has no others
    moves each of them as a whole.
    """
    generator = torch.Generator().manual_seed(seed)
    only_flat = all(weight.ndim < 2 for weight in weights)
    return [[_drawn(w, generator, only_flat) for w in weights] for _ in range(count)]


def _drawn(weight: Tensor, generator: torch.Generator, moves_flat: bool) -> Tensor:
    if weight.ndim < 2 and not moves_flat:
        return torch.zeros_like(weight)
    dtype = weight.dtype if weight.dtype in (torch.float64, torch.complex128) else None
    dtype = dtype or (torch.complex64 if weight.is_complex() else torch.float32)
    drawn = torch.randn(weight.shape, generator=generator, dtype=dtype).to(weight.device)
    rows = drawn.flatten(1) if weight.ndim > 1 else drawn.reshape(1, -1)
    own = weight.to(dtype).reshape(rows.shape)
    lengths = own.norm(dim=1, keepdim=True) / (rows.norm(dim=1, keepdim=True) + SMALL)
    return (rows * lengths).reshape(weight.shape).to(weight.dtype)
