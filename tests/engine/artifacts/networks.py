"""Models and state_dicts whose files the tests read."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class Net(nn.Module):
    """Nested modules, buffers, a plain tensor, and batch norm, which has statistics."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU())
        self.head = nn.Linear(8, 2)
        self.register_buffer("scale", torch.full((3,), 0.5))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x)) * self.scale.sum()


class Choosing(nn.Module):
    """Its code has a loop, and a branch that depends on the data."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(x.size(0)):
            x = self.inner(x)
        return torch.relu(x) if bool(x.sum() > 0) else torch.tanh(x)


def net() -> Net:
    torch.manual_seed(0)
    return Net().eval()


def odd_state() -> dict[str, Tensor]:
    """Tensors of all kinds that a state_dict can have."""
    torch.manual_seed(1)
    whole = torch.randn(4, 6)
    return {
        "plain.weight": torch.randn(3, 5),
        "transposed": torch.randn(5, 2).t(),
        "view": torch.arange(1000.0)[10:34].view(4, 6)[:, 1::2],
        "row": whole[1],
        "shared": whole,
        "scalar": torch.tensor(2.5, dtype=torch.float64),
        "empty": torch.empty(0, 3),
        "half": torch.randn(3).half(),
        "brain": torch.randn(3, dtype=torch.bfloat16),
        "float8": torch.randn(4).to(torch.float8_e4m3fn),
        "complex": torch.randn(3, dtype=torch.complex64),
        "bool": torch.tensor([True, False, True]),
        "unsigned": torch.tensor([1, 65535], dtype=torch.uint16),
        "int8": torch.tensor([-128, 127], dtype=torch.int8),
        "strange": torch.tensor([math.nan, math.inf, -0.0]),
        "parameter": nn.Parameter(torch.ones(2)),
    }
