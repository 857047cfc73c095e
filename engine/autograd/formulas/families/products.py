"""Products of matrices and vectors, and convolutions."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..book import enter, pointwise
from ..input_rules import InputRule
from ..linear import Computed, Transposed
from ..node_values import NodeValues
from ..pointwise import Pointwise, Setting


def _pair(
    a: str, b: str, texts: tuple[str, str], forward: Any, rules: tuple[Any, Any], factor: str = ""
) -> tuple[InputRule, ...]:
    """The two factors of y = forward(a, b)."""
    left = Transposed(a, texts[0], lambda given, z, other: forward(z, other), b, factor, rules[0])
    right = Transposed(b, texts[1], lambda given, z, other: forward(other, z), a, factor, rules[1])
    return left, right


def _g(given: NodeValues) -> Tensor:
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
_DOT = "y = Σ a·b: g · b for a and g · a for b."
pointwise("DotBackward0", _DOT, saved={"a": "self", "b": "tensor"}, a="g * b", b="g * a")
pointwise(
    "VdotBackward0",
    _DOT,
    saved={"a": "self", "b": "other"},
    when=lambda given: not given.gradient().is_complex(),
    a="g * b",
    b="g * a",
)


def _with_sum(
    names: str,
    words: str,
    parts: tuple[tuple[str, str], Any, tuple[Any, Any]],
    saved: dict[str, str],
    meanings: dict[str, str] | None = None,
) -> None:
    """Enter y = β · c + α · (a product); formulas without α and β where both are 1."""
    texts, forward, rules = parts
    scaled = (f"α · {texts[0]}", f"α · {texts[1]}")
    plain_sum, scaled_sum = (Pointwise("c", text, Setting()) for text in ("g", "beta * g"))
    enter(
        names,
        words,
        plain_sum,
        *_pair("x", "W", texts, forward, rules),
        saved=saved,
        when=lambda given: given["alpha"] == 1 and given["beta"] == 1,
        meanings=meanings,
    )
    enter(
        names,
        words,
        scaled_sum,
        *_pair("x", "W", scaled, forward, rules, "alpha"),
        saved=saved,
        meanings=meanings,
    )


_XW = (
    ("g · Wᵀ", "xᵀ · g"),
    torch.matmul,
    (lambda v: _g(v) @ v["W"].mH, lambda v: v["x"].mH @ _g(v)),
)
_with_sum(
    "AddmmBackward0",
    "y = c + x·W: the gradient g gives g·Wᵀ for x, xᵀ·g for W, and g summed over the batch for c.",
    _XW,
    {"x": "mat1", "W": "mat2"},
    {"W": "the second matrix: for a Linear its weight, transposed"},
)
_with_sum(
    "BaddbmmBackward0",
    "Batched y = c + x·W: for each batch, g·Wᵀ for x, xᵀ·g for W, and g for c.",
    _XW,
    {"x": "batch1", "W": "batch2"},
)
_with_sum(
    "AddbmmBackward0",
    "y = c + Σ x·W over the batch: each batch's x gets g·Wᵀ, its W gets xᵀ·g.",
    (
        ("g · Wᵀ", "xᵀ · g"),
        lambda a, b: torch.bmm(a, b).sum(0),
        (lambda v: _g(v) @ v["W"].mH, lambda v: v["x"].mH @ _g(v)),
    ),
    {"x": "batch1", "W": "batch2"},
)
_with_sum(
    "AddmvBackward0",
    "y = c + x·W, a matrix times a vector: the outer product of g and W for x, xᵀ·g for W.",
    (
        ("outer(g, W)", "xᵀ · g"),
        torch.mv,
        (lambda v: torch.outer(_g(v), v["W"].conj()), lambda v: v["x"].mH @ _g(v)),
    ),
    {"x": "mat", "W": "vec"},
)
_with_sum(
    "AddrBackward0",
    "y = c + outer(x, W): g·W for x, gᵀ·x for W.",
    (
        ("g · W", "gᵀ · x"),
        torch.outer,
        (lambda v: _g(v) @ v["W"].conj(), lambda v: _g(v).mT @ v["x"].conj()),
    ),
    {"x": "vec1", "W": "vec2"},
)


def _convolve(given: NodeValues, x: Tensor, w: Tensor) -> Tensor:
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


def _convolution(text_x: str, text_w: str, words: str, transposed: bool) -> None:
    symbols = ("s", "p")
    enter(
        "ConvolutionBackward0",
        words,
        Transposed(
            "x", text_x, lambda given, z, other: _convolve(given, z, other), "W", shown=symbols
        ),
        Transposed(
            "W", text_w, lambda given, z, other: _convolve(given, other, z), "x", shown=symbols
        ),
        Computed("b", "Σ g over samples and places", lambda given: _per_channel(given.gradient())),
        saved={"x": "input", "W": "weight", "s": "stride", "p": "padding"},
        when=lambda given: given["transposed"] == transposed,
        meanings={
            "W": "the filters, one window k for each pair of an output and an input channel",
            "s": "the stride",
            "p": "the padding",
        },
    )


_convolution(
    "Σ g[n, o, i] · W[o, c, j - s·i + p]",
    "Σ g[n, o, i] · x[n, c, s·i + k - p]",
    "Correlates g with the weight (flipped) for the input, and the input with g for the weight;"
    " sums g for the bias.",
    False,
)
_convolution(
    "Σ g[n, o, s·j + k - p] · W[c, o, k]",
    "Σ g[n, o, s·j + k - p] · x[n, c, j]",
    "A transposed convolution goes back as a convolution: of g with the weight for the input, of g"
    " with the input for the weight; sums g for the bias.",
    True,
)


def _per_channel(g: Tensor) -> Tensor:
    return g.transpose(0, 1).flatten(1).sum(1)
