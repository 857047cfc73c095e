"""What the engine says it can compute on."""

from __future__ import annotations

import os
import platform
from types import SimpleNamespace

import pytest
import torch

from engine.protocol import Device
from engine.system.devices import _quota_cores, devices, ready, usable_cores


def test_the_cpu_comes_first_and_every_gpu_of_torchs_follows():
    found = devices()
    assert found[0].name == "cpu"
    assert (found[0].memory_bytes or 0) > 0
    cuda = [device for device in found if device.name.startswith("cuda")]
    assert [device.title for device in cuda] == [
        torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())
    ]
    assert all(torch.empty(1, device=device.name).numel() == 1 for device in found)


def test_cores_are_no_more_than_the_machine_has():
    assert 1 <= usable_cores() <= (os.cpu_count() or 1)


def test_gpus_are_told_by_number_with_their_own_names_and_memory(monkeypatch):
    def properties(index: int) -> SimpleNamespace:
        return SimpleNamespace(name=f"GPU {index}", total_memory=(index + 1) << 30)

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_properties", properties)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch.mps, "recommended_max_memory", lambda: 5 << 30)
    assert devices()[1:] == (
        Device("cuda:0", "GPU 0", 1 << 30),
        Device("cuda:1", "GPU 1", 2 << 30),
        Device("mps", "Apple GPU (Metal)", 5 << 30),
    )


@pytest.mark.parametrize(
    ("allowed", "quota", "cores"),
    [(3, None, 3), (3, "max 100000", 3), (3, "200000 100000", 2), (1, "200000 100000", 1)],
)
def test_fewest_cores_count(monkeypatch, tmp_path, allowed, quota, cores):
    if quota is not None:
        (tmp_path / "cpu.max").write_text(quota)
    monkeypatch.setattr("engine.system.devices.Path", lambda _: tmp_path / "cpu.max")
    own = {0: set(range(allowed))}  # 0 is this process
    monkeypatch.setattr(os, "sched_getaffinity", own.__getitem__, raising=False)
    assert usable_cores() == cores
    assert devices()[0].title == f"CPU ({cores} cores)"


@pytest.mark.parametrize(("counted", "cores"), [(6, 6), (None, 1)])
def test_cores_are_counted_where_none_are_assigned(monkeypatch, tmp_path, counted, cores):
    monkeypatch.setattr("engine.system.devices.Path", lambda _: tmp_path / "cpu.max")
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: counted)
    assert usable_cores() == cores


def test_an_engine_that_is_ready_names_its_versions_and_itself():
    told = ready()
    assert (told.torch_version, told.python_version) == (
        torch.__version__,
        platform.python_version(),
    )
    assert type(told.torch_version) is str
    assert (told.pid, told.torch_threads) == (os.getpid(), torch.get_num_threads())
    assert told.devices == devices()


@pytest.mark.parametrize(
    ("text", "cores"),
    [("max 100000\n", None), ("200000 100000\n", 2), ("150000 100000", 2), ("10000 100000", 1),
     ("nonsense", None)],
)  # fmt: skip
def test_a_containers_share_of_time_counts_as_cores(tmp_path, text, cores):
    (tmp_path / "cpu.max").write_text(text)
    assert _quota_cores(tmp_path / "cpu.max") == cores


def test_no_limit_where_there_is_no_such_file(tmp_path):
    assert _quota_cores(tmp_path / "cpu.max") is None
