"""What torch can compute on here."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator

import psutil
import torch

from .lab import Lab
from .protocol import Device, HelloCommand, ReadySnapshot


def devices() -> tuple[Device, ...]:
    """The CPU first, then each CUDA device by its own name, then Apple's MPS; memory in bytes."""
    found = [Device("cpu", _cpu_title(), psutil.virtual_memory().total)]
    if torch.cuda.is_available():
        for index in range(torch.cuda.device_count()):
            properties = torch.cuda.get_device_properties(index)
            found.append(Device(f"cuda:{index}", properties.name, properties.total_memory))
    if torch.backends.mps.is_available():
        found.append(Device("mps", "Apple GPU (Metal)", torch.mps.recommended_max_memory()))
    return tuple(found)


def usable_cores() -> int:
    """Cores this process may run on: fewer than the machine's under taskset or in a container."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def hello(lab: Lab, command: HelloCommand) -> Iterator[ReadySnapshot]:
    yield ready()


def ready() -> ReadySnapshot:
    return ReadySnapshot(
        torch_version=str(torch.__version__),  # a TorchVersion is no plain str
        python_version=platform.python_version(),
        pid=os.getpid(),
        devices=devices(),
        torch_threads=torch.get_num_threads(),
    )


def _cpu_title() -> str:
    return f"CPU ({usable_cores()} cores)"
