"""The tensors and arrays that share memory: under each storage, trees of what was made of what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn

from ...console.namespace import Namespace
from ...protocol import AliasesSnapshot, AliasNode, StorageNode, WrittenBy
from ...recording.writes import version_of
from ...system.errors import sendable
from ...tensors.reach import Held
from ...tensors.readable import dtype_name
from .storage import Placement, placement_of

MAX_NODES = 300
MAX_NAME = 80
MAX_NAMES = 8


def read_aliases(namespace: Namespace) -> AliasesSnapshot:
    """The console's tensors and arrays by storage. Those inside modules, lists and dicts are listed
    only if they share memory; tensors without a storage of their own (sparse, nested) never.
    Reads no element."""
    with torch.no_grad(), torch.DisableTorchFunction():
        return _Forest(namespace).snapshot()


class _Node:
    """One tensor or array, with all of its names."""

    def __init__(self, value: Held, storage: int) -> None:
        self.value = value
        self.storage = storage
        self.names: list[str] = []
        self.kind = "base"
        self.parent: _Node | None = None
        self.root: _Node | None = None
        self.op = ""
        self.made_by: WrittenBy | None = None
        self.children: list[_Node] = []

    def set_parent(self, parent: _Node | None, op: str = "") -> bool:
        """Become a child of `parent`. Returns False if it is None, or this node or below it."""
        above = parent
        while above is not None and above is not self:
            above = above.parent
        if parent is None or above is self:
            return False
        self.parent, self.op = parent, op
        return True


class _Forest:
    def __init__(self, namespace: Namespace) -> None:
        self._writes = namespace.writes
        self._storages = namespace.storages
        self._nodes: dict[int, _Node] = {}  # by id; each node keeps its object alive
        self._on_storage: dict[int, list[_Node]] = {}
        reached = namespace.reached()
        self._cut = reached.cut
        numbers = self._storages.numbers(reached.held.values())
        holders = Counter(numbers)
        for (name, value), number in zip(reached.held.items(), numbers, strict=True):
            if name in namespace.variables or holders[number] > 1:
                self._add(name, value)
        for node in list(self._nodes.values()):
            base = node.value._base if isinstance(node.value, Tensor) else None
            if base is not None:
                node.root = self._nodes.get(id(base)) or self._node(base)
        for node in self._nodes.values():
            self._find_parent(node)
        for node in self._nodes.values():
            if node.parent is not None:
                node.parent.children.append(node)

    def _add(self, name: str, value: Held) -> None:
        known = self._nodes.get(id(value)) or self._node(value)
        if known is not None:
            known.names.append(sendable(name[:MAX_NAME]))

    def _node(self, value: Held) -> _Node | None:
        number = self._storages.number(value)
        if number is None or (isinstance(value, Tensor) and isinstance(placement_of(value), str)):
            return None
        node = _Node(value, number)
        self._nodes[id(value)] = node
        self._on_storage.setdefault(number, []).append(node)
        return node

    # -- parents -----------------------------------------------------------------------------------

    def _find_parent(self, node: _Node) -> None:
        """Find a node's kind, the node that it was made from, and the operation."""
        if isinstance(node.value, np.ndarray):
            self._find_array_parent(node, node.value)
            return
        making = self._writes.making(node.value)
        ops: list[str] = []
        if making is not None:
            node.made_by = making.where
        while making is not None:
            ops.insert(0, making.where.op)
            if node.set_parent(self._nodes.get(id(making.parent())), " ".join(ops)):
                break
            making = making.earlier
        if node.root is not None:
            node.kind = "view"
            if node.parent is None:
                node.set_parent(node.root, " ".join(ops) or _op_of_graph(node.value))
        elif ops:
            node.kind = "detached" if "detach" in ops else "shared"
        if node.parent is None:
            self._find_shared_parent(node, node.value)

    def _find_array_parent(self, node: _Node, array: np.ndarray) -> None:
        node.kind = "numpy"
        base: object = array.base
        while base is not None:
            if node.set_parent(self._nodes.get(id(base)), "numpy view"):
                return
            if not isinstance(base, np.ndarray):
                break
            base = base.base
        if isinstance(base, Tensor):  # numpy() makes a tensor that only the array holds
            node.set_parent(next(self._nodes_on(node.storage)), "numpy")

    def _find_shared_parent(self, node: _Node, t: Tensor) -> None:
        """Find the parent of a tensor that shares memory, but whose making was not recorded."""
        storage = t.untyped_storage()
        tensors = [
            (other, other.value)
            for other in self._nodes_on(node.storage)
            if isinstance(other.value, Tensor) and other.value.untyped_storage() is storage
        ]
        owner = tensors[0][0].root or tensors[0][0]
        if owner is node:  # the first tensor on its storage, which may be an array's memory
            for array in self._nodes_on(node.storage):
                if (
                    isinstance(array.value, np.ndarray)
                    and not _made_by_numpy(array.value, storage)
                    and node.set_parent(array, "from_numpy")
                ):
                    node.kind = "shared"
                    return
            return
        node.kind = "shared" if node.kind == "base" else node.kind
        op = "Parameter" if isinstance(t, nn.Parameter) else ""
        for other, value in tensors:
            same = other.names and _first_byte(value) == _first_byte(t)
            if same and node.set_parent(other, op):
                return
        node.set_parent(owner, op)

    def _nodes_on(self, storage: int) -> Iterator[_Node]:
        return iter(self._on_storage[storage])

    # -- snapshot ----------------------------------------------------------------------------------

    def snapshot(self) -> AliasesSnapshot:
        ordered: list[_Node] = []
        for node in sorted(self._nodes.values(), key=lambda node: node.storage):
            if node.parent is None:
                self._walk(node, ordered)
        shown = ordered[:MAX_NODES]
        number = {id(node): i for i, node in enumerate(shown)}
        return AliasesSnapshot(
            storages=tuple(self._storage_nodes(shown)),
            tensors=tuple(_alias(node, number) for node in shown),
            left_out=len(ordered) - len(shown),
            note=self._cut,
        )

    def _walk(self, node: _Node, ordered: list[_Node]) -> None:
        waiting = [node]
        while waiting:
            node = waiting.pop()
            ordered.append(node)
            waiting.extend(reversed(node.children))

    def _storage_nodes(self, shown: list[_Node]) -> Iterator[StorageNode]:
        for storage in dict.fromkeys(node.storage for node in shown):
            nodes = [node for node in shown if node.storage == storage]
            tensors = [node.value for node in nodes if isinstance(node.value, Tensor)]
            writes = (self._writes.last_write(t) for t in tensors)
            versions = [v for t in tensors if (v := version_of(t)) is not None]
            yield StorageNode(
                storage=storage,
                size_bytes=max(
                    n.value.nbytes
                    if isinstance(n.value, np.ndarray)
                    else n.value.untyped_storage().nbytes()
                    for n in nodes
                ),
                device=str(tensors[0].device) if tensors else "cpu",
                version=max(versions, default=None),
                written_by=next((w for w in writes if w is not None), None),
            )


def _alias(node: _Node, number: dict[int, int]) -> AliasNode:
    value = node.value
    placement = placement_of(value) if isinstance(value, Tensor) else None
    if isinstance(placement, Placement):
        shape, strides = placement.footprint.shape, placement.footprint.strides
        offset, dtype = placement.footprint.offset, dtype_name(placement.dtype)
    else:
        shape, offset, dtype = tuple(value.shape), 0, str(value.dtype)
        strides = tuple(s // max(value.itemsize, 1) for s in _byte_strides(value))
    return AliasNode(
        names=tuple(node.names[:MAX_NAMES]),
        kind=node.kind,  # pyright: ignore[reportArgumentType]
        storage=node.storage,
        shape=shape,
        dtype=dtype,
        strides=strides,
        offset=offset,
        parent=number.get(id(node.parent)),
        root=number.get(id(node.root)),
        op=node.op,
        made_by=node.made_by,
        requires_grad=isinstance(value, Tensor) and value.requires_grad,
    )


def _byte_strides(value: Held) -> tuple[int, ...]:
    return value.strides if isinstance(value, np.ndarray) else ()


def _made_by_numpy(array: np.ndarray, storage: torch.UntypedStorage) -> bool:
    """Whether an array was made by `numpy()` of a tensor on a storage."""
    base: object = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, Tensor) and base.untyped_storage() is storage


def _first_byte(t: Tensor) -> int:
    """The offset in bytes of a tensor in its storage."""
    return int(t.storage_offset()) * t.element_size()


def _op_of_graph(t: Tensor) -> str:
    """`SelectBackward0` -> `select`; empty for a view outside any graph."""
    name = type(t.grad_fn).__name__ if t.grad_fn is not None else ""
    return name.rstrip("0123456789").removesuffix("Backward").lower()
