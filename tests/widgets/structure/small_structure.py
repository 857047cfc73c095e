"""The structure of a small module, as the engine tells it."""

from __future__ import annotations

from engine.project.document import replace
from engine.protocol import (
    GraphEdge,
    GraphNode,
    GraphSnapshot,
    Histogram,
    ModuleCall,
    ModuleRow,
    StructureSnapshot,
    StructureTotals,
    TensorSpec,
    WeightRow,
)

CALL = ModuleCall(((8, 4),), ((8, 2),), macs=64, kept_bytes=128, ms=0.25)
HISTOGRAM = Histogram(-1.0, 0.5, (1, 2, 4, 1))

MODULES = (
    ModuleRow("", "Net", 32, 128, 22, (CALL,), 1, macs=224, kept_bytes=2048, ms=1.5),
    ModuleRow("body", "Sequential", 22, 88, 12, code=".body"),
    ModuleRow(
        "body.0",
        "Linear",
        10,
        40,
        0,
        (CALL, CALL),
        2,
        macs=128,
        kept_bytes=None,
        ms=0.5,
        code=".body[0]",
    ),
    ModuleRow(
        "body.1",
        "BatchNorm1d",
        12,
        48,
        12,
        (CALL, ModuleCall(((4, 2),), ((4, 2),))),
        2,
        ms=0.0625,
        training=False,
        code=".body[1]",
    ),
    ModuleRow(
        "head", "Linear", 10, 40, 10, (CALL,), 1, macs=32, kept_bytes=128, ms=0.25, code=".head"
    ),
)


def weight(name: str, *shape: int, **facts) -> WeightRow:
    elements = 1
    for size in shape:
        elements *= size
    path, _, last = name.rpartition(".")
    code = next(row.code for row in MODULES if row.path == path) + f".{last}"
    row = WeightRow(
        name, "parameter", shape, "float32", "cpu", elements, 4 * elements, True, code=code
    )
    return replace(row, **facts)


WEIGHTS = (
    weight(
        "body.0.weight",
        2,
        4,
        trainable=False,
        mean=0.25,
        std=0.5,
        fed_by=("opt",),
        histogram=HISTOGRAM,
    ),
    weight("body.0.bias", 2, trainable=False, mean=-0.125, std=0.0625, fed_by=("opt",)),
    weight("body.1.weight", 6, mean=1.0, std=0.0, fed_by=("opt", "other"), gradient=0.125),
    weight("body.1.bias", 6, mean=0.0, std=0.0, fed_by=("opt",)),
    weight("body.1.running_mean", 6, kind="buffer", trainable=False, mean=0.0, std=0.0),
    weight(
        "body.1.seen", kind="buffer", dtype="int64", trainable=False, persistent=False, mean=3.0
    ),
    weight(
        "head.weight",
        2,
        4,
        mean=0.1,
        std=1.25,
        shared_with=("tied.weight",),
        histogram=Histogram(0.0, 1.0, (0, 8, 2)),
    ),
    weight("head.bias", 2, mean=float("nan"), std=float("nan")),
)

WHOLE = StructureSnapshot(
    title="net.py: Net()",
    totals=StructureTotals(5, 32, 22, 128, 7, 32),
    modules=MODULES,
    weights=WEIGHTS,
    batch="(float32 (8, 4), int64 (8,))",
    optimizers=("opt", "other"),
)
BARE = replace(
    WHOLE,
    title="model",
    modules=tuple(
        replace(row, calls=(), call_count=0, macs=0, kept_bytes=0, ms=0.0) for row in MODULES
    ),
    weights=tuple(replace(row, fed_by=(), shared_with=()) for row in WEIGHTS),
    batch="",
    optimizers=(),
)
"""Without data and optimizers."""


def _node(id: int, name: str, module: str, label: str = "") -> GraphNode:
    return GraphNode(
        id,
        name,
        label,
        "leaf" if label else "operation",
        None,
        -1 if label else 9 - id,
        (TensorSpec((8, 2), "float32"),),
        op=name.removesuffix("Backward0").lower(),
        module=module,
    )


GRAPH = GraphSnapshot(
    nodes=(
        _node(0, "MeanBackward0", ""),
        _node(1, "MulBackward0", "Net.head"),
        _node(2, "AccumulateGrad", "Net.head", "head.weight"),
        _node(3, "AccumulateGrad", "Net.body.0", "body.0.weight"),
    ),
    edges=(GraphEdge(0, 1, 0, 0), GraphEdge(1, 2, 0, 0), GraphEdge(1, 3, 1, 0)),
    plan=(),
    modules={"Net": "Net", "Net.head": "Linear", "Net.body": "Sequential", "Net.body.0": "Linear"},
    root="loss",
)
"""The graph of a forward."""
