"""Products of matrices and vectors, and convolutions."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .book import enter
from .given import Given
from .outs import Computed, Out, Pointwise, Setting, Transposed

_ADDED = Pointwise("c", "beta * g", Setting())
"""The term that addmm and its kin add."""


def _pair(
    a: str, b: str, texts: tuple[str, str], forward: Any, rules: tuple[Any, Any], factor: str = ""
) -> tuple[Out, ...]:
    """The two factors of y = forward(a, b)."""
    left = Transposed(a, texts[0], lambda given, z, other: forward(z, other), b, factor, rules[0])
    right = Transposed(b, texts[1], lambda given, z, other: forward(other, z), a, factor, rules[1])
    return left, right


def _g(given: Given) -> Tensor:
    return given.gradient()


_MM = (
    ("g · bᵀ", "aᵀ · g"),
    torch.matmul,
    (lambda v: _g(v) @ v["b"].mH, lambda v: v["a"].mH @ _g(v)),
)
_MV = (
    ("outer(g, b)", "aᵀ · g"),
    torch.mv,
    (lambda v: torch.outer(_g(v), v["b"].conj()), lambda v: v["a"].mH @ _g(v)),
)
enter(
    "MmBackward0",
    "y = a·b: the gradient g gives g·bᵀ for a and aᵀ·g for b.",
    *_pair("a", "b", *_MM),
    saved={"a": "self", "b": "mat2"},
)
enter(
    "BmmBackward0",
    "Batched y = a·b: for each batch, g·bᵀ for a and aᵀ·g for b.",
    *_pair("a", "b", *_MM),
    saved={"a": "self", "b": "mat2"},
)
enter(
    "MvBackward0",
    "y = a·b, a matrix times a vector: the outer product of g and b for a, aᵀ·g for b.",
    *_pair("a", "b", *_MV),
    saved={"a": "self", "b": "vec"},
)
enter(
    "DotBackward0",
    "y = Σ a·b: g · b for a and g · a for b.",
    Pointwise("a", "g * b", Setting()),
    Pointwise("b", "g * a", Setting()),
    saved={"a": "self", "b": "tensor"},
)
enter(
    "VdotBackward0",
    "y = Σ a·b: g · b for a and g · a for b.",
    Pointwise("a", "g * b", Setting()),
    Pointwise("b", "g * a", Setting()),
    saved={"a": "self", "b": "other"},
    when=lambda given: not given.gradient().is_complex(),
)


def _scaled(texts: tuple[str, str], forward: Any, rules: Any) -> tuple[Out, ...]:
    texts = (f"α · {texts[0]}", f"α · {texts[1]}")
    return _ADDED, *_pair("x", "W", texts, forward, rules, "alpha")


_XW = (
    ("g · Wᵀ", "xᵀ · g"),
    torch.matmul,
    (lambda v: _g(v) @ v["W"].mH, lambda v: v["x"].mH @ _g(v)),
)
enter(
    "AddmmBackward0",
    "y = c + x·W: the gradient g gives g·Wᵀ for x, xᵀ·g for W, and g summed over the batch for c.",
    *_scaled(*_XW),
    saved={"x": "mat1", "W": "mat2"},
    meanings={"c": "the bias", "W": "the second matrix: for a Linear its weight, transposed"},
)
enter(
    "BaddbmmBackward0",
    "Batched y = c + x·W: for each batch, g·Wᵀ for x, xᵀ·g for W, and g for c.",
    *_scaled(*_XW),
    saved={"x": "batch1", "W": "batch2"},
)
enter(
    "AddbmmBackward0",
    "y = c + Σ x·W over the batch: each batch's x gets g·Wᵀ, its W gets xᵀ·g.",
    *_scaled(
        ("g · Wᵀ", "xᵀ · g"),
        lambda a, b: torch.bmm(a, b).sum(0),
        (lambda v: _g(v) @ v["W"].mH, lambda v: v["x"].mH @ _g(v)),
    ),
    saved={"x": "batch1", "W": "batch2"},
)
enter(
    "AddmvBackward0",
    "y = c + x·W, a matrix times a vector: the outer product of g and W for x, xᵀ·g for W.",
    *_scaled(
        ("outer(g, W)", "xᵀ · g"),
        torch.mv,
        (lambda v: torch.outer(_g(v), v["W"].conj()), lambda v: v["x"].mH @ _g(v)),
    ),
    saved={"x": "mat", "W": "vec"},
)
enter(
    "AddrBackward0",
    "y = c + outer(x, W): g·W for x, gᵀ·x for W.",
    *_scaled(
        ("g · W", "gᵀ · x"),
        torch.outer,
        (lambda v: _g(v) @ v["W"].conj(), lambda v: _g(v).mT @ v["x"].conj()),
    ),
    saved={"x": "vec1", "W": "vec2"},
)


def _convolve(given: Given, x: Tensor, w: Tensor) -> Tensor:
    return torch.convolution(
        x,
        w,
        None,
        given["stride"],
        given["padding"],
        given["dilation"],
        given["transposed"],
        given["output_padding"],
        given["groups"],
    )


enter(
    "ConvolutionBackward0",
    "Correlates g with the weight (flipped) for the input, and the input with g for the weight;"
    " sums g for the bias.",
    Transposed(
        "x",
        "Σ g[n, o, place] · W[o, c, place of x in its window], over every window with x in it",
        lambda given, z, other: _convolve(given, z, other),
        "W",
    ),
    Transposed(
        "W",
        "Σ g[n, o, place] · x[n, c, place · stride + k - padding], over samples and places",
        lambda given, z, other: _convolve(given, other, z),
        "x",
    ),
    Computed("b", "Σ g over samples and places", lambda given: _per_channel(given.gradient())),
    saved={"x": "input", "W": "weight"},
    meanings={"W": "the filters: output channels × input channels × window"},
)


def _per_channel(g: Tensor) -> Tensor:
    return g.transpose(0, 1).flatten(1).sum(1)
