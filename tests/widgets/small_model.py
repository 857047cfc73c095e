"""A model of six blocks for the canvas and its layout."""

from __future__ import annotations

from engine.project import catalogue
from engine.project.document import Block, Model, ParamValue, Wire


def make_block(block_id: str, kind: str, x: float, y: float, **params: ParamValue) -> Block:
    return Block(block_id, kind, f"{block_id}_", {**catalogue.defaults(kind), **params}, x, y)


def make_wire(source: str, target: str, port: str = "input") -> Wire:
    return Wire(source, "x" if source == "x" else "output", target, port)


SMALL_MODEL = Model(
    blocks=(
        make_block("x", "Input", 0, 0, shape=(64,)),
        make_block("a", "nn.Linear", 288, 0, in_features=64, out_features=32),
        make_block("b", "nn.Linear", 576, 0, in_features=32, out_features=10),
        make_block("out", "Output", 864, 0),
        make_block("relu", "nn.ReLU", 288, 240),
        make_block("add", "torch.add", 576, 240),
    ),
    wires=(make_wire("x", "a"), make_wire("a", "b"), make_wire("b", "out", "x")),
)
"""x -> a -> b (Linear each) -> out, and `relu` and `add` that no wire touches yet."""
