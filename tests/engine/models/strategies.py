"""Models for tests: chains written as lists, and random ones that fit together."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from hypothesis import strategies as st

from engine.models import shapes
from engine.project import catalogue
from engine.project.document import Block, Model, ParamValue, Wire

Step = tuple[str, Mapping[str, ParamValue]]


def new_block(block_id: str, kind: str, params: Mapping[str, ParamValue], name: str = "") -> Block:
    values = {**catalogue.defaults(kind), **params}
    return Block(block_id, kind, name or f"{catalogue.kind(kind).stem}_{block_id}", values)


def chain(*steps: Step) -> Model:
    """Blocks b0, b1, ... in a row; every required input of a block gets the one before."""
    blocks: list[Block] = []
    wires: list[Wire] = []
    for index, (kind, params) in enumerate(steps):
        block = new_block(f"b{index}", kind, params, "x" if kind == "Input" else "")
        if blocks:
            port = catalogue.ports(blocks[-1])[1][0].name
            wires += [
                Wire(blocks[-1].id, port, block.id, target.name)
                for target in catalogue.ports(block)[0]
                if not target.optional
            ]
        blocks.append(block)
    return Model(tuple(blocks), tuple(wires))


# What the kinds of the catalogue take, with their initial arguments: the shape of one sample.
SAMPLES: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("nn.Linear", "nn.BatchNorm1d", "nn.LayerNorm", "nn.RMSNorm"), (64,)),
    "nn.Bilinear": (32,),
    "nn.Conv1d": (1, 16),
    **dict.fromkeys(("nn.MaxPool1d", "nn.AvgPool1d"), (3, 16)),
    "nn.Conv2d": (1, 8, 8),
    **dict.fromkeys(
        ("nn.ConvTranspose2d", "nn.BatchNorm2d", "nn.GroupNorm", "nn.Upsample", "nn.MaxPool2d"),
        (8, 6, 6),
    ),
    **dict.fromkeys(
        ("nn.AvgPool2d", "nn.AdaptiveAvgPool2d", "nn.AdaptiveMaxPool2d", "nn.Dropout2d"), (8, 6, 6)
    ),
    **dict.fromkeys(("nn.Unflatten", "Tensor.reshape"), (64,)),
    **dict.fromkeys(("torch.permute", "torch.transpose"), (3, 5)),
    "torch.squeeze": (1, 8, 8),
    "nn.Embedding": (5,),
    **dict.fromkeys(("nn.LSTM", "nn.GRU", "nn.RNN"), (5, 8)),
    **dict.fromkeys(("nn.MultiheadAttention", "nn.TransformerEncoderLayer"), (5, 16)),
    "torch.matmul": (6, 6),
}


def sample_shape(kind: str) -> tuple[int, ...]:
    return SAMPLES.get(kind, (4, 8))


@st.composite
def models(draw: st.DrawFn) -> Model:
    """A random model that fits together: branches, shortcuts, several outputs, dead ends."""
    shape = draw(st.sampled_from([(8,), (1, 8, 8), (4, 8), (2, 3, 5)]))
    model = Model((new_block("b0", "Input", {"shape": shape}, "x"),))
    for index in range(1, draw(st.integers(1, 7)) + 1):
        grown = draw(_grown(model, f"b{index}"))
        if not any(found.problems for found in shapes.infer(grown).values()):
            model = grown
    last = model.blocks[-1]
    port = draw(st.sampled_from(catalogue.ports(last)[1])).name
    output = new_block("out", "Output", {})
    return Model((*model.blocks, output), (*model.wires, Wire(last.id, port, "out", "x")))


@st.composite
def _grown(draw: st.DrawFn, model: Model, block_id: str) -> Model:
    known = shapes.infer(model)
    values = [
        (block.id, port, spec.shape)
        for block in model.blocks
        for port, spec in known[block.id].outputs.items()
    ]
    source, port, shape = draw(st.sampled_from(values[-3:]))
    last = shape[-1] if shape and isinstance(shape[-1], int) else 1
    channels = shape[1] if len(shape) > 1 and isinstance(shape[1], int) else 1
    steps: list[Step] = [
        ("nn.Linear", {"in_features": last, "out_features": draw(st.integers(1, 6))}),
        ("nn.ReLU", {}),
        ("nn.Dropout", {"p": 0.25}),
        ("nn.LayerNorm", {"normalized_shape": last}),
        ("nn.Flatten", {}),
        ("nn.Identity", {}),
        ("nn.GELU", {"approximate": "tanh"}),
        ("torch.mean", {"dim": -1, "keepdim": draw(st.booleans())}),
        ("torch.unsqueeze", {"dim": 1}),
        ("torch.softmax", {"dim": -1}),
        ("Tensor.reshape", {"shape": (-1,)}),
    ]
    pairs: list[Step] = [("residual", {}), ("torch.mul", {}), ("torch.add", {"alpha": 2.0})]
    pairs += [("torch.cat", {"inputs": 2, "dim": -1}), ("torch.sub", {})]
    if len(shape) == 4:
        conv = {"in_channels": channels, "out_channels": 3, "kernel_size": 3, "padding": "same"}
        steps += [("nn.Conv2d", conv), ("nn.BatchNorm2d", {"num_features": channels})]
    if len(shape) == 3:
        steps += [
            ("nn.LSTM", {"input_size": last, "hidden_size": 4, "batch_first": True}),
            ("nn.GRU", {"input_size": last, "hidden_size": 4, "batch_first": True}),
            ("nn.MultiheadAttention", {"embed_dim": last, "num_heads": 1, "batch_first": True}),
            ("torch.select", {"dim": draw(st.sampled_from([1, 2])), "index": -1}),
        ]
    kind, params = draw(st.sampled_from([*steps, *pairs]))
    block = new_block(block_id, kind, params)
    inputs = [p.name for p in catalogue.ports(block)[0] if not p.optional]
    wires = [Wire(source, port, block_id, inputs[0])]
    for name in inputs[1:]:
        same = [value for value in values if value[2] == shape]
        other, other_port, _ = draw(st.sampled_from(same))
        wires.append(Wire(other, other_port, block_id, name))
    return Model((*model.blocks, block), (*model.wires, *wires))


KINDS = [
    k for k, kind in catalogue.kinds().items() if kind.call in ("module", "function", "method")
]
"""Every kind that computes something."""


def one_of(kind: str) -> Model:
    """The kind with its initial arguments, between an Input that suits it and the Output."""
    start: dict[str, ParamValue] = {"shape": sample_shape(kind)}
    if kind == "nn.Embedding":
        start["dtype"] = "int64"
    return chain(("Input", start), (kind, {}), ("Output", {}))


def batch_for(model: Model, size: int = 3) -> torch.Tensor:
    """Random samples for the model's Input, (size, *shape)."""
    values = catalogue.arguments(next(b for b in model.blocks if b.kind == "Input"))
    shape = values["shape"]
    assert isinstance(shape, tuple)
    sizes = (size, *map(int, shape))
    if values["dtype"] == "int64":
        return torch.randint(2, sizes)
    return torch.randn(sizes)
