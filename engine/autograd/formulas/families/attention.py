"""Scaled dot-product attention, in one node."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..book import enter
from ..linear import Computed
from ..node_values import NodeValues


def _parts(given: NodeValues) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, float]:
    """g, q, k, v, the probabilities P, the gradient dS of the scores, and the scale."""
    g, q, k, v = given.gradient(), given["q"], given["k"], given["v"]
    scale = given.number("scale", None) or 1 / math.sqrt(q.shape[-1])
    scores = q @ k.mT * scale
    if given["is_causal"]:
        later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, -math.inf)
    if given.has("attn_mask"):
        scores = scores + given["attn_mask"]
    p = scores.softmax(-1)
    of_p = g @ v.mT
    of_scores = p * (of_p - (p * of_p).sum(-1, keepdim=True))
    return g, q, k, v, p, of_scores, scale


def _query(given: NodeValues) -> Tensor:
    _, _, k, _, _, of_scores, scale = _parts(given)
    return scale * of_scores @ k


def _key(given: NodeValues) -> Tensor:
    _, q, _, _, _, of_scores, scale = _parts(given)
    return scale * of_scores.mT @ q


def _value(given: NodeValues) -> Tensor:
    g, _, _, _, p, _, _ = _parts(given)
    return p.mT @ g


_SYMBOLS = ("g", "q", "k", "v")
enter(
    "ScaledDotProductFlashAttentionForCpuBackward0",
    "y = P·v with P = softmax(q·kᵀ / √d): v gets Pᵀ·g. The gradient D of the scores goes on to q"
    " and k.",
    Computed("q", "D · k / √d,  D = P · (g·vᵀ - Σ P · g·vᵀ)", _query, _SYMBOLS),
    Computed("k", "Dᵀ · q / √d,  D = P · (g·vᵀ - Σ P · g·vᵀ)", _key, _SYMBOLS),
    Computed("v", "Pᵀ · g,  P = softmax(q·kᵀ / √d)", _value, _SYMBOLS),
    saved={"q": "query", "k": "key", "v": "value"},
    when=lambda given: given["dropout_p"] == 0,
    meanings={"q": "the queries", "k": "the keys", "v": "the values"},
)
