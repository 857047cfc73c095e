"""What the engine says it can compute on."""

from __future__ import annotations

import os

import pytest
import torch

from engine.devices import _quota_cores, devices, usable_cores


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
