"""Gradient flow: how large the gradients of each layer are while a model trains."""

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
    """One of the runs, after `step` of `steps` steps. Sent again as it goes on.

    `rms` (layers, steps) is the root mean square of each layer's gradients, `dead` (activations,
    steps) the fraction of units through which no sample gets a gradient; both are NaN where
    nothing was measured yet, None without a layer; `order` has the names of both in the model's
    order. `norms` are the last step's 2-norms and `verdicts` the words on them. `losses` has a
    number for each step. `ended` says in words why the run ended early.
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
    """Sizes of a layer's gradients in one run: `counts` by power of ten (`FlowHistograms` says
    from where to where), `zeros` exactly zero, `norm` their 2-norm."""

    initialisation: Initialisation
    counts: tuple[int, ...]
    zeros: int
    norm: float


class FlowHistogramsSnapshot(Snapshot, frozen=True, kw_only=True):
    """The gradients of `layer` in step `step` (from 0), in every run that has come so far. Bins
    are equally wide in log10, from 10^`low` to 10^`high`; what is outside is in the end bins."""

    layer: str
    step: int
    low: float
    high: float
    runs: tuple[FlowHistogram, ...]
