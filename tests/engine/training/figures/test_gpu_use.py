"""How much a GPU works and holds, with stand-ins for torch's calls of the driver."""

from __future__ import annotations

from math import isnan

import pytest
import torch

from engine.protocol import GpuMemory
from engine.training.figures import gpu
from engine.training.figures.gpu import GpuUse

CUDA = torch.device("cuda", 1)


class Driver:
    """Stands for torch.cuda: `percent` may be an error to raise; `asked` has the devices."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.percent: int | Exception = 40
        self.free_bytes, self.now = 60, 100.0
        self.asked: list[torch.device] = []
        monkeypatch.setattr(torch.cuda, "utilization", self._utilization)
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (self.free_bytes, 80))
        monkeypatch.setattr(gpu, "perf_counter", lambda: self.now)

    def _utilization(self, device: torch.device) -> int:
        self.asked.append(device)
        if isinstance(self.percent, Exception):
            raise self.percent
        return self.percent


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    return Driver(monkeypatch)


def test_use_and_memory_are_read_twice_a_second(driver: Driver) -> None:
    use = GpuUse(CUDA)
    assert (use.percent(), use.memory()) == (40.0, GpuMemory(20, 80))
    driver.percent, driver.free_bytes = 90, 10
    driver.now += 0.4
    assert (use.percent(), use.memory()) == (40.0, GpuMemory(20, 80))
    driver.now += 0.1
    assert (use.percent(), use.memory()) == (90.0, GpuMemory(70, 80))
    assert driver.asked == [CUDA, CUDA]


def test_another_device_is_not_asked(driver: Driver) -> None:
    use = GpuUse(torch.device("cpu"))
    assert isnan(use.percent()) and use.memory() is None
    assert driver.asked == []


@pytest.mark.parametrize(
    "error, words",
    [
        (ModuleNotFoundError("nvidia-ml-py"), "is not installed (pip install 'tensorlab[gpu]')."),
        (RuntimeError("Not Supported"), "GPU use is not known: Not Supported."),
    ],
)
def test_what_the_driver_does_not_tell_is_asked_once(
    error: Exception, words: str, driver: Driver
) -> None:
    use = GpuUse(CUDA)
    use.percent()
    driver.percent = error
    for _ in range(3):
        driver.now += 1
        assert isnan(use.percent())
    memory = use.memory()
    assert memory is not None and memory.problem.endswith(words)
    assert (memory.used_bytes, memory.total_bytes) == (20, 80)
    assert len(driver.asked) == 2
