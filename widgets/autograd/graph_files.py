"""An autograd graph as a file for other programs: DOT, GraphML, and JSON that holds all of it.

JSON (`"format": "tensorlab-graph"`, `"version": 1`) has these fields beside the two:

- `root`: the expression whose graph it is, empty for the model's loss.
- `nodes`: in the order of their ids, each with `id`, `name` (torch's), `label` (parameter or
  variable), `kind` (`leaf` or `operation`), `op`, `aten`, `module` (path), `block`, `sequence`,
  `outputs` (`shape` and `dtype` of each output in forward), `saved_bytes`, `device`, `stale` and
  `source` (`file`, `line`, `text`, or null).
- `edges`: `source` and `target` (ids, the gradient's way), `input` (of the source), `output` (of
  the target). Parallel edges are separate.
- `cuts`: `node`, `input`, `reason`, `label`, `source`: where the gradient's way ends early.
- `modules`: the class name of each module path. `plan`: ids in the engine's order.
- `truncated`: how many nodes the graph has beyond these. `open`: the boxes that were open.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from engine.project.atomic import write_atomically
from engine.protocol import GraphCut, GraphEdge, GraphNode, GraphSnapshot, SourceLine, TensorSpec

from .boxes import Box
from .hierarchy import Hierarchy, node_words, shape_text

FORMAT, VERSION = "tensorlab-graph", 1
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
"""Stands for a character that a format cannot hold."""
SUFFIXES = (".dot", ".gv", ".json", ".graphml")


def save_graph(path: str, hierarchy: Hierarchy, open_keys: frozenset[str]) -> None:
    """Write a graph; the suffix says how. DOT shows what is seen with `open_keys` open, the others
    hold all. Raises ValueError for another suffix, OSError when the file cannot be written."""
    suffix = Path(path).suffix.lower()
    make: dict[str, Callable[[], str]] = {
        ".dot": lambda: to_dot(hierarchy, open_keys),
        ".gv": lambda: to_dot(hierarchy, open_keys),
        ".json": lambda: to_json(hierarchy.graph, open_keys),
        ".graphml": lambda: to_graphml(hierarchy.graph),
    }
    if suffix not in make:
        raise ValueError(
            f"A graph's file name ends in {', '.join(SUFFIXES)}, not {suffix or 'nothing'}"
        )
    write_atomically(path, make[suffix]().encode())


# -- JSON ------------------------------------------------------------------------------------------


def to_json(graph: GraphSnapshot, open_keys: frozenset[str] = frozenset()) -> str:
    """All of a graph, and which boxes are open; the module's docstring tells the fields."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        "root": graph.root,
        "nodes": [_fields(node) for node in graph.nodes],
        "edges": [_fields(edge) for edge in graph.edges],
        "cuts": [_fields(cut) for cut in graph.cuts],
        "modules": graph.modules,
        "plan": graph.plan,
        "truncated": graph.truncated,
        "open": sorted(open_keys),
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n"


def from_json(text: str | bytes) -> tuple[GraphSnapshot, frozenset[str]]:
    """The graph and the open boxes. Raises ValueError that says what is wrong with the file."""
    try:
        document: dict[str, Any] = msgspec.json.decode(text, type=dict)
    except msgspec.DecodeError as error:
        raise ValueError(f"This is no JSON file: {error}") from None
    if document.get("format") != FORMAT:
        raise ValueError(f'This is no graph of Tensor Lab: "format" is not "{FORMAT}"')
    if document.get("version") != VERSION:
        raise ValueError(
            f"This graph has version {document.get('version')}; this program reads {VERSION}"
        )
    try:
        graph = GraphSnapshot(
            nodes=tuple(_struct(GraphNode, each) for each in document["nodes"]),
            edges=tuple(_struct(GraphEdge, each) for each in document["edges"]),
            cuts=tuple(_struct(GraphCut, each) for each in document["cuts"]),
            modules=msgspec.convert(document["modules"], dict[str, str]),
            plan=msgspec.convert(document["plan"], tuple[int, ...]),
            truncated=msgspec.convert(document["truncated"], int),
            root=msgspec.convert(document["root"], str),
        )
        open_keys = frozenset(msgspec.convert(document["open"], list[str]))
    except KeyError as error:
        raise ValueError(f"The graph has no field {error}") from None
    except (msgspec.ValidationError, TypeError) as error:
        raise ValueError(f"The graph is not as it should be: {error}") from None
    _check_ids(graph)
    return graph, open_keys


def _fields(struct: msgspec.Struct) -> dict[str, Any]:
    """A struct by its fields' names, also where messages carry it as an array."""
    found = msgspec.structs.asdict(struct)
    for name, value in found.items():
        if isinstance(value, SourceLine):
            found[name] = _fields(value)
    return found


def _struct(kind: type, fields: dict[str, Any]) -> Any:
    known = {field.name: field.type for field in msgspec.structs.fields(kind)}
    values = {}
    for name, value in fields.items():
        if name not in known:
            raise TypeError(f"{kind.__name__} has no field {name!r}")
        if name == "source" and isinstance(value, dict):
            values[name] = _struct(SourceLine, value)
        else:
            values[name] = msgspec.convert(value, known[name])
    return kind(**values)


def _check_ids(graph: GraphSnapshot) -> None:
    count = len(graph.nodes)
    if [node.id for node in graph.nodes] != list(range(count)):
        raise ValueError("The nodes' ids are not 0, 1, 2 and so on, in this order")
    ends = [end for edge in graph.edges for end in (edge.source, edge.target)]
    for node in (*ends, *(cut.node for cut in graph.cuts)):
        if not 0 <= node < count:
            raise ValueError(f"An edge or a cut names node {node}, but there are only {count}")


# -- DOT -------------------------------------------------------------------------------------------


def to_dot(hierarchy: Hierarchy, open_keys: frozenset[str] | None = None) -> str:
    """What is seen while some boxes are open (all, if None): open ones as clusters.

    Nodes are called by their boxes' keys, and carry what is known of them as attributes: `kind`,
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
    """All nodes (called by their ids) and edges, parallel ones apart, with what is known of them
    as attributes."""
    import networkx  # takes a third of a second, so only when it is wanted

    found = networkx.MultiDiGraph(root=_in_xml(graph.root or "loss"))
    for node in graph.nodes:
        title, _ = node_words(node)
        found.add_node(node.id, title=_in_xml(title), **_flat(node, _in_xml))
    for edge in graph.edges:
        shape = _shape_of(edge, graph)
        found.add_edge(edge.source, edge.target, input=edge.input, output=edge.output, tensor=shape)
    return "\n".join(networkx.generate_graphml(found)) + "\n"


def _in_xml(text: str) -> str:
    """XML has no control characters."""
    return re.sub(
        "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\N{REPLACEMENT CHARACTER}", text
    )


# -- shared ----------------------------------------------------------------------------------------


def _flat(node: GraphNode, clean: Callable[[str], str] = str) -> dict[str, str | int | bool]:
    """What is known of a node in plain values. `tensor` has the shape of each output, by commas;
    DOT's own `shape` means a node's outline."""
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
    numbers = {"sequence": node.sequence, "saved_bytes": node.saved_bytes, "stale": node.stale}
    return {name: clean(text) for name, text in texts.items()} | numbers


def _shape_of(edge: GraphEdge, graph: GraphSnapshot) -> str:
    outputs: tuple[TensorSpec, ...] = graph.nodes[edge.target].outputs
    return shape_text(outputs[edge.output]) if edge.output < len(outputs) else ""
