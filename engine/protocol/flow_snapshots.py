"""Snapshots of gradient flow: how large each layer's gradients are while a model trains."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from .snapshots import Snapshot
from .values import Picture

Initialisation = Literal[
    "default",
    "kaiming_normal",
    "xavier_uniform",
    "orthogonal",
    "normal_0.01",
    "normal_1",
    "zeros",
]

FlowVerdict = Literal["", "vanishing", "exploding"]


class FlowSnapshot(Snapshot, frozen=True, kw_only=True):
    """One of the runs, after `step` of `steps` steps. Sent again as the run goes on.

    `rms` (layers, steps) is the root mean square of each layer's gradients. `dead` (activations,
    steps) is the fraction of units that pass no gradient for any sample. Both are NaN where nothing
    has been measured yet, and None without a layer. `order` has the names of both in the model's
    order. `norms` are the 2-norms of the last step's gradients, `verdicts` the judgement on each.
    `losses` has a number for each step. `ended` says in words why the run ended early.
    """

    initialisation: Initialisation
    step: int
    steps: int
    layers: tuple[str, ...]
    parameters: tuple[int, ...]
    rms: Picture | None
    norms: tuple[float, ...]
    verdicts: tuple[FlowVerdict, ...]
    activations: tuple[str, ...] = ()
    dead: Picture | None = None
    order: tuple[str, ...] = ()
    losses: tuple[float, ...] = ()
    ended: str = ""


class FlowHistogram(Struct, frozen=True):
    """Sizes of a layer's gradients in one run: `counts` by power of ten (FlowHistogramsSnapshot has
    the range), the number of exact `zeros`, and the 2-norm."""

    initialisation: Initialisation
    counts: tuple[int, ...]
    zeros: int
    norm: float


class FlowHistogramsSnapshot(Snapshot, frozen=True, kw_only=True):
    """The gradients of `layer` in step `step` (from 0), in every run so far. The bins have equal
    width in log10, from 10^`low` to 10^`high`; the end bins also count what is outside."""

    layer: str
    step: int
    low: float
    high: float
    runs: tuple[FlowHistogram, ...]
