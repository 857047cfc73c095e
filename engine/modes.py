"""The mode of a model's modules: training or eval."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def modes_kept(model: nn.Module) -> Iterator[None]:
    """After this context every module is in the mode that it was in before, also one that the
    user has set apart (a BatchNorm in eval mode)."""
    modes = [(module, module.training) for module in model.modules()]
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training
