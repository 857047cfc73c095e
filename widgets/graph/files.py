"""A graph as a file for other programs: DOT, GraphML, and JSON that holds all of it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from engine.project.atomic import write_atomically
from engine.protocol import GraphEdge, GraphNode, GraphSnapshot, TensorSpec

from ..boxes.boxes import Box
from ..boxes.hierarchy import Hierarchy, node_words, shape_text
from .json_file import to_json

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
"""The replacement for characters that a format cannot hold."""
SUFFIXES = (".dot", ".gv", ".json", ".graphml")


def save_graph(path: str, hierarchy: Hierarchy, open_keys: frozenset[str]) -> None:
    """Write a graph in the format of the file's suffix. DOT holds the picture with `open_keys`
    open, the other formats the whole graph. Raises ValueError for an unknown suffix, OSError when
    the file cannot be written."""
    text = _text(suffix_of(path), hierarchy.graph, lambda: hierarchy, open_keys)
    write_atomically(path, text.encode())


def file_of_message(suffix: str, message: bytes, open_keys: frozenset[str]) -> bytes:
    """The text that `save_graph` writes, from a `GraphSnapshot` as msgpack, so that another process
    can do it: it takes seconds at 50,000 nodes."""
    graph = msgspec.msgpack.decode(message, type=GraphSnapshot)
    return _text(suffix, graph, lambda: Hierarchy(graph), open_keys).encode()


def suffix_of(path: str) -> str:
    """The writer for a file of this name. Raises ValueError for an unknown suffix."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(
            f"A graph's file name ends in {', '.join(SUFFIXES)}, not {suffix or 'nothing'}"
        )
    return suffix


def _text(
    suffix: str,
    graph: GraphSnapshot,
    hierarchy: Callable[[], Hierarchy],
    open_keys: frozenset[str],
) -> str:
    if suffix == ".json":
        return to_json(graph, open_keys)
    return to_graphml(graph) if suffix == ".graphml" else to_dot(hierarchy(), open_keys)


# -- DOT -------------------------------------------------------------------------------------------


def to_dot(hierarchy: Hierarchy, open_keys: frozenset[str] | None = None) -> str:
    """The picture while some boxes are open (all, if None), with open boxes as clusters.

    Nodes are named by their boxes' keys and have attributes: `kind`,
    `nodes` and `repeat` of a closed box; `op`, `module`, `shape` and so on of a node. An edge
    between two nodes has `input` and `output`; one that stands for several has `edges`, their
    number. As usual in DOT, backslashes in texts are doubled.
    """
    visible = hierarchy.visible(hierarchy.open_all() if open_keys is None else open_keys)
    boxes, graph = visible.boxes, hierarchy.graph
    inside: dict[int | None, list[int]] = defaultdict(list)
    for index, box in enumerate(boxes):
        inside[box.parent].append(index)

    def lines(parent: int | None, indent: str) -> Iterator[str]:
        for index in inside[parent]:
            box = boxes[index]
            if not box.open:
                yield f"{indent}{_quoted(box.key)} {_attributes(_of_box(box, graph))}"
                continue
            yield f"{indent}subgraph {_quoted('cluster_' + box.key)} {{"
            words = " ".join(filter(None, (box.title, box.subtitle)))
            yield f"{indent}  label={_quoted(words)}; kind={_quoted(box.kind)};"
            yield from lines(index, indent + "  ")
            yield f"{indent}}}"

    found = [f"digraph {_quoted(graph.root or 'loss')} {{"]
    found += ["  rankdir=TB;", "  node [shape=box, fontsize=11];", *lines(None, "  ")]
    for link in visible.links:
        ends = f"  {_quoted(boxes[link.source].key)} -> {_quoted(boxes[link.target].key)}"
        if not link.edges:
            found.append(f"{ends} {_attributes({'style': 'dashed'})}")
        elif boxes[link.source].kind == boxes[link.target].kind == "node":
            for place in link.edges:
                edge = graph.edges[place]
                shape = _shape_of(edge, graph)
                words = {"label": shape, "input": edge.input, "output": edge.output}
                found.append(f"{ends} {_attributes(words)}")
        else:
            found.append(f"{ends} {_attributes({'label': link.text, 'edges': len(link.edges)})}")
    return "\n".join([*found, "}"]) + "\n"


def _of_box(box: Box, graph: GraphSnapshot) -> dict[str, Any]:
    label = "\n".join(filter(None, (box.title, box.subtitle)))
    if box.kind == "node":
        assert box.node is not None
        return {"label": label, **_flat(graph.nodes[box.node])}
    if box.kind == "cut":
        return {"label": label, "kind": "cut", "shape": "plaintext"}
    times = f" ×{box.repeat}" if box.repeat > 1 else ""
    kind = {"kind": box.kind, "nodes": box.nodes, "repeat": box.repeat}
    return {"label": label.replace("\n", f"{times}\n", 1) if times else label, **kind}


def _attributes(values: dict[str, Any]) -> str:
    words = (f"{name}={_quoted(str(value))}" for name, value in values.items() if value != "")
    return f"[{', '.join(words)}]"


def _quoted(text: str) -> str:
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return '"' + text.replace("\0", REPLACEMENT) + '"'


# -- GraphML ---------------------------------------------------------------------------------------


def to_graphml(graph: GraphSnapshot) -> str:
    """All nodes (named by their ids) and edges with attributes; parallel edges stay separate."""
    import networkx  # the import takes a third of a second

    found = networkx.MultiDiGraph(root=_in_xml(graph.root or "loss"))
    for node in graph.nodes:
        title, _ = node_words(node)
        found.add_node(node.id, title=_in_xml(title), **_flat(node, _in_xml))
    for edge in graph.edges:
        shape = _shape_of(edge, graph)
        found.add_edge(edge.source, edge.target, input=edge.input, output=edge.output, tensor=shape)
    return "\n".join(networkx.generate_graphml(found)) + "\n"


def _in_xml(text: str) -> str:
    """`text` with a replacement character for each control character, which XML cannot have."""
    return re.sub(
        "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\N{REPLACEMENT CHARACTER}", text
    )


# -- shared ----------------------------------------------------------------------------------------


def _flat(node: GraphNode, clean: Callable[[str], str] = str) -> dict[str, str | int | bool]:
    """The attributes of a node in plain values. `tensor` has the shapes of its outputs, separated
    by commas; DOT's own `shape` means a node's outline."""
    source = node.source
    texts = {
        "name": node.name,
        "variable": node.label,
        "kind": node.kind,
        "op": node.op,
        "aten": node.aten,
        "module": node.module or node.block or "",
        "tensor": ", ".join(map(shape_text, node.outputs)),
        "dtype": ", ".join(spec.dtype for spec in node.outputs),
        "device": node.device,
        "line": f"{source.file}:{source.line}" if source else "",
        "code": source.text if source else "",
    }
    numbers = {"sequence": node.sequence, "saved_bytes": node.saved_bytes}
    flags = {"stale": node.stale, "freed": node.freed}
    return {name: clean(text) for name, text in texts.items()} | numbers | flags


def _shape_of(edge: GraphEdge, graph: GraphSnapshot) -> str:
    outputs: tuple[TensorSpec, ...] = graph.nodes[edge.target].outputs
    return shape_text(outputs[edge.output]) if edge.output < len(outputs) else ""
