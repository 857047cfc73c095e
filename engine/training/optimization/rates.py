"""Changes of a run's learning rates: a scheduler, and SWALR once weights are averaged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau
from torch.optim.swa_utils import SWALR

from ...project.document import TrainingSetup
from ..checkpoints.checkpoint_fields import Number
from ..components.schedulers import check_length, make_scheduler
from .optimizer_state import regroup_scheduler, restore_scheduler, scheduler_state

_OF_SWALR = "swa."
"""Begins the names of SWALR's numbers in a state."""


class Rates:
    """The scheduler of a set-up over an optimizer. From the epoch on in which SWA begins, SWALR
    takes its place, if the set-up has an `swa_lr`.

    `steps` counts the optimizer steps of the run, None if the data does not say. Raises LabError
    for an unknown scheduler, or bad parameters.
    """

    def __init__(
        self, setup: TrainingSetup, optimizer: torch.optim.Optimizer, steps: int | None
    ) -> None:
        self._setup = setup
        self._scheduler = make_scheduler(setup, optimizer, steps)
        averaging = setup.averaging
        self._swalr: SWALR | None = None
        if averaging.kind == "SWA" and averaging.swa_lr:
            self._swalr = SWALR(
                optimizer, averaging.swa_lr, averaging.anneal_epochs, averaging.anneal_strategy
            )
        self._epoch = 0

    @property
    def change(self) -> bool:
        """Whether anything changes the rates."""
        return bool(self._parts)

    @property
    def _parts(self) -> list[LRScheduler]:
        return [part for part in (self._scheduler, self._swalr) if part is not None]

    @property
    def _is_annealing(self) -> bool:
        return self._swalr is not None and self._epoch >= self._setup.averaging.start

    def after_step(self) -> None:
        each_step = self._setup.schedule.each == "step"
        if self._scheduler is not None and each_step and not self._is_annealing:
            self._scheduler.step()

    def after_epoch(self, loss: float) -> None:
        """`loss` is the one that a scheduler may watch."""
        if self._swalr is not None and self._is_annealing:
            self._swalr.step()
        elif isinstance(self._scheduler, ReduceLROnPlateau):
            self._scheduler.step(loss)
        elif self._scheduler is not None and self._setup.schedule.each == "epoch":
            self._scheduler.step()
        self._epoch += 1

    def go_on_in(self, epoch: int, before: Rates | None = None) -> None:
        """The next step is one of this epoch (0-based). SWALR goes on where that of the rates
        `before` was, which are of the same parameter groups."""
        self._epoch = epoch
        if before is None or before._swalr is None or self._swalr is None:
            return
        self._swalr._step_count = before._swalr._step_count
        if self._is_annealing:
            then = before._swalr.optimizer.param_groups
            for group, old in zip(self._swalr.optimizer.param_groups, then, strict=True):
                group["lr"] = old["lr"]

    def regroup(self, sources: Sequence[int]) -> None:
        """As `regroup_scheduler`."""
        for part in self._parts:
            regroup_scheduler(part, sources)

    # -- checkpoints -----------------------------------------------------------------------------

    def state(self) -> dict[str, Number | list[Number]]:
        """The numbers that change from step to step; empty if nothing changes the rates."""
        of_swalr = scheduler_state(self._swalr).items()
        return {
            **scheduler_state(self._scheduler),
            **{f"{_OF_SWALR}{name}": entry for name, entry in of_swalr},
        }

    def restore(self, state: Mapping[str, Number | list[Number]], groups: object) -> None:
        """As `restore_scheduler`. Raises FieldProblem."""
        own = {n: entry for n, entry in state.items() if not n.startswith(_OF_SWALR)}
        restore_scheduler(self._scheduler, own, groups)
        own = {n.removeprefix(_OF_SWALR): e for n, e in state.items() if n.startswith(_OF_SWALR)}
        restore_scheduler(self._swalr, own, groups)

    def check_length(self, steps: int | None) -> None:
        """Raise LabError if the scheduler ends before a run of this many optimizer steps."""
        if self._scheduler is not None:
            check_length(self._scheduler, self._setup, steps)
