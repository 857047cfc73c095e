"""The graph that autograd recorded, read node by node without disturbing it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import count
from typing import Any, NamedTuple

import torch
from torch.autograd.graph import GradientEdge, get_gradient_edge

from ...protocol import TensorSpec
from ...recording.writes import storage_of
from ...tensors.readable import dtype_name
from .deep_graphs import LEAF_SEQUENCE, guard_release

Root = torch.Tensor | GradientEdge

MAX_NODES = 1_000_000

AccumulateGrad = type(get_gradient_edge(torch.zeros((), requires_grad=True)).node)
"""torch's class for the node that adds to a leaf's `.grad`; torch exports it under no name."""


class Edge(NamedTuple):
    """The gradient's way: `next_functions[input]` of node `source` is output `output` of node
    `target`. Parallel edges (`x * x`) are separate entries."""

    source: int
    input: int
    target: int
    output: int


@dataclass(frozen=True)
class SavedTensor:
    """A tensor that a node keeps for its backward rule, without unpacking it.

    `data` is None when it cannot be shown, `note` then says why (freed, packed by hooks).
    `storage_bytes` is the size of the whole storage it keeps alive, identified by `storage_id`.
    """

    name: str
    data: torch.Tensor | None
    storage_id: int = 0
    storage_bytes: int = 0
    note: str = ""


@dataclass(eq=False, slots=True)
class Node:
    """One node: `fn` is torch's own object, `label` the name of its variable (leaves only).

    All else is asked of `fn` when it is wanted, so that reading a large graph stays cheap.
    """

    id: int
    fn: Any
    label: str = ""

    @property
    def name(self) -> str:
        """As torch calls it, without namespace: `"AddmmBackward0"`, `"AccumulateGrad"`."""
        return self.fn.name().rpartition("::")[2]

    @property
    def op(self) -> str:
        """The forward operation, as far as the name tells: `"addmm"`, or a Function's name."""
        return operation(self.name, custom=self.is_custom)

    @property
    def is_leaf(self) -> bool:
        """True for AccumulateGrad: the node that adds to a leaf's `.grad`."""
        return isinstance(self.fn, AccumulateGrad)

    @property
    def is_custom(self) -> bool:
        """True for the backward of a Python `torch.autograd.Function`."""
        return isinstance(self.fn, torch.autograd.function.BackwardCFunction)

    @property
    def variable(self) -> torch.Tensor | None:
        """The leaf whose `.grad` this node adds to."""
        return self.fn.variable if self.is_leaf else None

    @property
    def sequence(self) -> int:
        """torch's sequence number within the thread of the forward pass; -1 for leaves, and for
        the node that stands where a second derivative is missing."""
        number = self.fn._sequence_nr()
        return -1 if number == LEAF_SEQUENCE else number

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """Shape and dtype of each output of the forward operation (one gradient comes for each).
        A dimension that is no number has its name (`"j1"`, ragged). () and `"unknown"` stand for
        an output without gradient: an integer one, or none at all."""
        metadata = self.fn._input_metadata
        if len(metadata) == 1:
            return (_spec(metadata[0]),)
        return tuple(_NO_TENSOR if _is_undefined(each) else _spec(each) for each in metadata)

    @property
    def device(self) -> str:
        """Where the first result of the forward operation is: `"cpu"`, `"cuda:0"`."""
        return next(iter(self.devices), "")

    @property
    def devices(self) -> tuple[str, ...]:
        """Where each result of the forward operation is."""
        return tuple(str(metadata.device) for metadata in self.fn._input_metadata)

    @property
    def saved(self) -> tuple[SavedTensor, ...]:
        """What the node keeps for its rule. Runs no unpack hooks, recomputes no checkpoint, and
        works after a bad in-place change and on a freed graph."""
        return tuple(_saved(self.fn))

    @property
    def saved_bytes(self) -> int:
        """Bytes of the storages this node keeps alive, each counted once."""
        return sum({s.storage_id: s.storage_bytes for s in self.saved}.values())

    @property
    def is_freed(self) -> bool:
        """Whether nothing is left of what it saved: a backward pass has run it."""
        saved = self.saved
        return any(s.note == "freed" for s in saved) and all(s.data is None for s in saved)

    def __repr__(self) -> str:
        return f"<{self.id} {self.name}{' ' + self.label if self.label else ''}>"


@dataclass(eq=False)
class Graph:
    """Nodes by id (breadth first from the roots, so 0 is the first root) and the edges between.

    `roots` are (node id, output number) of what was asked for. `truncated` is the number of
    nodes seen but left out at the cap; what lies below those is unknown.
    """

    nodes: list[Node]
    edges: list[Edge]
    roots: list[tuple[int, int]]
    truncated: int = 0
    _ids: dict[Any, int] = field(default_factory=dict, repr=False)

    def node_of(self, fn: Any) -> Node:
        """The node of a `grad_fn`; raises KeyError if it is not in this graph."""
        return self.nodes[self._ids[fn]]

    def get(self, fn: Any) -> Node | None:
        """As `node_of`, None if it is not in this graph."""
        place = self._ids.get(fn)
        return None if place is None else self.nodes[place]

    @property
    def saved_bytes(self) -> int:
        """Bytes of all storages that the graph keeps alive, shared ones counted once."""
        return sum({s.storage_id: s.storage_bytes for n in self.nodes for s in n.saved}.values())

    def __repr__(self) -> str:
        return f"<Graph of {len(self.nodes):,} nodes, {len(self.edges):,} edges>"


def read_graph(
    root: Root | Iterable[Root],
    *,
    names: Mapping[str, torch.Tensor] | None = None,
    max_nodes: int = MAX_NODES,
) -> Graph:
    """Read the graph under one tensor or several.

    `names` labels the leaves, e.g. `dict(model.named_parameters())`. Nothing is unpacked,
    executed or changed, so a freed graph or one with an in-place mistake reads as well. Raises
    ValueError when a root has no graph (it does not require grad).
    """
    label_of = {id(t): name for name, t in (names or {}).items()}
    edges: list[Edge] = []
    fns: list[Any] = []
    ids: dict[Any, int] = {}
    left_out: set[Any] = set()
    starts = [gradient_edge(r) for r in as_roots(root)]
    for start in starts:
        if start.node not in ids:
            ids[start.node] = len(fns)
            fns.append(start.node)
    for source, fn in enumerate(fns):  # grows while it is walked
        for input_nr, (target_fn, output_nr) in enumerate(fn.next_functions):
            if target_fn is None:
                continue
            target = ids.get(target_fn)
            if target is None:
                if len(fns) >= max_nodes:
                    left_out.add(target_fn)
                    continue
                target = ids[target_fn] = len(fns)
                fns.append(target_fn)
            edges.append(Edge(source, input_nr, target, output_nr))
    guard_release(fns)
    nodes = list(map(Node, count(), fns))
    if label_of:
        for node in nodes:
            variable = node.variable
            if variable is not None:
                node.label = label_of.get(id(variable), "")
    return Graph(
        nodes, edges, [(ids[s.node], s.output_nr) for s in starts], len(left_out), _ids=ids
    )


def as_roots(root: Root | Iterable[Root]) -> list[Root]:
    """One root or several, as a list. Raises ValueError on an empty one, TypeError on what is no
    tensor."""
    several = isinstance(root, Iterable) and not isinstance(root, torch.Tensor | GradientEdge)
    roots: list[Root] = list(root) if several else [root]  # type: ignore
    if not roots:
        raise ValueError("no root given: a graph is read from at least one tensor")
    for each in roots:
        if not isinstance(each, torch.Tensor | GradientEdge):
            raise TypeError(f"a graph is read from a tensor, or several; got {each!r:.60}")
    return roots


def gradient_edge(root: Root) -> GradientEdge:
    """Where the gradient of `root` enters the graph. Raises ValueError if there is none."""
    if isinstance(root, GradientEdge):
        return root
    if not root.requires_grad:
        raise ValueError(
            f"a tensor of shape {tuple(root.shape)} does not require grad, so no graph was "
            "recorded for it: it was made from inputs without requires_grad, under no_grad, or "
            "detached"
        )
    return get_gradient_edge(root)


@lru_cache(maxsize=4_096)
def operation(name: str, *, custom: bool = False) -> str:
    """`"AddmmBackward0"` -> `"addmm"`, `"NllLossBackward0"` -> `"nll_loss"`."""
    stem = re.sub(r"Backward\d*$", "", name) or name
    return stem if custom else _WORD_STARTS.sub("_", stem).lower()


_NO_TENSOR = TensorSpec((), "unknown")


def _spec(metadata: Any) -> TensorSpec:
    try:
        shape = metadata.shape
    except RuntimeError:  # a strided nested tensor has no one shape
        return TensorSpec(("nested",), dtype_name(metadata.dtype))
    return _known_spec(tuple(n if isinstance(n, int) else str(n) for n in shape), metadata.dtype)


@lru_cache(maxsize=4_096)
def _known_spec(shape: tuple[int | str, ...], dtype: torch.dtype) -> TensorSpec:
    return TensorSpec(shape, dtype_name(dtype))


def _is_undefined(metadata: Any) -> bool:
    """Whether an output has no metadata: torch answers with its defaults then, whatever they are
    at the moment."""
    default = torch.get_default_dtype()
    try:
        if metadata.dtype is not default or len(metadata.shape):
            return False
    except RuntimeError:  # a strided nested tensor
        return False
    torch.set_default_dtype(torch.float64 if default is not torch.float64 else torch.float32)
    try:
        return metadata.dtype is not default
    finally:
        torch.set_default_dtype(default)


_WORD_STARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z][a-z0-9])|(?<=[0-9][A-Z])(?=[A-Z])")


@cache
def _saved_attributes(kind: type) -> tuple[str, ...]:
    return tuple(a for a in dir(kind) if a.startswith("_raw_saved_"))


def _saved(fn: Any) -> Iterator[SavedTensor]:
    for attribute in _saved_attributes(type(fn)):
        name = attribute.removeprefix("_raw_saved_")
        try:
            kept = getattr(fn, attribute)
        except RuntimeError as error:
            yield SavedTensor(name, None, note="freed" if "freed" in str(error) else str(error))
            continue
        if isinstance(kept, tuple):
            for i, each in enumerate(kept):
                yield _saved_tensor(f"{name}[{i}]", each)
        else:
            yield _saved_tensor(name, kept)


def _why_empty(kept: Any) -> str:
    """Why a saved tensor is none: torch refuses to unpack one that it let go of."""
    try:
        kept.unpack()
    except RuntimeError:
        return "freed"
    return "never set"


def _saved_tensor(name: str, kept: Any) -> SavedTensor:
    data, packed = kept.data, kept.unpack_hook is not None
    if not isinstance(data, torch.Tensor):
        return SavedTensor(name, None, note="packed by hooks" if packed else _why_empty(kept))
    storage = storage_of(data)
    size = data.numel() * data.element_size() if storage is None else storage.nbytes()
    return SavedTensor(name, data, storage_id(data), size, "packed by hooks" if packed else "")


def storage_id(t: torch.Tensor) -> int:
    """What tells its storage from others; a sparse tensor has none and stands for itself."""
    storage = storage_of(t)
    return id(t) if storage is None else storage._cdata
