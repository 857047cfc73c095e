"""What a snapshot tells of the loop of a run."""

from __future__ import annotations

from math import isnan
from typing import Any

from ..protocol import BestSoFar, StepNumbers, TrainingSnapshot, TrainingState
from .loop import TrainingLoop


def told_of(
    loop: TrainingLoop, state: TrainingState, steps_per_second: float, **own: Any
) -> TrainingSnapshot:
    """`own` are the fields that the run knows itself."""
    speed, left_s, total = loop.metrics.samples_per_second, None, loop.total_steps
    if steps_per_second and total is not None:
        left_s = (total - loop.step) / steps_per_second
    guess = loop.objective.guess
    return TrainingSnapshot(
        state=state,
        step=loop.step,
        total_steps=total or 0,
        epoch=min(loop.epoch + 1, loop.setup.epochs),
        epochs=loop.setup.epochs,
        steps_per_second=steps_per_second,
        samples_per_second=0.0 if isnan(speed) else speed,
        remaining_s=left_s,
        device=loop.setup.device,
        gpu=loop.gpu.memory(),
        marks=loop.marks.all,
        best=loop.best and BestSoFar(loop.best.figure, loop.best.epoch, loop.best.value),
        stopped_early=loop.stopped_early,
        averaged=loop.averaged is not None and loop.averaged.has_begun,
        guess_accuracy=guess.accuracy,
        guess_labels=guess.labels,
        validation_samples=loop.objective.validation_samples,
        step_numbers=_numbers(loop) if state == "paused" else None,
        is_in_step=loop.is_in_step,
        hold=loop.holding.hold,
        processes=1 if loop.ranks is None else loop.ranks.size,
        **own,
    )


def _numbers(loop: TrainingLoop) -> StepNumbers | None:
    step = loop.current
    if step is None or step.number != loop.step + loop.is_in_step:
        return None
    return step.numbers()
