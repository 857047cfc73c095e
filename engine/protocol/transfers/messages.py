"""The contents of folders of the engine's machine, and files in parts, both ways."""

from __future__ import annotations

from msgspec import Struct

from ..commands import Command
from ..snapshots import Snapshot

PART_BYTES = 192 * 1024
"""Bytes of a file in one message."""


def is_file_name(text: str) -> bool:
    """Whether it names a file of a folder, and no other place on any system."""
    return text not in ("", ".", "..") and not set(text) & {"/", "\\", "\0"}


class ListFolderCommand(Command, frozen=True, kw_only=True):
    """List a folder -> FolderSnapshot. "" is the user's home."""

    handler = "transfers:list_folder"
    apart = True
    path: str = ""


class BeginTransfersCommand(Command, frozen=True, kw_only=True):
    """Make a folder for files on their way from or to the window -> TransfersSnapshot. `before` is
    such a folder that is wanted no more."""

    handler = "transfers:begin_transfers"
    apart = True
    before: str = ""


class ReadPartCommand(Command, frozen=True, kw_only=True):
    """Read PART_BYTES of a file -> PartSnapshot."""

    handler = "transfers:read_part"
    apart = True
    path: str
    offset: int = 0


class WritePartCommand(Command, frozen=True, kw_only=True):
    """Write a part of a file; the part at offset 0 begins the file anew -> PartSnapshot."""

    handler = "transfers:write_part"
    apart = True
    path: str
    offset: int = 0
    data: bytes = b""


class ReadDigestsCommand(Command, frozen=True, kw_only=True):
    """Read files of source, to see whether they have changed -> DigestsSnapshot."""

    handler = "transfers:read_digests"
    apart = True
    paths: tuple[str, ...]


class FolderEntry(Struct, frozen=True):
    name: str
    is_folder: bool
    size_bytes: int = 0


class FolderSnapshot(Snapshot, frozen=True, kw_only=True):
    """A folder: folders first, by name. `left` is the number of entries that are not listed.
    `parent` is "" at the top."""

    path: str
    parent: str
    entries: tuple[FolderEntry, ...] = ()
    left: int = 0


class TransfersSnapshot(Snapshot, frozen=True, kw_only=True):
    path: str


class DigestsSnapshot(Snapshot, frozen=True, kw_only=True):
    """The SHA-256 of each file that can be read, by the path that was asked for."""

    digests: dict[str, str]


class PartSnapshot(Snapshot, frozen=True, kw_only=True):
    """A part that was read, or written. `size_bytes` is the file's; of a folder `names` are what it
    holds, and there is no part."""

    path: str
    offset: int = 0
    data: bytes = b""
    size_bytes: int = 0
    is_folder: bool = False
    names: tuple[str, ...] = ()
