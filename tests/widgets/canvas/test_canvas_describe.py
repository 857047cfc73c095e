"""Words on blocks."""

from __future__ import annotations

import pytest

from engine.project import catalogue
from engine.project.document import Block
from widgets.canvas.describe import count_text, key_parameters


@pytest.mark.parametrize(
    ("kind", "params", "text"),
    [
        ("nn.Linear", {"in_features": 64, "out_features": 10}, "64 → 10"),
        ("nn.Conv2d", {"in_channels": 3, "out_channels": 16, "kernel_size": 3}, "3 → 16, 3×3"),
        (
            "nn.Conv2d",
            {"in_channels": 3, "out_channels": 8, "kernel_size": (3, 5), "padding": 1},
            "3 → 8, 3×5, pad=1",
        ),
        ("nn.Conv1d", {"in_channels": 3, "out_channels": 16, "kernel_size": 3}, "3 → 16, 3"),
        ("nn.Dropout", {"p": 0.25}, "p=0.25"),
        ("nn.Dropout", {"p": 0.5}, ""),
        ("nn.ReLU", {}, ""),
        ("nn.Embedding", {"num_embeddings": 100, "embedding_dim": 8}, "100 → 8"),
        ("Input", {"shape": (1, 8, 8)}, "(1, 8, 8)"),
        ("Input", {"shape": (64,)}, "(64,)"),
    ],
)
def test_key_parameters(kind, params, text):
    assert key_parameters(Block("b", kind, "b", params)) == text


@pytest.mark.parametrize("kind", catalogue.kinds())
def test_every_kind_has_words(kind):
    assert isinstance(key_parameters(Block("b", kind, "b", catalogue.defaults(kind))), str)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0"), (650, "650"), (999, "999"), (1_000, "1k"), (8_256, "8.26k"), (61_706, "61.7k"),
     (999_999, "1M"), (44_400_000, "44.4M"), (1_500_000_000, "1.5G")],
)  # fmt: skip
def test_counts(count, text):
    assert count_text(count) == text
