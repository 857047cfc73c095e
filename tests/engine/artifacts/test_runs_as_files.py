"""A run's folder and its checkpoints, opened as files."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.distributed.checkpoint as dcp

from engine.artifacts.opening import open_artifact
from engine.project.document import DataSetup, TrainingSetup
from engine.runs.record import FILE
from engine.system.errors import LabError
from engine.tensors.compare import same_bits
from engine.training.checkpoints import checkpoint_files
from engine.training.loop import TrainingLoop
from tests.engine.artifacts.networks import Net
from tests.engine.runs.test_run_folder import run, steps

SETUP = TrainingSetup(data=DataSetup("moons", {"samples": 50}), batch_size=10)


class Points(Net):
    """The network for points of the plane."""

    def __init__(self) -> None:
        super().__init__()
        self.body[0] = torch.nn.Linear(2, 8)


def test_a_run_is_told_with_the_tensors_of_its_newest_checkpoint(tmp_path: Path) -> None:
    writer = run(tmp_path, steps(1, 3))
    writer.end("stopped")
    torch.manual_seed(0)
    loop = TrainingLoop(Points(), SETUP)
    going = loop.steps()
    next(going)
    going.close()
    path = checkpoint_files.save(loop.checkpoint("run"), writer.folder)
    alone = open_artifact(path)
    assert alone.title == "checkpoint of Tensor Lab"
    whole = open_artifact(writer.folder)
    assert whole.metadata["state"] == "stopped" and whole.metadata["step"] == "3"
    assert whole.metadata["checkpoints"] == path.name
    assert [entry.key for entry in whole.entries] == [entry.key for entry in alone.entries]
    for key, value in loop.model.state_dict().items():
        assert same_bits(whole.tensor(f"model/{key}"), value)
    assert {entry.file for entry in whole.entries} == {f"checkpoints/{path.name}"}


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled:UserWarning")
def test_a_checkpoint_that_ranks_wrote_together_is_a_folder(tmp_path: Path) -> None:
    writer = run(tmp_path, steps(1, 3))
    writer.end("stopped")
    kept = writer.folder / "checkpoints" / "step-00000003.dcp"
    dcp.save({"model": {"w": torch.arange(3.0)}}, checkpoint_id=kept)
    assert torch.equal(open_artifact(writer.folder).tensor("model.w"), torch.arange(3.0))


def test_a_damaged_run_says_so_in_its_metadata(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("{")
    found = open_artifact(tmp_path)
    assert found.metadata["state"] == "damaged" and FILE in found.metadata["problem"]
    assert not found.entries


def test_a_damaged_checkpoint_of_a_run_is_told(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "step-00000001.pt").write_bytes(b"PK\x03\x04")
    with pytest.raises(LabError, match=r"step-00000001\.pt cannot be read"):
        open_artifact(tmp_path)
