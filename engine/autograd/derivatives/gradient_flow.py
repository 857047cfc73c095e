"""The size of each layer's gradients while a model trains, and the units that are dead.

The model is trained, with other contents, for some steps from each of several initialisations, on
the same batches and by the same loop as in training.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ...project.document import TrainingSetup
from ...recording.compiled import add_forward_hook, own_modules
from ...training.figures.metrics import Diverged
from ...training.loop import TrainingLoop
from ...training.objectives.objective import Objective, Outcome
from ...training.objectives.seen_batches import SeenBatches

VANISHING = 1e-3
"""At this fraction of the largest layer's gradient (root mean square) or less, gradients vanish."""
EXPLODING = 1e3
"""At this norm or more, or if they are not finite, gradients explode."""

BIN_LOW, BIN_HIGH, BINS = -12.0, 4.0, 32
"""A histogram counts |gradient| by powers of ten: from 10^-12 up to 10^4, in 32 bins."""

ACTIVATIONS = (nn.ReLU, nn.Threshold, nn.Hardtanh)
"""Activations with flat parts, where the gradient is 0: only their units can be dead. ReLU6 is a
Hardtanh."""


def _default(module: nn.Module) -> None:
    """torch's own initialisation of each layer, from the training seed."""


def _each_weight(fill: Callable[[Tensor], object]) -> Callable[[nn.Module], None]:
    """Fills weights (2-D and up) by `fill` and their biases with 0; norms keep their parameters."""

    def initialise(module: nn.Module) -> None:
        for part in module.modules():
            matrices = [p for p in part.parameters(recurse=False) if p.ndim >= 2]
            for parameter in part.parameters(recurse=False) if matrices else ():
                with torch.no_grad():
                    fill(parameter) if parameter.ndim >= 2 else parameter.zero_()

    return initialise


INITIALISATIONS: dict[str, Callable[[nn.Module], None]] = {
    "default": _default,
    "kaiming_normal": _each_weight(lambda w: nn.init.kaiming_normal_(w, nonlinearity="relu")),
    "xavier_uniform": _each_weight(nn.init.xavier_uniform_),
    "orthogonal": _each_weight(nn.init.orthogonal_),
    "normal_0.01": _each_weight(lambda w: nn.init.normal_(w, std=0.01)),
    "normal_1": _each_weight(lambda w: nn.init.normal_(w, std=1.0)),
    "zeros": _each_weight(nn.init.zeros_),
}

Floats = NDArray[np.float32]


class FlowRun:
    """Some steps of training, measured. Arrays are (layers, steps); layers are the modules with
    parameters of their own, in the order of the model. NaN stands where nothing was measured.

    `norms` has the 2-norm of all of a layer's gradients, `rms` their root mean square.
    `histograms` (layers, steps, BINS) counts their elements by size, `zeros` those that are 0.
    `dead` (activations, steps) has the fraction of dead units: a unit (a channel, or a feature) is
    dead in a step when it is on a flat part for every sample of the batch. `order` has layers and
    activations in the order of the model. `ended` says why the run ended early.
    """

    def __init__(
        self,
        module: nn.Module,
        setup: TrainingSetup,
        steps: int,
        objective: Objective,
    ) -> None:
        self.losses: list[float] = []
        self.loop = TrainingLoop(module, setup, _Watched(objective, self.losses))
        self.steps = min(steps, self.loop.total_steps or steps)
        own = {name: part for name, part, _ in own_modules(module)}
        learning = {
            name: [p for p in part.parameters(recurse=False) if p.requires_grad]
            for name, part in own.items()
        }
        self.layers = [name for name, parameters in learning.items() if parameters]
        self.parameters = [learning[name] for name in self.layers]
        found = [(n, m) for n, m in own.items() if isinstance(m, ACTIVATIONS)]
        self.activations = [name for name, _ in found]
        watched = {*self.layers, *self.activations}
        self.order = [name for name in own if name in watched]
        self.norms: Floats = np.full((len(self.layers), self.steps), np.nan, np.float32)
        self.rms: Floats = self.norms.copy()
        self.zeros = np.zeros((len(self.layers), self.steps), np.int64)
        self.histograms = np.zeros((len(self.layers), self.steps, BINS), np.int64)
        self.dead: Floats = np.full((len(found), self.steps), np.nan, np.float32)
        self.ended = ""
        self._alive: dict[int, Tensor] = {}
        self._hooks = []
        for row, (_, part) in enumerate(found):
            self._hooks.append(add_forward_hook(part, self._see_activation(row)))

    def run(self) -> Generator[None, None, None]:
        """Train, and yield after each step. Raises whatever the model raises."""
        try:
            with closing(self.loop.steps()) as steps:
                while self.loop.step < self.steps:
                    before = self.loop.step
                    next(steps)
                    if self.loop.step > before:  # else a batch of a validation pass
                        self._measure(before)
                        yield
        except Diverged as error:
            self.ended = str(error)
        finally:
            for hook in self._hooks:
                hook.remove()
            self.loop.close()

    @torch.no_grad()
    def _measure(self, step: int) -> None:
        """Measure the gradients of the step: the next step begins with zero_grad."""
        for row, parameters in enumerate(self.parameters):
            grads = [p.grad.detach().reshape(-1) for p in parameters if p.grad is not None]
            if not grads:
                continue
            sizes = torch.cat(grads).abs().double()
            norm = float(sizes.norm())
            self.norms[row, step] = norm
            self.rms[row, step] = norm / math.sqrt(sizes.numel())
            self.zeros[row, step] = int((sizes == 0).sum())
            self.histograms[row, step] = histogram_of(sizes)
        for row, alive in self._alive.items():
            self.dead[row, step] = 1.0 - float(alive.double().mean())
        self._alive.clear()

    def _see_activation(self, row: int) -> Callable[[nn.Module, tuple, Tensor], None]:
        def see(module: nn.Module, args: tuple, out: Tensor) -> None:
            if not out.requires_grad:  # a validation pass
                return
            alive = alive_units(module, out.detach())
            self._alive[row] = alive if row not in self._alive else self._alive[row] | alive

        return see


class _Watched:
    """An objective that notes the loss of each training step."""

    def __init__(self, objective: Objective, losses: list[float]) -> None:
        self._objective, self._losses = objective, losses
        self.metrics, self.runs_code = objective.metrics, objective.runs_code
        self.repeats, self.draws_by_code = objective.repeats, objective.draws_by_code
        self.validation_samples = 0  # validation is no part of the picture
        self.guess = objective.guess
        self.generators = objective.generators

    @property
    def batches_per_epoch(self) -> int | None:
        return self._objective.batches_per_epoch

    def to(self, device: torch.device) -> None:
        self._objective.to(device)

    def batches(self, epoch: int, first: int, seen: SeenBatches | None = None) -> Iterator[Any]:
        return self._objective.batches(epoch, first)

    def close(self) -> None:
        """Nothing to end: it has started no process."""

    def validation_batches(self) -> Iterator[Any]:
        return iter(())

    def predict(self, batch: Any) -> Any:
        return self._objective.predict(batch)

    def judged(self, batch: Any, prediction: Any) -> Outcome:
        outcome = self._objective.judged(batch, prediction)
        self._losses.append(float(outcome.loss.detach()))
        return outcome

    def outcome(self, batch: Any) -> Outcome:
        return self.judged(batch, self.predict(batch))


def alive_units(module: nn.Module, out: Tensor) -> Tensor:
    """A bool for each unit: whether a gradient passes through it for any sample. Units lie along
    dimension 1 of (B, F) and of images, along the last dimension of sequences."""
    if isinstance(module, nn.Hardtanh):
        passes = (out > module.min_val) & (out < module.max_val)
    elif isinstance(module, nn.Threshold):
        passes = (out > module.threshold) & (out != module.value)
    else:
        passes = out > 0
    feature = 1 if passes.ndim in (2, 4, 5) else passes.ndim - 1
    others = [d for d in range(passes.ndim) if d != feature]
    return passes.any(dim=others) if others else passes


def histogram_of(sizes: Tensor) -> NDArray[np.int64]:
    """Counts of `sizes` (not negative) by power of ten. Sizes beyond the bins count in the first or
    last bin; zeros, NaN and infinity are not counted."""
    sizes = sizes[(sizes > 0) & torch.isfinite(sizes)]
    places = (sizes.log10() - BIN_LOW) / (BIN_HIGH - BIN_LOW) * BINS
    places = places.floor().clamp(0, BINS - 1).long()
    return torch.bincount(places, minlength=BINS).cpu().numpy()


def verdicts(norms: Floats, rms: Floats) -> list[str]:
    """For each layer in a step "vanishing", "exploding" or "", by the bounds above."""
    finite = rms[np.isfinite(rms)]
    largest = float(finite.max()) if finite.size else 0.0
    words = []
    for norm, size in zip(norms.tolist(), rms.tolist(), strict=True):
        if math.isnan(norm) and not finite.size:
            words.append("")
        elif not math.isfinite(norm) or norm >= EXPLODING:
            words.append("exploding")
        else:
            words.append("vanishing" if size <= VANISHING * largest else "")
    return words
