"""Folders of torch.distributed.checkpoint: `.metadata`, and the pieces that each rank wrote."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ...system.errors import LabError
from ...tensors.readable import dtype_name
from ..contents.archive import Archive
from ..contents.artifact import Artifact, Entry, plain, with_own_keys
from ..contents.descriptions import Global, NotAPickle, OtherObject, TensorOf
from ..contents.entries import entries_of
from ..contents.file_bytes import checked_shape, require_memory
from ..contents.pickles import MAX_PICKLE_BYTES, MoreThanWeights, read_pickle, refusal
from .torch_file import described, storages

METADATA = ".metadata"
_HINT = "Copy the whole folder again: .metadata and all .distcp files."


@dataclass(frozen=True, slots=True)
class _Piece:
    """A box of a tensor, and the bytes of a file that hold it as a file of torch.save."""

    file: Path
    offset: int
    length: int
    starts: tuple[int, ...]
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pieces:
    """A tensor in pieces: they are put together when it is read."""

    key: str
    dtype: torch.dtype
    pieces: tuple[_Piece, ...]

    def read(self, shape: tuple[int, ...]) -> Tensor:
        if len(self.pieces) == 1 and self.pieces[0].sizes == shape:
            return self._tensor(self.pieces[0])
        require_memory(math.prod(shape) * self.dtype.itemsize, self.key)
        whole = torch.empty(shape, dtype=self.dtype)
        for piece in self.pieces:
            box = tuple(
                slice(at, at + size) for at, size in zip(piece.starts, piece.sizes, strict=True)
            )
            whole[box] = self._tensor(piece)
        return whole

    def _tensor(self, piece: _Piece) -> Tensor:
        archive = Archive(piece.file, (piece.offset, piece.length))
        value = described(piece.file.name, archive, "data.pkl")
        if not isinstance(value, TensorOf):
            raise LabError(
                f"A piece of {self.key} in {piece.file.name} is not a tensor.", hint=_HINT
            )
        (entry,) = entries_of(value, storages(archive, "data/"))
        if entry.place is None or value.dtype != self.dtype or entry.shape != piece.sizes:
            raise LabError(
                f"A piece of {self.key} in {piece.file.name} is not what .metadata says.",
                hint=_HINT,
            )
        return entry.place.read(entry.shape)


def open_dcp(folder: Path) -> Artifact:
    """The index of the folder. Raises LabError."""
    path = folder / METADATA
    try:
        if path.stat().st_size > MAX_PICKLE_BYTES:
            raise LabError(f"{METADATA} of {folder.name} is larger than any index.")
        top = _fields(read_pickle(path.read_bytes(), _is_of_dcp))
        entries, parts = _entries(folder, top)
    except MoreThanWeights as found:
        raise refusal(f"{METADATA} of {folder.name}", found) from None
    except (NotAPickle, KeyError, TypeError, AttributeError) as error:
        raise LabError(
            f"{METADATA} of {folder.name} cannot be read: {plain(str(error), 100)}.", hint=_HINT
        ) from error
    return Artifact(
        folder,
        "dcp",
        "folder of torch.distributed.checkpoint",
        with_own_keys(entries),
        {"files": ", ".join(part.name for part in parts[:20])},
        parts=(path, *parts),
    )


def _entries(folder: Path, top: dict[str, Any]) -> tuple[list[Entry], list[Path]]:
    """The entries of the index, and the files that they lie in."""
    places = {_index(key): _fields(value) for key, value in (top.get("storage_data") or {}).items()}
    files: dict[str, Path] = {}
    file_bytes: dict[str, int] = {}
    entries = []
    for key, value in top["state_dict_metadata"].items():
        if not value.name.endswith("TensorStorageMetadata"):
            note = "its pickle is not read"
            entries.append(Entry(key, "value", dtype="bytes", text="an object", note=note))
            continue
        tensor = _fields(value)
        shape = checked_shape(plain(key, 80), tensor["size"])
        dtype = _dtype(tensor["properties"])
        pieces = []
        for chunk in map(_fields, tensor["chunks"]):
            starts = checked_shape(key, tensor and chunk["offsets"])
            sizes = checked_shape(key, chunk["sizes"])
            _check_inside(key, shape, starts, sizes)
            place = places.get((key, starts)) or places.get((key, ()))
            if place is None:
                raise LabError(f"{METADATA} does not say where {plain(key, 80)} is.", hint=_HINT)
            name = place["relative_path"]
            if name not in files:
                files[name] = _inside(folder, name)
                file_bytes[name] = files[name].stat().st_size
            at, length = place["offset"], place["length"]
            if at < 0 or length < 0 or at + length > file_bytes[name]:
                raise LabError(
                    f"{plain(name, 80)} does not have {plain(key, 80)} where {METADATA} says.",
                    hint=_HINT,
                )
            pieces.append(_Piece(files[name], at, length, starts, sizes))
        if sum(math.prod(piece.sizes) for piece in pieces) < math.prod(shape):
            raise LabError(f"{plain(key, 80)} lacks some of its pieces.", hint=_HINT)
        size = math.prod(shape) * dtype.itemsize
        note = f"in {len(pieces)} pieces" if len(pieces) > 1 else ""
        where = pieces[0].file.name if pieces else ""
        entries.append(
            Entry(
                key, "tensor", shape, dtype_name(dtype), size, Pieces(key, dtype, tuple(pieces)),
                pieces[0].offset if pieces else None, where, note=note,
            )
        )  # fmt: skip
    return entries, list(files.values())


def _is_of_dcp(name: str) -> bool:
    return name.startswith(("torch.distributed.", "pathlib."))


def _fields(made: Any) -> dict[str, Any]:
    """The fields of a described dataclass."""
    if not isinstance(made, OtherObject) or not isinstance(made.state, dict):
        raise TypeError("an object of the index has no fields")
    return made.state


def _index(key: Any) -> tuple[str, tuple[int, ...]]:
    fields = _fields(key)
    return fields["fqn"], tuple(fields.get("offset") or ())


def _dtype(properties: Any) -> torch.dtype:
    state = properties.state if isinstance(properties, OtherObject) else None
    found = state[0] if isinstance(state, tuple) and state else None
    if isinstance(state, dict):
        found = state["dtype"]
    if not isinstance(found, Global) or not isinstance(found.value, torch.dtype):
        raise TypeError("a tensor of the index has no dtype")
    return found.value


def _check_inside(
    key: str, shape: tuple[int, ...], starts: tuple[int, ...], sizes: tuple[int, ...]
) -> None:
    fits = len(starts) == len(sizes) == len(shape) and all(
        at + size <= whole for at, size, whole in zip(starts, sizes, shape, strict=True)
    )
    if not fits:
        raise LabError(f"A piece of {plain(key, 80)} lies outside of the tensor.", hint=_HINT)


def _inside(folder: Path, name: Any) -> Path:
    if not isinstance(name, str) or Path(name).name != name or name in ("", ".", ".."):
        raise LabError(
            f"{folder.name} was refused: its index names {plain(str(name), 80)}, outside of it."
        )
    if not (folder / name).is_file():
        raise LabError(f"{folder.name} lacks {plain(name, 80)}.", hint=_HINT)
    return folder / name
