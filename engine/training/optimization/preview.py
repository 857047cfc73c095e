"""The learning rate over a run, before it is trained."""

from __future__ import annotations

import torch
from torch import nn

from ...project.document import TrainingSetup
from ...system.errors import LabError
from ..components.optimizers import make_optimizer
from .rates import Rates

MAX_STEPS = 20_000
"""The most steps that are computed: of a longer run the first ones are shown."""
MAX_POINTS = 400


def rates_of(setup: TrainingSetup, batches: int) -> list[tuple[int, float]]:
    """(step, learning rate) of evenly spread steps, from 1 on, of a run with this many batches an
    epoch, as torch's own scheduler gives them. Raises LabError for a schedule that cannot be made,
    or that depends on the loss."""
    if setup.schedule.kind == "lr_scheduler.ReduceLROnPlateau":
        raise LabError(
            "ReduceLROnPlateau follows the loss: its rates are not known before the run."
        )
    per_epoch = -(-batches // setup.accumulate)
    steps = setup.epochs * per_epoch
    shape = (2, 2)  # Muon takes matrices only
    optimizer = make_optimizer(
        setup.optimizer, setup.optimizer_params, [nn.Parameter(torch.zeros(shape))]
    )
    scheduled = Rates(setup, optimizer, steps)
    optimizer._opt_called = True  # pyright: ignore[reportAttributeAccessIssue] - else it warns
    shown = min(steps, MAX_STEPS)
    stride = max(1, shown // MAX_POINTS)
    rates = []
    for step in range(1, shown + 1):
        if (step - 1) % stride == 0 or step == shown:
            rates.append((step, float(optimizer.param_groups[0]["lr"])))
        scheduled.after_step()
        if step % per_epoch == 0:
            scheduled.after_epoch(0.0)
    return rates
