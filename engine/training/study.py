"""A study of Optuna's for a sweep: draws the values of each trial, and prunes."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING

from ..project.document import ParamValue
from ..project.sweeps.sweep import Choice, Sweep
from ..system.errors import LabError

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import Trial

WARM_UP_TRIALS = 3
"""The first trials, which are never pruned: there is no median yet."""


class Study:
    """`ask` for the values of a trial, `report` its figure after each epoch, and `tell` its end.
    With the same seed and the same figures the values are the same. Raises LabError without
    Optuna."""

    def __init__(self, sweep: Sweep) -> None:
        try:
            import optuna
        except ImportError as error:
            raise LabError(
                "Optuna is not installed.", hint="Install it with: pip install 'tensorlab[sweep]'"
            ) from error
        self._states = optuna.trial.TrialState
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        pruners = optuna.pruners
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what Optuna calls experimental
            self._study = optuna.create_study(
                direction="maximize" if sweep.maximise else "minimize",
                sampler=optuna.samplers.TPESampler(seed=sweep.seed),
                pruner=pruners.MedianPruner(n_startup_trials=WARM_UP_TRIALS)
                if sweep.prune
                else pruners.NopPruner(),
            )
        self._space = {choice.name: _distribution(choice) for choice in sweep.choices}
        self._trials: dict[int, Trial] = {}

    def ask(self, number: int) -> dict[str, ParamValue]:
        """The values of a trial, by its number."""
        trial = self._trials[number] = self._study.ask(self._space)
        return dict(trial.params)

    def report(self, number: int, epoch: int, value: float) -> bool:
        """Whether the trial had better end, by its figure after an epoch."""
        trial = self._trials[number]
        trial.report(value, epoch)
        return trial.should_prune()

    def tell(self, number: int, value: float | None, pruned: bool = False) -> None:
        """The trial has ended with its figure; None if it failed."""
        trial = self._trials.pop(number)
        if pruned:
            self._study.tell(trial, state=self._states.PRUNED)
        elif value is None or math.isnan(value):
            self._study.tell(trial, state=self._states.FAIL)
        else:
            self._study.tell(trial, value)


def _distribution(choice: Choice) -> BaseDistribution:
    from optuna.distributions import (
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
    )

    if choice.values:
        return CategoricalDistribution(choice.values)
    if choice.is_whole:
        return IntDistribution(int(choice.low), int(choice.high), log=choice.log)
    return FloatDistribution(choice.low, choice.high, log=choice.log)
