"""Random graphs of modules within modules, as hypothesis draws them."""

from __future__ import annotations

from hypothesis import strategies as st

from engine.protocol import GraphEdge, GraphNode, GraphSnapshot, TensorSpec
from engine.protocol.autograd_snapshots import GraphCut
from widgets.boxes.hierarchy import Hierarchy

PATHS = ("", "", "a", "a.b", "a.b.c", "h.0", "h.0.x", "h.1", "h.1.x", "h.2", "h.2.x", "z")
MODULES = {"a": "Sequential", "h": "ModuleList", "h.0": "Block", "h.1": "Block", "h.2": "Block"}
OPS = ("Mul", "Add")
SHAPES = ((4,), (2, 3), ())


@st.composite
def graphs(draw, most: int = 36) -> GraphSnapshot:
    """A graph of one root whose edges run from lower to higher ids; the nodes without an edge are
    its leaves. Modules come and go along the way, in order or not, and may be called again."""
    count = draw(st.integers(1, most))
    in_order = draw(st.booleans())
    sources = [draw(st.integers(0, i - 1)) for i in range(1, count)]
    ends = [(source, i + 1) for i, source in enumerate(sources)]
    if count > 1:
        pair = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
        more = draw(st.lists(pair.filter(lambda p: p[0] != p[1]), max_size=count))
        ends += [(min(p), max(p)) for p in more]
    inner = {source for source, _ in ends}
    path, nodes = "", []
    for i in range(count):
        if draw(st.integers(0, 2)) == 0:
            path = draw(st.sampled_from(PATHS))
        nodes.append(
            GraphNode(
                id=i,
                name=f"{draw(st.sampled_from(OPS))}Backward0" if i in inner else "AccumulateGrad",
                label="" if i in inner else f"{path}.w{i}".lstrip("."),
                kind="operation" if i in inner else "leaf",
                block=None,
                sequence=count - i if in_order and i in inner else -1,
                outputs=(TensorSpec(draw(st.sampled_from(SHAPES)), "float32"),),
                module=path,
            )
        )
    inputs: dict[int, int] = {}
    edges = []
    for source, target in ends:
        edges.append(GraphEdge(source, target, inputs.setdefault(source, 0), 0))
        inputs[source] += 1
    cuts = draw(st.lists(st.sampled_from(sorted(inner)), max_size=3, unique=True)) if inner else []
    return GraphSnapshot(
        nodes=tuple(nodes),
        edges=tuple(edges),
        plan=(),
        cuts=tuple(GraphCut(node, inputs[node], "frozen", "bias") for node in cuts),
        modules=MODULES,
    )


@st.composite
def opened(draw) -> tuple[Hierarchy, frozenset[str]]:
    """A hierarchy and some of its keys."""
    hierarchy = Hierarchy(draw(graphs()))
    keys = sorted(hierarchy.open_all())
    some = st.lists(st.sampled_from(keys), unique=True) if keys else st.just([])
    every = draw(st.booleans())
    return hierarchy, frozenset(keys) if every else frozenset(draw(some))
