"""Checkpoints in folders of torch.distributed.checkpoint, without other processes."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch import Tensor, nn

from engine.errors import LabError
from engine.project.document import DataSetup, TrainingSetup
from engine.training.checkpoints import checkpoint_files, rank_checkpoints
from engine.training.checkpoints.checkpoint_fields import Checkpoint, encode
from engine.training.checkpoints.rank_checkpoints import NotShared
from engine.training.loop import TrainingLoop

pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is disabled:UserWarning")
Together = Callable[[Checkpoint, Path], None]


@pytest.fixture
def loop(make_mlp: Callable[[], nn.Module]) -> TrainingLoop:
    setup = TrainingSetup(data=DataSetup("moons"), epochs=2, optimizer="optim.Adam")
    loop = TrainingLoop(make_mlp(), setup)
    for _ in loop.steps():
        if loop.step == 3:
            break
    return loop


def alone(loop: TrainingLoop) -> Together:
    """Writes as the only rank of a group would."""

    def write(checkpoint: Checkpoint, path: Path) -> None:
        tensors = {**loop.tensors(), **rank_checkpoints.rest_of(checkpoint)}
        dcp.save(tensors, storage_writer=dcp.FileSystemWriter(path), no_dist=True)

    return write


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
    checkpoint = loop.checkpoint("run")
    path = checkpoint_files.save(checkpoint, tmp_path, alone(loop))
    assert path.name == "step-00000003.dcp"
    assert_same(encode(checkpoint_files.load(path)), encode(checkpoint))


def test_old_folders_go_as_old_files_do(loop: TrainingLoop, tmp_path: Path) -> None:
    for step in range(5):
        loop.step = step
        checkpoint_files.save(loop.checkpoint("run"), tmp_path, alone(loop) if step % 2 else None)
    kept = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert kept == ["step-00000002.pt", "step-00000003.dcp", "step-00000004.pt"]


def test_ranks_without_a_common_folder_write_a_file(loop: TrainingLoop, tmp_path: Path) -> None:
    def refuse(checkpoint: Checkpoint, path: Path) -> None:
        raise NotShared("not here")

    path = checkpoint_files.save(loop.checkpoint("run"), tmp_path, refuse)
    assert path.name == "step-00000003.pt" and checkpoint_files.load(path).step == 3


class Evil:
    def __reduce__(self):
        return exec, ("raise SystemExit('it ran')",)


@pytest.mark.parametrize("name", [".metadata", "__0_0.distcp"])
@pytest.mark.parametrize("data", [b"", b"nonsense", pickle.dumps(Evil())])
def test_a_damaged_folder_is_refused_and_nothing_of_it_runs(
    name: str, data: bytes, loop: TrainingLoop, tmp_path: Path
) -> None:
    path = checkpoint_files.save(loop.checkpoint("run"), tmp_path, alone(loop))
    (path / name).write_bytes(data)
    with pytest.raises(LabError, match="cannot be read as a checkpoint"):
        checkpoint_files.load(path)
    (path / name).unlink()
    with pytest.raises(LabError, match="cannot be read as a checkpoint"):
        checkpoint_files.load(path)
