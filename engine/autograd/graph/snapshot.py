"""A graph as snapshots for the window: nodes with their origins, edges, cuts, stale tensors."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from torch import Tensor
from torch.nn import Parameter

from ...protocol import MODEL_FILE, GraphNode, GraphSnapshot, SourceLine, StaleTensor
from ...recording.recording import Call, Place, source_line
from ...system.errors import sendable
from .large_snapshots import in_parts
from .node_facts import AlikeOutputs, outputs_of
from .provenance import NameOf, Provenance
from .reading import Graph, Node, sequences_of
from .saved_for_backward import SavedForBackward
from .without_collection import without_collection

MAX_SHOWN_NODES = 50_000
MAX_CLASSES = 20_000
MAX_SOURCES_CHARS = 60_000
"""Characters of code in a snapshot: a text that does not fit is left out."""
_PLAIN = frozenset((Tensor, Parameter))


def title(node: Node) -> str:
    """A node's name for a reader: the parameter's name, the operation, or `h = mul`."""
    if node.is_leaf:
        return node.label or f"leaf {node.id}"
    return f"{node.label} = {node.op}" if node.label else node.op


@without_collection()
def graph_snapshots(
    graph: Graph,
    plan: Sequence[Node],
    provenance: Provenance,
    blocks: Mapping[int, str] | None = None,
    root: str = "",
    max_nodes: int = MAX_SHOWN_NODES,
    stale: Sequence[StaleTensor] = (),
    words_of: Callable[[str], str] = lambda name: "",
    subject_path: str | None = None,
    kept: SavedForBackward | None = None,
    calls: Sequence[Call | None] | None = None,
) -> list[GraphSnapshot]:
    """The graph in parts. They have its first `max_nodes` nodes (breadth first from the root) and
    the edges between these; `plan` has all nodes. `words_of` gives one line on what the nodes of a
    name do in backward, or "". `kept` is what all nodes of the graph keep, `calls` those that made
    them; both are read here if they are not given."""
    shown = graph.nodes[:max_nodes]
    count = len(shown)
    is_stale = {save.node for save in stale}
    lines: dict[Place, SourceLine] = {}
    kept = kept or SavedForBackward(graph.nodes)
    sequences = sequences_of(shown)
    calls = calls or provenance.calls(shown, sequences)
    facts = zip(shown, sequences, calls, kept.storages, strict=False)
    nodes = _graph_nodes(facts, kept.size_bytes, provenance.owner_of, blocks or {}, is_stale, lines)
    cuts = (
        cut
        for number in graph.cut
        if number < count and (call := calls[number]) is not None
        for cut in provenance.cuts(graph.nodes[number], call)
    )
    edges = graph.edges
    if count < len(graph.nodes):
        edges = [each for each in edges if each.source < count and each.target < count]
    whole = GraphSnapshot(
        nodes=tuple(nodes),
        edges=tuple(edges),
        cuts=tuple(cuts),
        stale=tuple(stale),
        plan=tuple([node.id for node in plan]),
        modules=_classes(provenance),
        rules={name: words for name in {n.name for n in nodes} if (words := words_of(name))},
        sources=_sources({place[0] for place in lines}),
        truncated=len(graph.nodes) - count + graph.truncated,
        saved_bytes=kept.saved_bytes,
        root=sendable(root),
        subject_path=subject_path,
    )
    return in_parts(
        whole, ("nodes", "edges", "plan", "cuts", "stale", "modules", "rules", "sources")
    )


def _graph_nodes(
    facts: Iterable[tuple[Node, int, Call | None, tuple[int, ...]]],
    size_bytes: Mapping[int, int],
    owner_of: NameOf,
    blocks: Mapping[int, str],
    is_stale: Collection[int],
    lines: dict[Place, SourceLine],
) -> list[GraphNode]:
    """The nodes as the window gets them. Of each there are its sequence number, the call that made
    it, and its storages. The lines of the calls are added to `lines`."""
    told: list[GraphNode] = []
    add, alike = told.append, AlikeOutputs()
    for node, sequence, call, storages in facts:
        fn, number, label = node.fn, node.id, node.label
        name, op, is_leaf, _, saves = node.kind
        module, aten, source, one = "", "", None, None
        if is_leaf:
            label = sendable(label) if label else f"leaf {number}"
            variable = fn.variable
            module = sendable(owner_of(variable))
            if type(variable) in _PLAIN:  # it has the facts, and is read faster than metadata
                one = variable
        else:
            label = sendable(title(node)) if label else op
            if call is not None:
                module, place = sendable(call.module), call.place
                if call.kind == "op":
                    aten = call.name
                if place is not None:
                    source = lines.get(place)
                    if source is None:
                        source = lines[place] = source_line(place)
        saved_bytes = 0
        for storage in storages:
            saved_bytes += size_bytes[storage]
        try:
            if one is None:
                (one,) = fn._input_metadata
            outputs, device = alike[(*one.shape, one.dtype, one.device)]
        except (ValueError, RuntimeError, TypeError):  # several, or nested without one shape
            outputs, device = outputs_of(fn._input_metadata)
        add(
            GraphNode(  # by position, which takes half as long
                number,
                name,
                label,
                "leaf" if is_leaf else "operation",
                blocks.get(number),
                sequence,
                outputs,
                saved_bytes,
                op,
                module,
                aten,
                source,
                device,
                number in is_stale,
                not saved_bytes and bool(saves) and node.is_freed,
            )
        )
    return told


def _sources(files: Collection[str]) -> dict[str, str]:
    """The texts of `files`, cells first, as long as there is room. That of the canvas's model is
    known to the window."""
    found, length = {}, 0
    for file in sorted(files, key=lambda name: (not name.startswith("<"), name)):
        text = "" if file == MODEL_FILE else "".join(linecache.getlines(file))
        if text and length + len(text) <= MAX_SOURCES_CHARS:
            length += len(text)
            found[sendable(file)] = sendable(text)
    return found


def _classes(provenance: Provenance) -> dict[str, str]:
    classes = list(provenance.classes.items())[:MAX_CLASSES]
    return {sendable(path): sendable(name) for path, name in classes}
