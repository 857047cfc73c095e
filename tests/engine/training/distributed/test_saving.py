"""A checkpoint by all ranks, without other processes."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from engine.errors import LabError
from engine.training.checkpoints import rank_checkpoints
from engine.training.checkpoints.rank_checkpoints import NotShared
from engine.training.distributed import saving
from engine.training.distributed.ranks import Ranks


def test_the_folder_is_the_user_s_own_until_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "step-1.dcp"
    part = saving.begin(path)
    assert part == tmp_path / "step-1.part" and stat.S_IMODE(part.stat().st_mode) == 0o700
    (part / "old").touch()
    assert list(saving.begin(path).iterdir()) == []  # what an earlier try has left is gone
    (part / "new").touch()
    path.mkdir()
    (path / "of another").touch()
    saving.end(part, path)
    assert [each.name for each in path.iterdir()] == ["new"] and not part.exists()
    with pytest.raises(LabError, match=r"The checkpoint .*step-1\.dcp could not be written"):
        saving.end(part, path)
    (tmp_path / "file").touch()
    with pytest.raises(LabError, match="could not be written"):
        saving.begin(tmp_path / "file" / "step-1.dcp")


@pytest.mark.parametrize("others_see", [True, False])
@pytest.mark.parametrize("is_there", [True, False])
def test_all_ranks_must_see_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others_see: bool, is_there: bool
) -> None:
    folder = tmp_path / "part"
    if is_there:
        folder.mkdir()
    asked: list[int] = []
    written: list[Path] = []

    def least(tensor: torch.Tensor, how: object) -> None:
        assert how == torch.distributed.ReduceOp.MIN
        asked.append(int(tensor))
        tensor.clamp_(max=int(others_see))

    monkeypatch.setattr(saving.dist, "all_reduce", least)
    monkeypatch.setattr(
        saving.rank_checkpoints, "write", lambda tensors, folder: written.append(folder)
    )
    if others_see and is_there:
        saving.write_together({}, folder)
    else:
        with pytest.raises(NotShared, match=f"Not all processes see {folder}") as raised:
            saving.write_together({}, folder)
        assert raised.value.hint.startswith("Give --run DIR")
    assert asked == [int(is_there)]
    assert written == ([folder] if others_see and is_there else [])


def test_what_writes_checkpoints_is_loaded_before_the_ranks_meet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The time of the first checkpoint decides when the next one comes."""
    done: list[str] = []
    monkeypatch.setattr(rank_checkpoints, "load_writer", lambda: done.append("loaded"))
    monkeypatch.setattr(dist, "init_process_group", lambda *args, **options: done.append("joined"))
    Ranks.join(0, 1, torch.device("cpu"))
    assert done == ["loaded", "joined"]
    monkeypatch.undo()
    rank_checkpoints.load_writer()
    assert "torch.distributed.checkpoint" in sys.modules
