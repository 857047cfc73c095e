"""Looks at the parameters of a run: at its first steps, then as often as costs little."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import nan
from time import perf_counter

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from ...runs.parameter_figures import Histogram, Kind, Look, ParameterRow
from ...system.private_torch import foreach_norm, foreach_sub
from .histograms import histogram

SHARE = 0.003
"""Looking takes at most this share of a run's time, but for its first looks."""
FREE_S = 0.2
"""The time that the first looks take together; SHARE does not bound them."""
EARLY = 16
SPARSER = 0.05
"""Between two looks passes at least this share of the time since the run began: a long run is seen
as well as a short one."""
MAX_PARAMETERS = 500
"""The most parameters that are looked at: the first ones of the model."""
MAX_COPIED_BYTES = 1 << 28
"""To measure an update, the weights before it are copied: not those of a larger model."""


class Looks:
    """Says which steps of a run get a look, and keeps the looks until `drain`. `named` are the
    parameters that learn; those that are sharded, or have no shape yet, are left out. The first
    looks take `free_s` together. A look changes nothing of the run."""

    def __init__(self, named: Mapping[str, nn.Parameter], free_s: float = FREE_S) -> None:
        self._free_s = free_s
        chosen = [(n, p) for n, p in named.items() if not is_lazy(p) and type(p.data) is Tensor]
        self._named = dict(chosen[:MAX_PARAMETERS])
        self._began_s, self._spent_s = perf_counter(), 0.0
        self._paid_s = 0.0  # when the last look has taken no more than SHARE
        self.due_s = 0.0
        """When the next look is due."""
        self._taken: list[Look] = []

    def begin(self, step: int, by_hand: bool, own: int | None = None) -> StepLook | None:
        """The look at the step that comes next, after `step` steps; None if it gets none. Steps by
        hand have one, and so do steps 1, 2, 4, 8 and 16: of these parameters, if they are not moved
        by each step, but have been by `own` steps."""
        done = step if own is None else own
        is_early = done < EARLY and not done & (done + 1)
        is_due = by_hand or is_early or perf_counter() >= self.due_s
        return StepLook(self._named, step + 1) if is_due and self._named else None

    def end(self, look: StepLook) -> None:
        """The step is done."""
        if look.has_moved:
            self._taken.append(look.taken())
        now = perf_counter()
        self.due_s = now + SPARSER * (now - self._began_s)
        self._paid_s = now
        self.spend(look.spent_s)

    def spend(self, seconds: float) -> None:
        """The last look took this much longer."""
        self._spent_s += seconds
        self._paid_s += seconds / SHARE
        if self._spent_s > self._free_s:
            self.due_s = max(self.due_s, self._paid_s)

    def end_free(self) -> None:
        """From now on no look is free."""
        if self._free_s:
            self._free_s, self.due_s = 0.0, max(self.due_s, self._paid_s)

    def drain(self) -> tuple[Look, ...]:
        """The looks since the last drain."""
        taken, self._taken = tuple(self._taken), []
        return taken


class StepLook:
    """The look at one step: `see_gradients` before they are clipped, `see_weights` before the
    update, `see_update` after it."""

    def __init__(self, named: Mapping[str, nn.Parameter], step: int) -> None:
        self._named, self._step = named, step
        self._device = next(iter(named.values())).device
        self._before: list[Tensor] = []
        self._weight_norms: list[float] = []
        self._update_norms: list[float] = []
        self._gradient_norms: dict[str, float] = {}
        self._histograms: list[Histogram] = []
        self.spent_s = 0.0

    @property
    def has_moved(self) -> bool:
        """Whether the step has had its update."""
        return bool(self._update_norms)

    def see_gradients(self, scale: float) -> None:
        """`scale` is by how much they are too large."""
        started = self._now()
        found = {n: _dense(p.grad) for n, p in self._named.items() if p.grad is not None}
        norms = norms_of(found.values())
        self._gradient_norms = {n: norm / scale for n, norm in zip(found, norms, strict=True)}
        for name, gradient in found.items():
            self._count(name, "gradients", gradient, scale)
        self.spent_s += self._now() - started

    def see_weights(self) -> None:
        started = self._now()
        weights = [p.detach() for p in self._named.values()]
        self._weight_norms = norms_of(weights)
        if sum(w.nbytes for w in weights) <= MAX_COPIED_BYTES:
            self._before = [w.clone() for w in weights]
        self.spent_s += self._now() - started

    def see_update(self) -> None:
        started = self._now()
        now = [p.detach() for p in self._named.values()]
        before, self._before = self._before, []
        moved = foreach_sub(now, before) if before else []
        self._update_norms = norms_of(moved) or [nan] * len(now)
        for name, weight in zip(self._named, now, strict=True):
            self._count(name, "weights", weight, 1.0)
        self.spent_s += self._now() - started

    def taken(self) -> Look:
        rows = tuple(
            ParameterRow(self._step, place, name, self._gradient_norms.get(name, nan), *norms)
            for place, (name, *norms) in enumerate(
                zip(self._named, self._weight_norms, self._update_norms, strict=True)
            )
        )
        return Look(rows, tuple(self._histograms))

    def _now(self) -> float:
        """The time once the device has done all that was asked of it: of what came before a look
        it is not the look's, and of the look it is."""
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return perf_counter()

    def _count(self, name: str, kind: Kind, values: Tensor, scale: float) -> None:
        found = histogram(values)
        if found is not None:
            counts = found.counts.astype("<u4").tobytes()
            low, high = found.low / scale, found.high / scale
            row = Histogram(name, kind, self._step, low, high, found.others, counts)
            self._histograms.append(row)


def norms_of(tensors: Iterable[Tensor]) -> list[float]:
    """Their 2-norms, in one wait for the device."""
    known = list(tensors)
    if not known:
        return []
    norms = foreach_norm(known)
    return torch.stack([norm.to(norms[0].device, torch.float32) for norm in norms]).tolist()


def _dense(gradient: Tensor) -> Tensor:
    """A gradient as it is; a sparse one as its values alone."""
    return gradient.detach().coalesce().values() if gradient.is_sparse else gradient.detach()
