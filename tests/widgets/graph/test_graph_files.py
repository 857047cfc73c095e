"""Graphs as DOT, JSON and GraphML: other programs read back the same nodes, edges and facts."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.protocol import GraphSnapshot, SourceLine
from engine.protocol.autograd_snapshots import StaleTensor
from tests.engine.autograd.recorded_graphs import recorded
from tests.engine.autograd.shaped_models import gpt2
from tests.widgets.graph.dot_reader import read_dot
from tests.widgets.graph.nested_graph import NESTED
from tests.widgets.graph.random_hierarchies import graphs, opened
from widgets.boxes.hierarchy import Hierarchy, shape_text
from widgets.graph.files import save_graph, to_dot, to_graphml
from widgets.graph.json_file import from_json, to_json

AWKWARD = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)


@st.composite
def awkward_graphs(draw) -> GraphSnapshot:
    """Graphs whose variables and lines have any characters that text may have."""
    graph = draw(graphs(most=8))
    stale = (StaleTensor(0, "self", 0, 1, draw(AWKWARD), SourceLine("a.py", 1)),)
    nodes = tuple(
        replace(n, label=draw(AWKWARD), source=SourceLine("<cell 1>", 3, draw(AWKWARD)))
        for n in graph.nodes
    )
    return replace(graph, nodes=nodes, stale=stale, root="loss" + draw(AWKWARD))


def undone(text: str) -> str:
    """What DOT's quoting stands for."""
    return text.replace("\\\\", "\\")


# -- DOT -------------------------------------------------------------------------------------------


@given(opened())
def test_dot_has_the_boxes_as_seen(drawn: tuple[Hierarchy, frozenset[str]]) -> None:
    hierarchy, open_keys = drawn
    visible = hierarchy.visible(open_keys)
    found = read_dot(to_dot(hierarchy, open_keys))
    shown = {box.key: box for box in visible.boxes if not box.open}
    assert set(found.nodes) == set(shown)
    for key, box in shown.items():
        attributes = found.nodes[key]
        if box.kind in ("module", "repeat", "round"):
            assert (attributes["kind"], attributes["nodes"]) == (box.kind, str(box.nodes))
    clusters = [f"cluster_{box.key}" for box in visible.boxes if box.open]
    assert sorted(found.subgraphs) == sorted(clusters)
    edges = Counter()
    for source, target, attributes in found.edges:
        if attributes.get("style") != "dashed":
            edges[source, target] += int(attributes.get("edges", 1))
    name = [box.key for box in visible.boxes]
    assert edges == Counter(
        {
            (name[link.source], name[link.target]): len(link.edges)
            for link in visible.links
            if link.edges
        }
    )


@given(awkward_graphs())
def test_dot_with_any_text_is_read_back(graph: GraphSnapshot) -> None:
    found = read_dot(to_dot(Hierarchy(graph)))
    for node in graph.nodes:
        attributes = found.nodes[f"#{node.id}"]
        # A line break is written as \n, and so read as these two characters.
        label = node.label.replace("\n", "\\n").replace("\0", "\N{REPLACEMENT CHARACTER}")
        assert undone(attributes.get("variable", "")) == label
        assert attributes["name"] == node.name
        assert attributes.get("module", "") == node.module
        assert attributes["tensor"] == shape_text(node.outputs[0])
    ends = Counter((a, b, d.get("input"), d.get("output")) for a, b, d in found.edges)
    for edge in graph.edges:
        key = (f"#{edge.source}", f"#{edge.target}", str(edge.input), str(edge.output))
        assert ends[key] == 1


def test_dot_of_a_closed_model_says_how_often_its_layers_repeat() -> None:
    hierarchy = Hierarchy(recorded(*gpt2()))
    found = read_dot(to_dot(hierarchy, frozenset({"net"})))
    layers = found.nodes["net.transformer.h.[0-11]"]
    assert (layers["repeat"], layers["kind"]) == ("12", "repeat")
    assert layers["label"].startswith("transformer.h 0–11 ×12\\nBlock")


# -- JSON ------------------------------------------------------------------------------------------


@given(awkward_graphs(), st.frozensets(AWKWARD))
def test_json_holds_all_of_a_graph(graph: GraphSnapshot, open_keys: frozenset[str]) -> None:
    text = to_json(graph, open_keys)
    assert from_json(text) == (graph, open_keys)
    plain = json.loads(text)
    assert (plain.pop("format"), plain.pop("version")) == ("tensorlab-graph", 1)
    assert plain.pop("open") == sorted(open_keys)
    of_the_message = {"reply_to", "revision", "part", "parts"}
    assert set(plain) == set(GraphSnapshot.__struct_fields__) - of_the_message
    assert [node["label"] for node in plain["nodes"]] == [node.label for node in graph.nodes]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.update(format="other"), "not a graph of Tensor Lab"),
        (lambda d: d.update(version=2), "version 2"),
        (lambda d: d.pop("edges"), "required field `edges`"),
        (lambda d: d["nodes"][0].update(name=3), r"Expected `str`.*nodes\[0\].name"),
        (lambda d: d["nodes"][0].update(nme=""), "unknown field `nme`"),
        (lambda d: d["nodes"][0].pop("kind"), "required field `kind`"),
        (lambda d: d["nodes"][1].update(id=7), "ids are not"),
        (lambda d: d["edges"][0].update(target=99), "names node 99"),
        (lambda d: d["cuts"][0].update(node=-1), "names node -1"),
        (lambda d: d["stale"][0].update(node=7), "is of node 7"),
        (lambda d: d["nodes"][4]["source"].update(line="x"), "Expected `int`"),
    ],
)
def test_a_broken_json_file_is_told_in_words(change, words: str) -> None:
    document = json.loads(to_json(NESTED))
    change(document)
    with pytest.raises(ValueError, match=words):
        from_json(json.dumps(document))
    with pytest.raises(ValueError, match="not a JSON"):
        from_json("{")


# -- GraphML ---------------------------------------------------------------------------------------


@given(awkward_graphs())
def test_graphml_is_read_back_by_networkx(graph: GraphSnapshot) -> None:
    found = networkx.parse_graphml(to_graphml(graph), node_type=int, force_multigraph=True)
    assert sorted(found) == [node.id for node in graph.nodes]
    for node in graph.nodes:
        facts = found.nodes[node.id]
        assert (facts["name"], facts["module"], facts["kind"]) == (
            node.name,
            node.module,
            node.kind,
        )
        assert (facts["sequence"], facts["stale"]) == (node.sequence, node.stale)
        assert facts["tensor"] == shape_text(node.outputs[0])
        printable = node.label.isprintable()
        assert not printable or facts["variable"] == node.label
    edges = Counter((a, b, d["input"], d["output"]) for a, b, d in found.edges(data=True))
    assert edges == Counter((e.source, e.target, e.input, e.output) for e in graph.edges)


# -- files -----------------------------------------------------------------------------------------


def test_a_graph_is_saved_by_its_suffix(tmp_path: Path) -> None:
    hierarchy = Hierarchy(NESTED)
    for name in ("a.dot", "b.gv", "c.json", "d.graphml"):
        save_graph(str(tmp_path / name), hierarchy, frozenset({"body"}))
    assert len(read_dot((tmp_path / "a.dot").read_text("utf-8")).nodes) == 4
    assert (tmp_path / "a.dot").read_bytes() == (tmp_path / "b.gv").read_bytes()
    assert from_json((tmp_path / "c.json").read_bytes()) == (NESTED, {"body"})
    assert len(networkx.read_graphml(tmp_path / "d.graphml")) == len(NESTED.nodes)
    with pytest.raises(ValueError, match=r"\.dot, \.gv, \.json, \.graphml, not \.txt"):
        save_graph(str(tmp_path / "e.txt"), hierarchy, frozenset())
