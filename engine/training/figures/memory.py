"""The memory that a run takes: of the process, of the device, and of the tensors of training."""

from __future__ import annotations

from collections.abc import Iterable

import psutil
import torch
from torch import Tensor, nn

from ...protocol import TrainingMemory

_process = psutil.Process()


def rss_bytes() -> int:
    """Return the resident set size of this process. It costs some 10 us: too much for every
    step."""
    return _process.memory_info().rss


def cuda_bytes(device: torch.device) -> tuple[int, int]:
    """Return the bytes that torch's allocator has handed out and has reserved on a CUDA device."""
    return torch.cuda.memory_allocated(device), torch.cuda.memory_reserved(device)


def training_memory(model: nn.Module, optimizer: torch.optim.Optimizer) -> TrainingMemory:
    """Return the bytes of parameters, buffers, gradients and optimizer state.

    Tensors that share a storage (tied weights) count once, in the first of these categories.
    """
    seen: set[int] = set()
    parameters = list(model.parameters())
    state = (
        value
        for slots in optimizer.state.values()
        for value in slots.values()
        if isinstance(value, Tensor)
    )
    return TrainingMemory(
        parameter_bytes=_unique_bytes(parameters, seen),
        buffer_bytes=_unique_bytes(model.buffers(), seen),
        gradient_bytes=_unique_bytes((p.grad for p in parameters if p.grad is not None), seen),
        optimizer_bytes=_unique_bytes(state, seen),
    )


def _unique_bytes(tensors: Iterable[Tensor], seen: set[int]) -> int:
    total = 0
    for tensor in tensors:
        parts = [tensor._indices(), tensor._values()] if tensor.is_sparse else [tensor]
        for part in parts:
            storage = part.untyped_storage()
            if storage._cdata not in seen:
                seen.add(storage._cdata)
                total += storage.nbytes()
    return total
