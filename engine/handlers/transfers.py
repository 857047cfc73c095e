"""Answers about the files of this machine, for a window on another one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..lab import Lab
from ..project import limits
from ..project.atomic import digest_of
from ..protocol import (
    BeginTransfersCommand,
    DigestsSnapshot,
    FolderEntry,
    FolderSnapshot,
    ListFolderCommand,
    PartSnapshot,
    ReadDigestsCommand,
    ReadPartCommand,
    TransfersSnapshot,
    WritePartCommand,
)
from ..protocol.transfers.messages import PART_BYTES
from ..transfers import folders


def list_folder(lab: Lab, command: ListFolderCommand) -> Iterator[FolderSnapshot]:
    path = Path(command.path or Path.home()).expanduser().absolute()
    entries = folders.entries_of(path)
    yield FolderSnapshot(
        path=str(path),
        parent="" if path.parent == path else str(path.parent),
        entries=tuple(FolderEntry(*entry) for entry in entries[: folders.MOST_ENTRIES]),
        left=max(0, len(entries) - folders.MOST_ENTRIES),
    )


def begin_transfers(lab: Lab, command: BeginTransfersCommand) -> Iterator[TransfersSnapshot]:
    folders.remove_folder(command.before)
    yield TransfersSnapshot(path=str(folders.new_folder()))


def read_part(lab: Lab, command: ReadPartCommand) -> Iterator[PartSnapshot]:
    path = Path(command.path)
    if path.is_dir():
        names = tuple(entry.name for entry in folders.entries_of(path))
        yield PartSnapshot(path=command.path, is_folder=True, names=names)
        return
    data, size_bytes = folders.read_part(path, command.offset, PART_BYTES)
    yield PartSnapshot(path=command.path, offset=command.offset, data=data, size_bytes=size_bytes)


def write_part(lab: Lab, command: WritePartCommand) -> Iterator[PartSnapshot]:
    size_bytes = folders.write_part(Path(command.path), command.offset, command.data)
    yield PartSnapshot(path=command.path, offset=command.offset, size_bytes=size_bytes)


def read_digests(lab: Lab, command: ReadDigestsCommand) -> Iterator[DigestsSnapshot]:
    found = {path: digest_of(path, limits.MAX_FILE_BYTES) for path in command.paths}
    yield DigestsSnapshot(digests={path: digest for path, digest in found.items() if digest})
