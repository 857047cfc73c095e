"""The graph that autograd recorded, read node by node and not changed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from typing import Any, NamedTuple

import torch
from msgspec import Struct
from torch.autograd.graph import GradientEdge, get_gradient_edge

from ...protocol import GraphEdge, TensorSpec
from .deep_graphs import LEAF_SEQUENCE, guard_release
from .node_facts import SavedTensor, device_name, output_specs, saved_by, storages_of

Root = torch.Tensor | GradientEdge

MAX_NODES = 1_000_000

AccumulateGrad = type(get_gradient_edge(torch.zeros((), requires_grad=True)).node)
"""torch's class of the node that adds to a leaf's `.grad`. torch does not export it."""


class Kind(NamedTuple):
    """What nodes of one class and name have in common. `saves` are the attributes of the class with
    the tensors that a node saved."""

    name: str
    op: str
    is_leaf: bool
    is_custom: bool
    saves: tuple[str, ...]


@lru_cache(maxsize=4_096)
def kind_of(node_class: type, torch_name: str) -> Kind:
    """The kind of a node: its class, and what its `name()` gives."""
    name = torch_name.rpartition("::")[2]
    is_custom = issubclass(node_class, torch.autograd.function.BackwardCFunction)
    return Kind(
        name,
        operation(name, custom=is_custom),
        issubclass(node_class, AccumulateGrad),
        is_custom,
        tuple(a for a in dir(node_class) if a.startswith("_raw_saved_")),
    )


_torchs: dict[type, Kind] = {}
"""The kinds of torch's own classes, whose nodes all have the name of the class, in a namespace."""


def kind_of_node(fn: Any) -> Kind:
    """The kind of a node."""
    return _torchs.get(type(fn)) or _kind_by_name(fn)


def _kind_by_name(fn: Any) -> Kind:
    node_class, torch_name = type(fn), fn.name()
    kind = kind_of(node_class, torch_name)
    if kind.name == node_class.__name__ and not kind.is_custom:
        _torchs[node_class] = kind
    return kind


class Node(Struct, eq=False):
    """One node: `fn` is torch's own object, `kind` what all nodes of its class and name have in
    common, `label` the name of its variable (leaves only).

    The properties are read from `fn` when they are asked for: reading a large graph stays cheap.
    """

    id: int
    fn: Any
    kind: Kind
    label: str = ""

    @property
    def name(self) -> str:
        """torch's name without its namespace: `"AddmmBackward0"`, `"AccumulateGrad"`."""
        return self.kind.name

    @property
    def op(self) -> str:
        """The forward operation, taken from the name: `"addmm"`, or a Function's name."""
        return self.kind.op

    @property
    def is_leaf(self) -> bool:
        """True for AccumulateGrad: the node that adds to a leaf's `.grad`."""
        return self.kind.is_leaf

    @property
    def is_custom(self) -> bool:
        """True for the backward of a Python `torch.autograd.Function`."""
        return self.kind.is_custom

    @property
    def variable(self) -> torch.Tensor | None:
        """The leaf whose `.grad` this node adds to."""
        return self.fn.variable if self.is_leaf else None

    @property
    def sequence(self) -> int:
        """torch's sequence number in the thread of the forward pass. -1 for leaves, and for the
        node that stands for a missing second derivative."""
        return sequences_of((self,))[0]

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """Shape and dtype of each output of the forward operation; the node gets a gradient for
        each. A ragged dimension has a name (`"j1"`) for its size. An output without gradient, such
        as an integer one, has shape () and dtype `"unknown"`."""
        return output_specs(self.fn._input_metadata)

    @property
    def device(self) -> str:
        """The device of the first output of the forward operation: `"cpu"`, `"cuda:0"`."""
        return next(iter(self.devices), "")

    @property
    def devices(self) -> tuple[str, ...]:
        """The device of each output of the forward operation."""
        return tuple(device_name(metadata.device) for metadata in self.fn._input_metadata)

    @property
    def saved(self) -> tuple[SavedTensor, ...]:
        """The tensors that the node saved. Runs no unpack hook and recomputes no checkpoint; works
        on a freed graph and after a bad in-place change."""
        return tuple(saved_by(self.fn, self.kind.saves))

    @property
    def storages(self) -> dict[int, int]:
        """The storages that the node keeps alive: their bytes, by `SavedTensor.storage_id`."""
        return storages_of(self.fn, self.kind.saves)

    @property
    def saved_bytes(self) -> int:
        """Bytes of the storages this node keeps alive, each counted once."""
        return sum(self.storages.values())

    @property
    def is_freed(self) -> bool:
        """Whether all tensors that it saved are freed: a backward pass has run it."""
        saved = self.saved
        return any(s.note == "freed" for s in saved) and all(s.data is None for s in saved)

    def __repr__(self) -> str:
        return f"<{self.id} {self.name}{' ' + self.label if self.label else ''}>"


def sequences_of(nodes: Iterable[Node]) -> list[int]:
    """`Node.sequence` of each of these."""
    return [
        -1 if node.kind.is_leaf or (number := node.fn._sequence_nr()) == LEAF_SEQUENCE else number
        for node in nodes
    ]


@dataclass(eq=False)
class Graph:
    """The nodes, whose ids count breadth first from the roots (0 is the first root), and the edges.

    An edge is the way of a gradient: `next_functions[input]` of node `source` is output `output`
    of node `target`; parallel edges (`x * x`) are separate. `roots` has (node id, output number) of
    each root. `truncated` is the number of nodes that were seen and left out for `max_nodes`; the
    nodes below them are not counted. `cut` has the ids of the nodes with an input that needs no
    gradient.
    """

    nodes: list[Node]
    edges: list[GraphEdge]
    roots: list[tuple[int, int]]
    truncated: int = 0
    cut: list[int] = field(default_factory=list)
    _ids: dict[Any, int] = field(default_factory=dict, repr=False)

    def node_of(self, fn: Any) -> Node:
        """The node of a `grad_fn`; raises KeyError if it is not in this graph."""
        return self.nodes[self._ids[fn]]

    def get(self, fn: Any) -> Node | None:
        """The node of a `grad_fn`; None if it is not in this graph."""
        place = self._ids.get(fn)
        return None if place is None else self.nodes[place]

    @property
    def saved_bytes(self) -> int:
        """Bytes of all storages that the graph keeps alive, each counted once."""
        storages: dict[int, int] = {}
        for node in self.nodes:
            storages.update(node.storages)
        return sum(storages.values())

    def __repr__(self) -> str:
        return f"<Graph of {len(self.nodes):,} nodes, {len(self.edges):,} edges>"


def read_graph(
    root: Root | Iterable[Root],
    *,
    names: Mapping[str, torch.Tensor] | None = None,
    max_nodes: int = MAX_NODES,
) -> Graph:
    """Read the graph under one tensor or several.

    `names` labels the leaves, e.g. `dict(model.named_parameters())`. Nothing is unpacked, run or
    changed: a freed graph, or one with a bad in-place change, can be read too. Raises ValueError
    when a root does not require grad, and so has no graph.
    """
    label_of = {id(t): name for name, t in (names or {}).items()}
    edges: list[GraphEdge] = []
    fns: list[Any] = []
    ids: dict[Any, int] = {}
    left_out: set[Any] = set()
    cut: list[int] = []
    starts = [gradient_edge(r) for r in as_roots(root)]
    for start in starts:
        if start.node not in ids:
            ids[start.node] = len(fns)
            fns.append(start.node)
    for source, fn in enumerate(fns):  # grows while it is walked
        for input_nr, (target_fn, output_nr) in enumerate(fn.next_functions):
            if target_fn is None:
                cut.append(source)
                continue
            target = ids.get(target_fn)
            if target is None:
                if len(fns) >= max_nodes:
                    left_out.add(target_fn)
                    continue
                target = ids[target_fn] = len(fns)
                fns.append(target_fn)
            edges.append(GraphEdge(source, target, input_nr, output_nr))
    guard_release(fns)
    nodes = list(map(Node, count(), fns, map(kind_of_node, fns)))
    if label_of:
        for node in nodes:
            variable = node.variable
            if variable is not None:
                node.label = label_of.get(id(variable), "")
    return Graph(
        nodes,
        edges,
        [(ids[s.node], s.output_nr) for s in starts],
        len(left_out),
        list(dict.fromkeys(cut)),
        ids,
    )


def as_roots(root: Root | Iterable[Root]) -> list[Root]:
    """The roots as a list. Raises ValueError if it is empty, TypeError if one is not a tensor."""
    several = isinstance(root, Iterable) and not isinstance(root, torch.Tensor | GradientEdge)
    roots: list[Root] = list(root) if several else [root]  # type: ignore
    if not roots:
        raise ValueError("no root given: a graph is read from at least one tensor")
    for each in roots:
        if not isinstance(each, torch.Tensor | GradientEdge):
            raise TypeError(f"a graph is read from a tensor, or several; got {each!r:.60}")
    return roots


def gradient_edge(root: Root) -> GradientEdge:
    """The edge by which the gradient of `root` enters the graph. Raises ValueError if `root` does
    not require grad."""
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


_WORD_STARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z][a-z0-9])|(?<=[0-9][A-Z])(?=[A-Z])")
