"""Folders of runs: which are runs, their order, which go, and runs that are put aside."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from engine.runs import folders, states


def run(runs: Path, name: str, written_s: int, *checkpoints: str) -> Path:
    """The folder of a run that was written last at a time, the first checkpoint the newest."""
    inner = runs / name / folders.CHECKPOINTS
    inner.mkdir(parents=True)
    for age, checkpoint in enumerate(checkpoints):
        (inner / checkpoint).write_bytes(b"")
        os.utime(inner / checkpoint, (written_s - age, written_s - age))
    os.utime(inner, (written_s, written_s))
    return runs / name


def names(found: list[Path]) -> list[str]:
    return [path.name for path in found]


def test_runs_are_listed_by_when_they_were_written(tmp_path: Path) -> None:
    for name, written_s in (("a", 20), ("b", 30), ("c", 10), (".hidden", 40)):
        run(tmp_path, name, written_s)
    alone = tmp_path / "d"  # it has no checkpoint yet
    alone.mkdir()
    (alone / "run.json").write_text("{}")
    os.utime(alone, (25, 25))
    (tmp_path / "no run").mkdir()
    (tmp_path / "file").write_text("")
    assert names(folders.runs_in(tmp_path)) == ["b", "d", "a", "c"]
    assert folders.runs_in(tmp_path / "gone") == []
    assert [folders.is_run(tmp_path / name) for name in ("a", "d", "no run", "gone")] == [
        True, True, False, False,
    ]  # fmt: skip


def test_checkpoints_are_listed_by_when_they_were_written(tmp_path: Path) -> None:
    made = ("step-00000002.pt", "step-00000009.dcp", "step-00000007.pt", "other.pt", "step-1.tmp")
    folder = run(tmp_path, "a", 30, *made)
    assert names(folders.checkpoints_of(folder)) == list(made[:3])
    assert folders.checkpoints_of(tmp_path / "gone") == []
    assert folders.run_of(folder / folders.CHECKPOINTS / made[0]) == folder
    assert folders.run_of(folder / made[0]) is None


@pytest.mark.parametrize("kept", [2, 3])
def test_the_oldest_runs_of_the_data_folder_go_and_a_sweep_counts_as_one(
    monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    runs = folders.data_runs()
    for written_s, name in enumerate(("a", "s-trial-1", "b", "s-trial-2", "s-trial-3"), 1):
        run(runs, name, written_s)
    monkeypatch.setattr(folders, "KEPT_RUNS", kept)
    new = runs / "new"
    folders.make(new)
    left = {"new", "s-trial-1", "s-trial-2", "s-trial-3"} | ({"b"} if kept == 3 else set())
    assert {folder.name for folder in folders.runs_in(runs)} == left
    assert stat.S_IMODE(new.stat().st_mode) == stat.S_IMODE(runs.stat().st_mode) == 0o700
    run(runs, "later", 2**31)
    folders.make(new)  # it is there: nothing is looked at
    assert (runs / "later").is_dir() and len(folders.runs_in(runs)) == len(left) + 1


def test_runs_are_put_aside_until_the_next_ones_are(tmp_path: Path) -> None:
    a, b, c = (run(tmp_path, name, 5) for name in "abc")
    folders.delete([a, b])
    assert names(folders.runs_in(tmp_path)) == ["c"]
    assert sorted(names(folders.deleted_in(tmp_path))) == ["a", "b"]
    folders.delete([c])
    assert names(folders.deleted_in(tmp_path)) == ["c"] and folders.runs_in(tmp_path) == []
    folders.restore(tmp_path)
    assert names(folders.runs_in(tmp_path)) == ["c"] and folders.deleted_in(tmp_path) == []
    assert folders.deleted_in(tmp_path / "gone") == []


def test_a_copy_replaces_none_and_one_that_was_cut_off_is_begun_anew(tmp_path: Path) -> None:
    source = run(tmp_path / "one", "a", 5, "step-1.pt")
    target = tmp_path / "two" / "a"
    cut_off = target.with_name(".copy-a")
    (cut_off / "half").mkdir(parents=True)
    folders.copy(source, target)
    assert names(folders.checkpoints_of(target)) == ["step-1.pt"]
    assert not cut_off.exists() and not (target / "half").exists() and source.is_dir()
    (target / "own").write_text("")
    folders.copy(source, target)
    assert (target / "own").exists()


def test_states_of_another_run_are_shared_up_to_a_step(tmp_path: Path, monkeypatch) -> None:
    source, target = tmp_path / "one", tmp_path / "two"
    for step in (0, 3, 6):
        path = states.path_of(source, step)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{step}")
    (path.parent / "step-x.pt").write_text("no state")
    assert states.steps_in(source) == [0, 3, 6] and states.steps_in(target) == []
    states.link(source, target, 3)
    assert states.steps_in(target) == [0, 3]
    assert states.path_of(target, 3).samefile(states.path_of(source, 3))
    states.path_of(target, 0).unlink()
    states.path_of(target, 0).write_text("its own")
    states.link(source, target, 3)
    assert states.path_of(target, 0).read_text() == "its own"

    def refuse(*_: object) -> None:
        raise OSError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    states.link(source, tmp_path / "three", 6)
    assert states.path_of(tmp_path / "three", 6).read_text() == "6"
    assert not states.path_of(tmp_path / "three", 6).samefile(states.path_of(source, 6))
