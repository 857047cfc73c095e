"""Messages about files that hold tensors or programs."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from .commands import Command
from .snapshots import Snapshot
from .values import Dim


class OpenArtifactCommand(Command, frozen=True, kw_only=True):
    """Read the index of a file or folder -> ArtifactSnapshots, the parts of one index."""

    handler = "artifacts:open_file"
    while_held = True
    path: str


class CompareArtifactsCommand(Command, frozen=True, kw_only=True):
    """Compare two files key by key -> ArtifactDifferenceSnapshots, the parts of one comparison;
    before them ones without rows, which say how far it is."""

    handler = "artifacts:compare_files"
    path: str
    other: str


class ProgramValue(Struct, frozen=True, array_like=True, gc=False):
    """A value that a program passes on. Without a known shape, `dtype` says what it is, if that is
    known."""

    name: str
    shape: tuple[Dim, ...] | None = None
    dtype: str = ""


class ProgramNode(Struct, frozen=True, array_like=True, gc=False):
    """One operation of a program. `module` is the dotted path of the module that it came from,
    `inputs` are names of values: of other nodes' outputs, of the program's inputs, of tensors."""

    name: str
    op: str
    module: str = ""
    inputs: tuple[str, ...] = ()
    outputs: tuple[ProgramValue, ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()


class ProgramModule(Struct, frozen=True, array_like=True, gc=False):
    """A module of a program: its dotted path, and the name of its class."""

    path: str
    type: str


class ProgramGraph(Struct, frozen=True):
    """A program. The values that are tensors of the file are told by `ArtifactEntry.value`."""

    inputs: tuple[ProgramValue, ...] = ()
    outputs: tuple[ProgramValue, ...] = ()
    modules: tuple[ProgramModule, ...] = ()
    nodes: tuple[ProgramNode, ...] = ()
    note: str = ""


class ArtifactEntry(Struct, frozen=True, array_like=True, gc=False):
    """A tensor of a file, or another value (`text`). `offset` is where the numbers begin in the
    file, or in `part` of a folder. `shares` is the key of the first earlier tensor that has some of
    its bytes, and `added_bytes` are those that no earlier tensor has. `role` is "parameter" or
    "buffer" where that is known. With `readable` its numbers can be read; else `note` says why
    not. `value` is its name in the file's program."""

    key: str
    kind: Literal["tensor", "value"]
    shape: tuple[int, ...] = ()
    dtype: str = ""
    size_bytes: int = 0
    offset: int | None = None
    part: str = ""
    shares: str = ""
    role: str = ""
    text: str = ""
    note: str = ""
    readable: bool = False
    value: str = ""
    added_bytes: int = 0

    @property
    def sharing(self) -> str:
        """In words, with which tensor it shares memory; "" if it shares none."""
        if not self.shares:
            return ""
        rest = f", except {self.added_bytes:,} bytes" if self.added_bytes else ""
        return f"shares memory with {self.shares}{rest}"


class ArtifactTotals(Struct, frozen=True):
    """Memory that tensors share counts once in `elements` and `tensor_bytes`."""

    tensors: int
    elements: int
    tensor_bytes: int
    values: int
    nodes: int = 0


class ArtifactSnapshot(Snapshot, frozen=True, kw_only=True):
    """The index of a file, or a part of it: `left` entries, modules and nodes are still to come.
    `kind` is a short word (`onnx`), `title` says what the file is. `graph` is its program, None if
    it has none."""

    path: str
    kind: str
    title: str
    size_bytes: int
    metadata: tuple[tuple[str, str], ...] = ()
    entries: tuple[ArtifactEntry, ...] = ()
    totals: ArtifactTotals
    graph: ProgramGraph | None = None
    note: str = ""
    left: int = 0


ArtifactVerdict = Literal[
    "equal", "different", "shape", "dtype", "only first", "only second", "unread"
]


class ArtifactDifference(Struct, frozen=True, array_like=True, gc=False):
    """How a key differs. `first` and `second` tell shape and dtype, or the value; empty on the side
    that does not have it. `absolute` is the largest |first - second|, `relative` the largest
    |first - second| / |second|, None where nothing can be subtracted."""

    key: str
    verdict: ArtifactVerdict
    first: str = ""
    second: str = ""
    absolute: float | None = None
    relative: float | None = None
    note: str = ""


class ArtifactDifferenceSnapshot(Snapshot, frozen=True, kw_only=True):
    """A part of a comparison; `left` rows are still to come. `done` of `total` keys have been
    compared."""

    path: str
    other: str
    rows: tuple[ArtifactDifference, ...] = ()
    done: int = 0
    total: int = 0
    left: int = 0
