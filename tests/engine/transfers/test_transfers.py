"""Files of the engine's machine for a window on another one: folders, and files in parts."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from engine import temporary
from engine.project import limits
from engine.protocol import (
    BeginTransfersCommand,
    Command,
    DigestsSnapshot,
    ErrorSnapshot,
    FolderSnapshot,
    ListFolderCommand,
    PartSnapshot,
    ReadDigestsCommand,
    ReadPartCommand,
    Snapshot,
    TransfersSnapshot,
    WritePartCommand,
)
from engine.protocol.transfers.messages import PART_BYTES
from engine.session import Session
from engine.transfers import folders


def answer(command: Command) -> Snapshot:
    answers: list[Snapshot] = []
    session = Session(answers.append)
    session.handle(command)
    session.close()
    (only,) = answers
    return only


def listed(path: Path) -> FolderSnapshot:
    found = answer(ListFolderCommand(path=str(path)))
    assert isinstance(found, FolderSnapshot)
    return found


def test_a_folder_lists_folders_first_and_nothing_hidden(tmp_path: Path, monkeypatch):
    (tmp_path / "b.csv").write_bytes(b"12345")
    (tmp_path / "A.csv").touch()
    (tmp_path / "z").mkdir()
    (tmp_path / ".hidden").touch()
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    found = listed(tmp_path)
    assert (found.path, found.parent) == (str(tmp_path), str(tmp_path.parent))
    assert [(e.name, e.is_folder) for e in found.entries] == [
        ("z", True), ("A.csv", False), ("b.csv", False), ("gone", False),
    ]  # fmt: skip
    assert found.entries[2].size_bytes == 5 and found.left == 0
    monkeypatch.setattr(folders, "MOST_ENTRIES", 3)
    assert (len(listed(tmp_path).entries), listed(tmp_path).left) == (3, 1)
    assert listed(Path("/")).parent == ""
    assert listed(Path("~")).path == answer(ListFolderCommand()).path == str(Path.home())


@pytest.mark.parametrize("size", [0, 1, PART_BYTES, PART_BYTES + 1])
def test_a_file_goes_both_ways_in_parts(tmp_path: Path, size: int):
    data = bytes(range(256)) * (size // 256 + 1)
    (tmp_path / "a").write_bytes(data[:size])
    read = b""
    while True:
        part = answer(ReadPartCommand(path=str(tmp_path / "a"), offset=len(read)))
        assert isinstance(part, PartSnapshot) and part.size_bytes == size
        offset, read = len(read), read + part.data
        assert len(part.data) <= PART_BYTES
        written = answer(WritePartCommand(path=str(tmp_path / "b"), offset=offset, data=part.data))
        assert isinstance(written, PartSnapshot) and written.size_bytes == len(read)
        if len(read) == size:
            break
    assert read == data[:size] == (tmp_path / "b").read_bytes()


def test_a_folder_names_what_it_holds(tmp_path: Path):
    (tmp_path / "config.json").touch()
    part = answer(ReadPartCommand(path=str(tmp_path)))
    assert isinstance(part, PartSnapshot) and part.is_folder and part.names == ("config.json",)


def test_what_is_not_there_is_told_by_its_path(tmp_path: Path):
    for command in (
        ListFolderCommand(path=str(tmp_path / "no")),
        ReadPartCommand(path=str(tmp_path / "no")),
        WritePartCommand(path=str(tmp_path / "no" / "a")),
    ):
        error = answer(command)
        assert isinstance(error, ErrorSnapshot)
        assert error.error.message.startswith(str(tmp_path / "no"))
        assert error.error.message.endswith("No such file or directory.")


def test_the_folder_of_transfers_is_swept_by_a_later_engine(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    made = answer(BeginTransfersCommand())
    assert isinstance(made, TransfersSnapshot)
    assert Path(made.path).is_dir() and Path(made.path).parent == tmp_path
    temporary.sweep()
    assert Path(made.path).is_dir()
    (tmp_path / "mine").mkdir()
    answer(BeginTransfersCommand(before=str(tmp_path / "mine")))
    assert (tmp_path / "mine").is_dir()  # no folder of transfers
    next_one = answer(BeginTransfersCommand(before=made.path))
    assert isinstance(next_one, TransfersSnapshot) and not Path(made.path).exists()
    Path(made.path).mkdir()  # somebody else's, with the name that has become free
    folders.remove_folder(made.path)
    Path(made.path).rmdir()
    made = next_one
    monkeypatch.setattr(temporary, "_lives", lambda pid: False)
    temporary.sweep()
    assert not Path(made.path).exists()


def test_digests_are_of_the_files_that_are_there_and_not_too_large(tmp_path: Path, monkeypatch):
    (tmp_path / "a").write_bytes(b"12345")
    paths = tuple(str(tmp_path / name) for name in ("a", "gone"))
    digest = hashlib.sha256(b"12345").hexdigest()
    for most, expected in ((5, {paths[0]: digest}), (4, {})):
        monkeypatch.setattr(limits, "MAX_FILE_BYTES", most)
        found = answer(ReadDigestsCommand(paths=paths))
        assert isinstance(found, DigestsSnapshot) and found.digests == expected
