"""A graph as snapshots for the window: nodes with their origins, edges, cuts, stale tensors."""

from __future__ import annotations

import gc
import linecache
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from ...errors import sendable
from ...protocol import GraphCut, GraphEdge, GraphNode, GraphSnapshot, SourceLine, StaleTensor
from ...recording.recording import Place, source_line
from .parts import in_parts
from .provenance import Origin, Provenance
from .reading import (
    Graph,
    Node,
    SavedTensor,
    are_freed,
    device_name,
    operation,
    output_specs,
    storage_bytes,
)

MAX_SHOWN_NODES = 50_000
MAX_CLASSES = 20_000
MAX_SOURCES_CHARS = 60_000
"""Characters of cells in a snapshot: beyond, only the cells before are sent."""


def title(node: Node) -> str:
    """A node's name for a reader: the parameter's name, the operation, or `h = mul`."""
    if node.is_leaf:
        return node.label or f"leaf {node.id}"
    return f"{node.label} = {node.op}" if node.label else node.op


def graph_snapshots(
    graph: Graph,
    plan: Sequence[Node],
    provenance: Provenance,
    blocks: Mapping[int, str] | None = None,
    root: str = "",
    max_nodes: int = MAX_SHOWN_NODES,
    stale: Sequence[StaleTensor] = (),
    words_of: Callable[[str], str] = lambda name: "",
) -> list[GraphSnapshot]:
    """The graph in parts. They have its first `max_nodes` nodes (breadth first from the root) and
    the edges between these; `plan` has all nodes. `words_of` gives one line on what the nodes of a
    name do in backward, or ""."""
    shown = graph.nodes[:max_nodes]
    count = len(shown)
    blocks = blocks or {}
    is_stale = {save.node for save in stale}
    lines: dict[Place, SourceLine] = {}
    nodes: list[GraphNode] = []
    cuts: list[GraphCut] = []
    storages: dict[int, int] = {}  # the bytes of each that a node keeps alive
    with _without_collection():
        for node in shown:
            chain = provenance.chain(node)
            origin = provenance.origin(node, chain)
            saved = node.saved
            storages.update((each.storage_id, each.storage_bytes) for each in saved)
            block, stale_too = blocks.get(node.id), node.id in is_stale
            nodes.append(_node(node, saved, origin, block, lines, stale_too))
            if chain:
                cuts.extend(provenance.cuts(node, chain))
        edges = [
            GraphEdge(source, target, input_nr, output_nr)
            for source, input_nr, target, output_nr in graph.edges
            if source < count and target < count
        ]
        for node in graph.nodes[count:]:
            storages.update((each.storage_id, each.storage_bytes) for each in node.saved)
    whole = GraphSnapshot(
        nodes=tuple(nodes),
        edges=tuple(edges),
        cuts=tuple(cuts),
        stale=tuple(stale),
        plan=tuple(node.id for node in plan),
        modules=_classes(provenance),
        rules={name: words for name in {n.name for n in nodes} if (words := words_of(name))},
        sources=_cells({place[0] for place in lines}),
        truncated=len(graph.nodes) - count + graph.truncated,
        saved_bytes=sum(storages.values()),
        root=sendable(root),
    )
    return in_parts(
        whole, ("nodes", "edges", "plan", "cuts", "stale", "modules", "rules", "sources")
    )


@contextmanager
def _without_collection() -> Iterator[None]:
    """Turns Python's cycle collector off: it would walk the growing lists again and again, which
    takes more than half of the time at 10,000 nodes."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _node(
    node: Node,
    saved: Sequence[SavedTensor],
    origin: Origin,
    block: str | None,
    lines: dict[Place, SourceLine],
    stale: bool,
) -> GraphNode:
    place, source = origin.place, None
    if place is not None:
        source = lines.get(place)
        if source is None:
            source = lines[place] = source_line(place)
    is_leaf, name, metadata = node.is_leaf, node.name, node.fn._input_metadata
    op = operation(name, custom=node.is_custom)
    saved_bytes = storage_bytes(saved) if saved else 0
    return GraphNode(
        id=node.id,
        name=name,
        label=sendable(title(node)) if node.label or is_leaf else op,
        kind="leaf" if is_leaf else "operation",
        block=block,
        sequence=node.sequence,
        outputs=output_specs(metadata),
        saved_bytes=saved_bytes,
        op=op,
        module=sendable(origin.module),
        aten=origin.aten,
        source=source,
        device=device_name(metadata[0].device) if metadata else "",
        stale=stale,
        freed=bool(saved) and not saved_bytes and are_freed(saved),
    )


def _cells(files: Collection[str]) -> dict[str, str]:
    """The text of those of `files` that are cells of the console."""
    found, length = {}, 0
    for file in sorted(files):
        text = "".join(linecache.getlines(file)) if file.startswith("<cell ") else ""
        length += len(text)
        if text and length <= MAX_SOURCES_CHARS:
            found[sendable(file)] = sendable(text)
    return found


def _classes(provenance: Provenance) -> dict[str, str]:
    classes = list(provenance.classes.items())[:MAX_CLASSES]
    return {sendable(path): sendable(name) for path, name in classes}
