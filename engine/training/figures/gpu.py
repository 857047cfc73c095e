"""How much a GPU works, and how much of its memory is taken, by all programs on it."""

from __future__ import annotations

import logging
from math import nan
from time import perf_counter

import torch

from ...protocol import GpuMemory

READ_INTERVAL_S = 0.5
"""The driver's own figure is that of the last 1/6 to 1 second."""
_NOT_INSTALLED = (
    "GPU use is not known: nvidia-ml-py is not installed (pip install 'tensorlab[gpu]')."
)


class GpuUse:
    """Asks torch, at most twice a second. On other devices than CUDA there is nothing to know.

    What the driver refuses once, as on a part of a GPU (MIG), it is not asked again.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._problem = ""
        self._percent = nan
        self._memory: GpuMemory | None = None
        self._due_s = 0.0

    def percent(self) -> float:
        """The share of time in which a kernel ran; NaN if it is not known."""
        self._read()
        return self._percent

    def memory(self) -> GpuMemory | None:
        self._read()
        return self._memory

    def _read(self) -> None:
        now = perf_counter()
        if self._device.type != "cuda" or now < self._due_s:
            return
        self._due_s = now + READ_INTERVAL_S
        if not self._problem:
            try:
                self._percent = float(torch.cuda.utilization(self._device))
            except ModuleNotFoundError:
                self._problem, self._percent = _NOT_INSTALLED, nan
            except Exception as error:  # NVML has its own classes, which may not be installed
                logging.getLogger(__name__).info("GPU use is not known.", exc_info=True)
                self._problem = f"GPU use is not known: {error}."
                self._percent = nan
        free, total = torch.cuda.mem_get_info(self._device)
        self._memory = GpuMemory(total - free, total, self._problem)
