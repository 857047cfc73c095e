"""A model that is trained for a look only, and has its own numbers afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn
from torch.nn.parameter import is_lazy

from ...restoring.module_kept import module_kept
from ...system.private_torch import unsafe_preserve_version_counter


@contextmanager
def untouched(model: nn.Module, training: bool = True) -> Iterator[None]:
    """In this context the model has copies of its parameters and buffers, no gradients, and the
    given mode. Afterwards it has its own storages, gradients and modes, bit for bit."""
    own = [(p, p.data) for p in model.parameters() if not is_lazy(p)]
    # Else a graph that was made before would be refused: its tensors would count as changed.
    versions = unsafe_preserve_version_counter(tuple(p for p, _ in own))
    with module_kept(model, training), versions:
        try:
            for parameter, data in own:
                parameter.data = data.clone()
            yield
        finally:
            for parameter, data in own:
                parameter.grad = None  # else its shape and dtype would be compared
                parameter.data = data
