"""A graph of modules within modules as an engine would tell it: two layers, a head, a loss."""

from __future__ import annotations

from engine.protocol import GraphEdge, GraphNode, GraphSnapshot, TensorSpec
from engine.protocol.autograd_snapshots import GraphCut, SourceLine, StaleTensor

_WIDE = TensorSpec((4, 8), "float32")
_LINE = SourceLine("<cell 3>", 7, "x = self.act(self.fc(x))")


def _node(id: int, name: str, module: str, label: str = "", **more) -> GraphNode:
    return GraphNode(
        id=id,
        name=name,
        label=label,
        kind="leaf" if label else "operation",
        block=None,
        sequence=-1 if label else 20 - id,
        outputs=(TensorSpec((8, 8), "float32") if label else _WIDE,),
        op="accumulate_grad" if label else name.removesuffix("Backward0").lower(),
        module=module,
        **more,
    )


NESTED = GraphSnapshot(
    nodes=(
        _node(0, "MeanBackward0", ""),
        _node(1, "AddmmBackward0", "head", saved_bytes=2048),
        _node(2, "AccumulateGrad", "head", "head.weight"),
        _node(3, "TanhBackward0", "body.act", saved_bytes=128, stale=True),
        _node(4, "AddmmBackward0", "body.fc", source=_LINE, aten="aten::addmm"),
        _node(5, "TBackward0", "body.fc"),
        _node(6, "AccumulateGrad", "body.fc", "body.fc.weight"),
    ),
    edges=(
        GraphEdge(0, 1, 0, 0),
        GraphEdge(1, 2, 2, 0),
        GraphEdge(1, 3, 1, 0),
        GraphEdge(3, 4, 0, 0),
        GraphEdge(4, 5, 2, 0),
        GraphEdge(5, 6, 0, 0),
    ),
    plan=(0, 1, 3, 4, 5, 6, 2),
    cuts=(GraphCut(4, 0, "frozen", "body.fc.bias"),),
    stale=(StaleTensor(3, "result", 0, 1, "add_", SourceLine("<cell 3>", 8, "x.add_(1)")),),
    modules={"head": "Linear", "body": "Sequential", "body.fc": "Linear", "body.act": "Tanh"},
)
"""loss -> head (addmm, weight) -> body (act: tanh; fc: addmm, t, weight; a frozen bias)."""
