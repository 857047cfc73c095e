"""Answers about memory: a storage's cells, who reads a cell, which tensors share a storage."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from .snapshots import Snapshot


class Contiguity(Struct, frozen=True):
    """Whether a tensor's elements are in row-by-row order in its storage. `breaking_dim` is the
    first dimension from the right whose stride is not the `expected` one; `copy_bytes` is what
    `.contiguous()` would copy (0 if it returns the tensor itself)."""

    is_contiguous: bool
    expected: tuple[int, ...]
    text: str
    breaking_dim: int | None = None
    copy_bytes: int = 0
    channels_last: bool = False


class WrittenBy(Struct, frozen=True):
    """A line of the console that wrote or made a tensor: the operation, the cell's name, the
    1-based line in it and its text. `op` is empty if it was not seen (as for writes by
    backward)."""

    op: str
    cell: str
    line: int | None = None
    text: str = ""


class StorageSnapshot(Snapshot, frozen=True, kw_only=True):
    """A window of the storage of the tensor `expression`, in cells of its own element size.

    `strides` and `offset` are in elements. `values`, `readers` and `positions` have an entry for
    each cell from `first` on: its value (empty if it cannot be read), how many of the tensor's
    elements read it (0: a gap; counted up to 99), and the number of one of these elements, row by
    row (-1: none). `storage` is the storage's number as in `Variable`. If `cells` is None, the
    tensor has no storage to show, and `note` says why.
    """

    expression: str
    shape: tuple[int, ...]
    dtype: str
    device: str
    strides: tuple[int, ...] = ()
    offset: int = 0
    element_bytes: int = 0
    storage: int | None = None
    storage_bytes: int = 0
    cells: int | None = None
    first: int = 0
    values: tuple[str, ...] = ()
    readers: tuple[int, ...] = ()
    positions: tuple[int, ...] = ()
    contiguity: Contiguity | None = None
    version: int | None = None
    written_by: WrittenBy | None = None
    note: str = ""


class CellReader(Struct, frozen=True):
    """A tensor or NumPy array that the console's variables hold (`model[0].weight`, `xs[1]`), and
    its elements that read a cell. `more`: not all of them are listed."""

    expression: str
    elements: tuple[tuple[int, ...], ...]
    more: bool = False
    kind: Literal["tensor", "numpy"] = "tensor"


class LocationSnapshot(Snapshot, frozen=True, kw_only=True):
    """A cell of the storage of `expression`, an element there (None for a gap), and all that read
    any byte of the cell, `expression` first. `note` says what was not searched."""

    expression: str
    index: tuple[int, ...] | None
    cell: int
    readers: tuple[CellReader, ...]
    note: str = ""


class StorageNode(Struct, frozen=True):
    """A storage with its number as in `Variable`. All its tensors share `version` (None if torch
    counts none); writes by NumPy are not counted."""

    storage: int
    size_bytes: int
    device: str
    version: int | None = None
    written_by: WrittenBy | None = None


class AliasNode(Struct, frozen=True):
    """A tensor or array on a storage. `names` are its variables: several for one object (`y = x`),
    none for a base that only its views keep alive.

    `kind`: "base" (owns the storage), "view", "detached" (shares memory and version, not the
    graph), "shared" (shares memory in another way: `.data`, a Parameter), "numpy". `parent` is the
    number, in `AliasesSnapshot.tensors`, of the tensor that it was made from by `op`; None if it
    was made from the storage itself. `root` is the number of its `_base`.
    """

    names: tuple[str, ...]
    kind: Literal["base", "view", "detached", "shared", "numpy"]
    storage: int
    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...]
    offset: int
    parent: int | None = None
    root: int | None = None
    op: str = ""
    made_by: WrittenBy | None = None
    requires_grad: bool = False


class AliasesSnapshot(Snapshot, frozen=True, kw_only=True):
    """Storages and their tensors, in the order the variables were made; parents come before their
    children. Tensors inside other variables are listed if they share memory. `left_out` tensors did
    not fit; `note` says what was not searched."""

    storages: tuple[StorageNode, ...]
    tensors: tuple[AliasNode, ...]
    left_out: int = 0
    note: str = ""
