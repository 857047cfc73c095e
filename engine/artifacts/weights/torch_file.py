"""Files of torch.save: state_dicts and checkpoints, as zip archives or in the format before 1.6."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import torch

from ...system.errors import LabError
from ..contents.archive import Archive
from ..contents.artifact import Artifact, Entry, damaged, with_own_keys
from ..contents.descriptions import NotAPickle, StorageOf, TensorOf
from ..contents.entries import entries_of
from ..contents.file_bytes import FileBytes
from ..contents.pickles import MAX_PICKLE_BYTES, MoreThanWeights, read_first, read_pickle, refusal

_MAGIC = 0x1950A86A20F9469CFC6C
_PROTOCOL = 1001
_OF_OURS = frozenset({"format", "run", "step", "epoch", "model", "optimizer"})


def open_zip(path: Path, archive: Archive) -> Artifact:
    """A file of torch.save since 1.6. Raises LabError."""
    records = archive.inner()
    value = described(path.name, archive, "data.pkl")
    locate = storages(archive, "data/")
    metadata = {
        name: archive.read(records[name], 200).decode(errors="replace").strip()
        for name in (".format_version", "version", "byteorder")
        if name in records
    }
    return _artifact(path, value, with_own_keys(entries_of(value, locate)), metadata)


def described(
    name: str, archive: Archive, record: str, classes: Callable[[str], bool] = lambda name: False
) -> Any:
    """The objects that a pickle of the archive describes. Raises LabError."""
    records = archive.inner()
    if record not in records:
        raise damaged(name, f"it has no {record}")
    try:
        return read_pickle(archive.read(records[record], MAX_PICKLE_BYTES), classes)
    except MoreThanWeights as found:
        raise refusal(name, found) from None
    except NotAPickle as error:
        raise damaged(name, f"{record}: {error}") from error


def storages(archive: Archive, folder: str) -> Callable[[StorageOf], FileBytes]:
    """Finds the storages that lie in a folder of the archive."""
    records = archive.inner()
    record = records.get("byteorder")
    order = b"little" if record is None else archive.read(record, 20).strip()
    if order not in (b"little", b"big"):
        raise damaged(archive.path.name, "its byteorder is neither little nor big")
    swapped = order == b"big"
    starts: dict[str, int] = {}

    def locate(storage: StorageOf) -> FileBytes:
        record = records.get(folder + storage.key)
        size = storage.count * storage.dtype.itemsize
        if record is None or record.size_bytes < size:
            raise damaged(
                archive.path.name, f"the numbers of storage {storage.key[:40]} are missing"
            )
        if storage.key not in starts:
            starts[storage.key] = archive.start_of(record)
        return FileBytes(archive.path, starts[storage.key], size, storage.dtype, swapped=swapped)

    return locate


def open_legacy(path: Path) -> Artifact:
    """A file of torch.save before 1.6: five pickles, then the storages. Raises LabError."""
    with path.open("rb") as file:
        try:
            first = read_first(_Bounded(file))
            if first != _MAGIC or read_first(_Bounded(file)) != _PROTOCOL:
                raise LabError(
                    f"{path.name} is a pickle that torch.save did not write.",
                    hint="Save its tensors by torch.save(state_dict, path), or as .safetensors.",
                )
            little = read_first(_Bounded(file)).get("little_endian", True)
            value = read_first(_Bounded(file))
            keys = read_first(_Bounded(file))
        except MoreThanWeights as found:
            raise refusal(path.name, found) from None
        except (NotAPickle, AttributeError) as error:
            raise damaged(path.name, str(error)) from error
        if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
            raise damaged(path.name, "its list of storages is damaged")
        start, end = file.tell(), file.seek(0, 2)
        places = _legacy_places(path, file, keys, _dtypes(value), start, end)

    def locate(storage: StorageOf) -> FileBytes:
        found = places.get(storage.key)
        if found is None or found[1] < storage.count:
            raise damaged(path.name, f"the numbers of storage {storage.key[:40]} are missing")
        size = storage.count * storage.dtype.itemsize
        return FileBytes(path, found[0], size, storage.dtype, swapped=not little)

    entries = with_own_keys(entries_of(value, locate))
    return _artifact(path, value, entries, {"format": "before torch 1.6"})


def _legacy_places(
    path: Path, file: BinaryIO, keys: list[str], dtypes: dict[str, torch.dtype], at: int, end: int
) -> dict[str, tuple[int, int]]:
    """Where each storage begins, and its number of elements: they stand one after the other, each
    after its length."""
    places = {}
    for key in keys:
        file.seek(at)
        head = file.read(8)
        if len(head) < 8 or key not in dtypes:
            raise damaged(path.name, "it is cut off")
        (count,) = struct.unpack("<q", head)
        size = count * dtypes[key].itemsize
        if count < 0 or at + 8 + size > end:
            raise damaged(path.name, "it is cut off")
        places[key] = at + 8, count
        at += 8 + size
    return places


def _dtypes(value: Any) -> dict[str, torch.dtype]:
    """The dtypes of all storages that a description names."""
    found: dict[str, torch.dtype] = {}

    def note(storage: StorageOf) -> FileBytes:
        found[storage.key] = storage.dtype
        return FileBytes(Path(), 0, storage.count * storage.dtype.itemsize, storage.dtype)

    for _ in entries_of(value, note):
        pass
    return found


def _artifact(
    path: Path, value: Any, entries: tuple[Entry, ...], metadata: dict[str, str]
) -> Artifact:
    title = "PyTorch file"
    if isinstance(value, TensorOf):
        title = "tensor of PyTorch"
    elif isinstance(value, dict):
        is_ours = value.keys() >= _OF_OURS
        is_state = value and all(isinstance(each, TensorOf) for each in value.values())
        title = "checkpoint of Tensor Lab" if is_ours else "PyTorch checkpoint"
        title = "PyTorch state_dict" if is_state else title
    return Artifact(path, "torch", title, entries, metadata)


class _Bounded:
    """A file that gives one pickle at most MAX_PICKLE_BYTES."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._left = MAX_PICKLE_BYTES

    def read(self, count: int) -> bytes:
        return self._take(self._file.read(min(count, self._left)))

    def readline(self) -> bytes:
        return self._take(self._file.readline(self._left))

    def readinto(self, buffer: bytearray) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _take(self, data: bytes) -> bytes:
        self._left -= len(data)
        return data
