"""A small pass as an engine would tell it: y = relu(x·W + b), a mean as the loss."""

from __future__ import annotations

import numpy as np

from engine.protocol import (
    Activation,
    BackwardSnapshot,
    ForwardSnapshot,
    GraphEdge,
    GraphNode,
    GraphSnapshot,
    NodeStep,
    ParameterGradient,
    Picture,
    TensorSpec,
    TensorSummary,
    Value,
)

NAMES = {"b1": "x", "b2": "linear1", "b3": "relu1", "loss": "loss"}
ORDER = ("b1", "b2", "b3", "loss")


def summary_of(array: np.ndarray) -> TensorSummary:
    """The statistics that torch would give (std unbiased)."""
    finite = array[np.isfinite(array)].astype(np.float64)
    return TensorSummary(
        shape=array.shape,
        dtype="float32",
        device="cpu",
        size_bytes=array.nbytes,
        minimum=float(finite.min()),
        maximum=float(finite.max()),
        mean=float(finite.mean()),
        std=float(finite.std(ddof=1)) if finite.size > 1 else None,
        norm=float(np.sqrt((finite**2).sum())),
        zeros=int((array == 0).sum()),
        nans=int(np.isnan(array).sum()),
        infs=int(np.isinf(array).sum()),
    )


def value_of(label: str, array: np.ndarray) -> Value:
    data = np.ascontiguousarray(array, "<f4")
    shape = data.shape if data.ndim == 2 else (1, data.size)
    return Value(label, summary_of(data), Picture(shape, data.tobytes(), data.shape))


ACTIVATIONS = {
    "b1": np.array([[1.0, 2.0], [3.0, 4.0]], np.float32),
    "b2": np.array([[-1.0, 0.5], [0.25, -2.0]], np.float32),
    "b3": np.array([[0.0, 0.5], [0.25, 0.0]], np.float32),
    "loss": np.array(0.1875, np.float32),
}


def forward(position: int) -> ForwardSnapshot:
    done = ORDER[:position]
    last = done[-1] if done else None
    return ForwardSnapshot(
        order=ORDER,
        position=position,
        activations=tuple(
            Activation(block, (summary_of(ACTIVATIONS[block]),), 0.1) for block in done
        ),
        current=(value_of("output", ACTIVATIONS[last]),) if last else (),
        inputs=(value_of("input", ACTIVATIONS[done[-2]]),) if len(done) > 1 else (),
        loss=0.1875 if position == len(ORDER) else None,
        batch=3,
        batch_size=2,
    )


def _node(id: int, name: str, op: str, block: str | None, shape: tuple, label: str = ""):
    return GraphNode(
        id=id,
        name=name,
        label=label or op,
        kind="leaf" if label else "operation",
        block=block,
        sequence=-1 if label else 9 - id,
        outputs=(TensorSpec(shape, "float32"),),
        saved_bytes=32 if op == "relu" else 0,
        op=op,
    )


GRAPH = GraphSnapshot(
    nodes=(
        _node(0, "MeanBackward0", "mean", "loss", ()),
        _node(1, "ReluBackward0", "relu", "b3", (2, 2)),
        _node(2, "AddmmBackward0", "addmm", "b2", (2, 2)),
        _node(3, "AccumulateGrad", "accumulate_grad", "b2", (2,), "linear1.bias"),
        _node(4, "TBackward0", "t", "b2", (2, 2)),
        _node(5, "AccumulateGrad", "accumulate_grad", "b2", (2, 2), "linear1.weight"),
    ),
    edges=(
        GraphEdge(source=0, target=1, input=0, output=0),
        GraphEdge(source=1, target=2, input=0, output=0),
        GraphEdge(source=2, target=3, input=0, output=0),
        GraphEdge(source=2, target=4, input=2, output=0),
        GraphEdge(source=4, target=5, input=0, output=0),
    ),
    plan=(0, 1, 2, 3, 4, 5),
    rules={
        "ReluBackward0": "Lets the gradient through where the output was above zero, and stops it"
        " elsewhere.",
        "AddmmBackward0": "y = c + x·W: the gradient g gives g·Wᵀ for x, xᵀ·g for W, and g for c.",
    },
)

BIAS_GRAD = np.array([0.25, 0.5], np.float32)
WEIGHT_GRAD = np.array([[0.75, 1.0], [0.5, 0.25]], np.float32)
STEPS = {
    0: NodeStep(
        node=0,
        incoming=(value_of("gradient in", np.ones((), np.float32)),),
        outgoing=(value_of("to relu", np.full((2, 2), 0.25, np.float32)),),
    ),
    2: NodeStep(
        node=2,
        incoming=(value_of("gradient in", np.array([[0, 0.25], [0.25, 0]], np.float32)),),
        outgoing=(value_of("to linear1.bias", BIAS_GRAD), None, value_of("to t", WEIGHT_GRAD.T)),
    ),
    5: NodeStep(node=5, incoming=(value_of("gradient in", WEIGHT_GRAD),), outgoing=()),
}


def backward(position: int) -> BackwardSnapshot:
    """After `position` nodes; 0, 1, 3 and 6 have a step to show."""
    last = GRAPH.plan[position - 1] if position else None
    return BackwardSnapshot(
        position=position,
        step=STEPS[last] if last is not None else None,
        gradients=(
            ParameterGradient(
                "linear1.weight", (2, 2), summary_of(WEIGHT_GRAD) if position == 6 else None
            ),
            ParameterGradient(
                "linear1.bias", (2,), summary_of(BIAS_GRAD) if position > 3 else None
            ),
        ),
    )
