"""Checkpoints in folders of torch.distributed.checkpoint, as ranks wrote them once."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch import Tensor, nn

from engine.project.document import DataSetup, TrainingSetup
from engine.system.errors import LabError
from engine.training.checkpoints import checkpoint_files
from engine.training.checkpoints.checkpoint_fields import encode
from engine.training.loop import TrainingLoop

pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is disabled:UserWarning")


@pytest.fixture
def loop(make_mlp: Callable[[], nn.Module]) -> TrainingLoop:
    setup = TrainingSetup(data=DataSetup("moons"), epochs=2, optimizer="optim.Adam")
    loop = TrainingLoop(make_mlp(), setup)
    for _ in loop.steps():
        if loop.step == 3:
            break
    return loop


def written(loop: TrainingLoop, folder: Path) -> Path:
    """A checkpoint as several processes wrote it, each a part of the tensors."""
    fields = encode(loop.checkpoint("run"))
    tensors = {f"model.{name}": tensor for name, tensor in fields.pop("model").items()}
    state: dict[int, dict[str, Any]] = {}
    for index, entries in fields["optimizer"]["state"].items():
        state[index] = {name: entry for name, entry in entries.items() if not entry.ndim}
        whole = {name: entry for name, entry in entries.items() if entry.ndim}
        tensors |= {f"optimizer.{index}.{name}": entry for name, entry in whole.items()}
    fields["optimizer"] = {**fields["optimizer"], "state": state}
    buffer = io.BytesIO()
    torch.save(fields, buffer)
    tensors["rest"] = torch.frombuffer(bytearray(buffer.getvalue()), dtype=torch.uint8)
    path = folder / "checkpoints" / f"step-{loop.step:08}.dcp"
    dcp.save(tensors, storage_writer=dcp.FileSystemWriter(path), no_dist=True)
    return path


def assert_same(found: object, expected: object) -> None:
    if isinstance(expected, Tensor):
        assert isinstance(found, Tensor)
        torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
    elif isinstance(expected, dict):
        assert isinstance(found, dict) and found.keys() == expected.keys()
        for key, value in expected.items():
            assert_same(found[key], value)
    else:
        assert repr(found) == repr(expected)


def test_a_folder_has_what_a_file_has(loop: TrainingLoop, tmp_path: Path) -> None:
    assert_same(
        encode(checkpoint_files.load(written(loop, tmp_path))), encode(loop.checkpoint("run"))
    )


def test_old_folders_go_as_old_files_do(loop: TrainingLoop, tmp_path: Path) -> None:
    for step in range(5):
        loop.step = step
        if step % 2:
            written(loop, tmp_path)
        else:
            checkpoint_files.save(loop.checkpoint("run"), tmp_path)
    kept = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert kept == ["step-00000002.pt", "step-00000003.dcp", "step-00000004.pt"]


class Evil:
    def __reduce__(self):
        return exec, ("raise SystemExit('it ran')",)


@pytest.mark.parametrize("name", [".metadata", "__0_0.distcp"])
@pytest.mark.parametrize("data", [b"", b"nonsense", pickle.dumps(Evil())])
def test_a_damaged_folder_is_refused_and_nothing_of_it_runs(
    name: str, data: bytes, loop: TrainingLoop, tmp_path: Path
) -> None:
    path = written(loop, tmp_path)
    (path / name).write_bytes(data)
    with pytest.raises(LabError, match="cannot be read as a checkpoint"):
        checkpoint_files.load(path)
    (path / name).unlink()
    with pytest.raises(LabError, match="cannot be read as a checkpoint"):
        checkpoint_files.load(path)
