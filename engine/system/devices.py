"""The devices that torch can compute on."""

from __future__ import annotations

import math
import os
import platform
from pathlib import Path

import psutil
import torch

from ..protocol import Device, ReadySnapshot


def devices() -> tuple[Device, ...]:
    """The CPU, then each CUDA device by its own name, then Apple's MPS; memory in bytes."""
    found = [Device("cpu", _cpu_title(), psutil.virtual_memory().total)]
    if torch.cuda.is_available():
        for index in range(torch.cuda.device_count()):
            properties = torch.cuda.get_device_properties(index)
            found.append(Device(f"cuda:{index}", properties.name, properties.total_memory))
    if torch.backends.mps.is_available():
        found.append(Device("mps", "Apple GPU (Metal)", torch.mps.recommended_max_memory()))
    return tuple(found)


def usable_cores() -> int:
    """The cores that this process may use: fewer than the machine's under taskset or in a
    container."""
    affine = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if affine else os.cpu_count() or 1
    return min(cores, _quota_cores(Path("/sys/fs/cgroup/cpu.max")) or cores)


def _quota_cores(cpu_max: Path) -> int | None:
    """The CPU quota of a Linux container, in cores rounded up; None without a limit.

    The file has the microseconds allowed per period, or `max`, and the period (cgroup v2).
    """
    try:
        allowed, period = cpu_max.read_text().split()
    except (OSError, ValueError):
        return None
    return None if allowed == "max" else max(1, math.ceil(int(allowed) / int(period)))


def ready() -> ReadySnapshot:
    return ReadySnapshot(
        torch_version=str(torch.__version__),  # a TorchVersion is a subclass of str
        python_version=platform.python_version(),
        pid=os.getpid(),
        devices=devices(),
        torch_threads=torch.get_num_threads(),
    )


def _cpu_title() -> str:
    return f"CPU ({usable_cores()} cores)"
