"""Runs a module without a lasting effect on it: its mode and its buffers are put back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from .modes import modes_kept


@contextmanager
def module_kept(module: nn.Module, training: bool | None = True) -> Iterator[None]:
    """In this context the module is in training mode (with `training` False in eval mode, with None
    in the mode that it has) and has copies of its buffers; afterwards it has the mode that it had,
    and its own buffers as they were.

    A graph made in the context keeps the copies, so a backward through it finds what forward saved.
    A lazy buffer, which has no numbers yet, is not copied.
    """
    own: list[tuple[nn.Module, str, Tensor]] = []
    copies: dict[int, Tensor] = {}
    for part in module.modules():
        for name, buffer in part._buffers.items():
            if buffer is not None and not is_lazy(buffer):
                own.append((part, name, buffer))
                if id(buffer) not in copies:
                    copies[id(buffer)] = buffer.detach().clone()
    with modes_kept(module):
        if training and not module.training:
            module.train()
        elif training is False:
            module.eval()
        try:
            for part, name, buffer in own:
                part._buffers[name] = copies[id(buffer)]
            yield
        finally:
            for part, name, buffer in own:
                part._buffers[name] = buffer
