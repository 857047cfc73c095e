"""Whether a checkpoint is of this model and this set-up."""

from __future__ import annotations

from torch import nn

from ..errors import LabError
from ..project.document import TrainingSetup
from .checkpoint_fields import Checkpoint


def check_match(saved: Checkpoint, setup: TrainingSetup, model: nn.Module) -> None:
    """Raise LabError unless a run of this model with this set-up can go on from a checkpoint."""
    for field, words in {
        "data": "data set",
        "batch_size": "batch size",
        "seed": "seed",
        "optimizer": "optimizer",
        "schedule": "schedule of the learning rate",
        "accumulate": "number of batches a step",
        "precision": "precision",
    }.items():
        then, now = getattr(saved.setup, field), getattr(setup, field)
        if then != now:
            raise LabError(
                f"The checkpoint was made with another {words}: {then}, now {now}.",
                hint=f"Set the {words} back to go on from it, or train again.",
            )
    then = {name: tuple(tensor.shape) for name, tensor in saved.model.items()}
    now = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    for name in [*now, *then]:
        if then.get(name) != now.get(name):
            raise LabError(
                f"The checkpoint is of another model: {name} has shape "
                f"{then.get(name, 'none')} there and {now.get(name, 'none')} here.",
                hint="Undo the change of the model to go on from it, or train again.",
            )
