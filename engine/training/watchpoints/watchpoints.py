"""The watchpoints of a run: each looks at the phases of a step, and says when to hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext

import torch
from torch import Tensor, nn

from ...project.document import HoldWhen
from ...protocol import Hold, WatchKind
from ...system.private_torch import foreach_norm, foreach_sub
from ..optimization.training_step import TrainingStep
from .dead_units import DeadUnits
from .loss_spike import LossSpikes


class Watchpoints:
    """What holds a run of `model`, as `limits` says. Each fires when its limit is passed, and again
    only after it was kept. Nothing is looked at for a limit that is not set. On other devices than
    the CPU each look waits for the device.
    """

    def __init__(self, limits: HoldWhen, model: nn.Module) -> None:
        self._limits, self._model = limits, model
        self._fired: set[tuple[str, str]] = set()
        self._spikes = LossSpikes(limits.loss_spike)
        self._before: list[Tensor] = []
        self._long_ago: dict[str, Tensor] = {}
        self._named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
        self._units = DeadUnits(model) if limits.dead_units else None
        self._ratios = bool(limits.ratio_above or limits.ratio_below)
        self.are_set = bool(
            limits.loss_spike
            or limits.gradient_norm
            or self._ratios
            or limits.unchanged
            or limits.dead_units
        )

    # -- the phases of a step --------------------------------------------------------------------

    def begin(self, number: int) -> None:
        """Step `number` begins."""
        if self._ratios:
            self._before = [p.detach().clone() for _, p in self._named]
        if self._units is not None:
            self._units.begin(number)

    def seen(self, step: TrainingStep) -> Iterator[None]:
        """The phases of the step, run with a look at the calls up to its last loss if there is to
        be one."""
        phases = step.phases()
        if self._units is None or not self._units.is_looking:
            yield from phases
            return
        while True:
            ahead = len(step.outcomes) < len(step.batches)
            with self._units.looking() if ahead else nullcontext():
                try:
                    next(phases)
                except StopIteration:
                    return
            yield

    def after_phase(self, step: TrainingStep) -> Hold | None:
        """A phase of the step is done: why to hold there, if so."""
        is_last = len(step.outcomes) == len(step.batches)
        found = None
        if step.has_loss_of_all and self._limits.loss_spike and (is_last or not step.has_ranks):
            found = self._spike(step)
        if step.done[-1] == "backward" and is_last and self._limits.gradient_norm:
            found = found or self._gradient(step)
        return found

    def end(self, step: TrainingStep) -> Hold | None:
        """The step is done, with its update."""
        found = [*self._units_of(step), *self._moved(step), *self._stayed(step)]
        return found[0] if found else None

    def _fires(self, kind: WatchKind, name: str, passed: bool) -> bool:
        """Whether this limit is passed, and was not before."""
        key = (kind, name)
        if not passed:
            self._fired.discard(key)
            return False
        fresh = key not in self._fired
        self._fired.add(key)
        return fresh

    # -- each limit ------------------------------------------------------------------------------

    def _spike(self, step: TrainingStep) -> Hold | None:
        loss = step.outcome.loss if step.has_ranks else step.loss
        text = self._spikes.look(float(loss.detach()))
        if not text:
            return None
        return Hold(
            "loss_spike",
            step.number,
            f"{text} It is held before its {'update' if step.has_ranks else 'backward'}.",
            "Look at this batch for bad samples; or clip the gradients, or lower the rate.",
        )

    def _gradient(self, step: TrainingStep) -> Hold | None:
        norm, limit = step.gradient_norm() or 0.0, self._limits.gradient_norm
        if not self._fires("gradient_norm", "", norm > limit):
            return None
        scale = step.optimization.autocast.scale
        norms = {n: float(_norm(p.grad)) / scale for n, p in self._named if p.grad is not None}
        name = max(norms, key=lambda each: norms[each])
        return Hold(
            "gradient_norm",
            step.number,
            f"The 2-norm of all gradients is {norm:.4g}, above {limit:g}; `{name}` has the largest"
            f" part of it, {norms[name]:.4g}. It is held before the update.",
            f"clip_norm under More bounds it; or lower the rate ({_rate(step):g}).",
            parameter=name,
        )

    def _moved(self, step: TrainingStep) -> Iterator[Hold]:
        """Parameters whose update is too long or too short. One whose numbers are all 0 before
        its update has no ratio."""
        if not self._ratios:
            return
        before, self._before = self._before, []
        lengths = foreach_norm(before)
        steps = foreach_norm(foreach_sub([p.detach() for _, p in self._named], before))
        pairs = zip(torch.stack(steps).tolist(), torch.stack(lengths).tolist(), strict=True)
        ratios = {
            name: moved / length
            for (name, _), (moved, length) in zip(self._named, pairs, strict=True)
            if length
        }
        kinds: tuple[tuple[WatchKind, float, Callable[[float, float], bool], str, str], ...] = (
            ("ratio_above", self._limits.ratio_above, float.__gt__, "above", "Lower the rate"),
            ("ratio_below", self._limits.ratio_below, float.__lt__, "below", "Raise the rate"),
        )
        for kind, limit, passes, word, hint in kinds:
            if not limit:
                continue
            for name, ratio in ratios.items():
                if self._fires(kind, name, passes(ratio, float(limit))):
                    yield Hold(
                        kind,
                        step.number,
                        f"The update of `{name}` has {ratio:.3g} of its 2-norm, {word} {limit:g}."
                        " Back undoes it.",
                        f"{hint} ({_rate(step):g}); 0.001 is usual.",
                        parameter=name,
                    )

    def _stayed(self, step: TrainingStep) -> Iterator[Hold]:
        """Parameters that are as they were `unchanged` steps ago."""
        steps = self._limits.unchanged
        if not steps or step.number % steps:
            return
        for name, parameter in self._named:
            now, then = parameter.detach(), self._long_ago.get(name)
            same = then is not None and torch.equal(now, then)
            self._long_ago[name] = now.clone()
            if self._fires("unchanged", name, same):
                why = "it has no gradient: the loss does not depend on it"
                hint = "See whether forward uses it, and whether something is detached."
                if parameter.grad is not None:
                    zero = not bool(parameter.grad.count_nonzero())
                    why = "its gradient is 0" if zero else "its update is too small for its dtype"
                    hint = "Look at the units before it: dead ones pass no gradient."
                yield Hold(
                    "unchanged",
                    step.number,
                    f"`{name}` has not changed in {steps:,} steps: {why}.",
                    hint,
                    parameter=name,
                )

    def _units_of(self, step: TrainingStep) -> Iterator[Hold]:
        if self._units is None:
            return
        for layer in self._units.end():
            if self._fires("dead_units", str(layer.call), layer.share >= self._limits.dead_units):
                yield Hold(
                    "dead_units",
                    step.number,
                    f"{layer.dead} of {layer.units} units of {layer.call} gave 0 for all of"
                    f" {layer.values:,} values each{' in rank 0' * step.has_ranks}: no gradient"
                    " passes them.",
                    "Lower the rate with fresh weights, or use LeakyReLU.",
                    module=layer.call.module or "",
                    file=layer.call.file,
                    line=layer.call.line,
                )


def _norm(gradient: Tensor) -> Tensor:
    values = gradient.coalesce().values() if gradient.is_sparse else gradient
    return torch.linalg.vector_norm(values)


def _rate(step: TrainingStep) -> float:
    return step.optimization.learning_rate
