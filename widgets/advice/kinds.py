"""The kinds of findings."""

from __future__ import annotations

KINDS = {
    "broadcast": "shapes that broadcast in a loss",
    "zero_grad": "gradients that are not cleared",
    "softmax": "softmax or sigmoid applied twice, or missing",
    "not_trained": "parameters that no optimizer trains",
    "no_gradient": "parameters that get no gradient",
    "mode": "train and eval mode, and graphs built for nothing",
    "kept_graph": "graphs that are kept alive",
    "dead_units": "units that give 0 for every sample",
    "waiting": "numbers read from the GPU in every step",
}
"""The subject of the notes of each kind, in words."""
