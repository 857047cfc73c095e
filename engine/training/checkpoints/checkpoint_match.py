"""Whether a checkpoint is of this model and set-up, and whether a run can change its set-up."""

from __future__ import annotations

from torch import nn

from ...project.document import TrainingSetup
from ...project.subject import Subject, is_same_subject, title, whole_title
from ...system.errors import LabError
from .checkpoint_fields import Checkpoint

_OF_DATA = {"data": "data set", "batch_size": "batch size", "seed": "seed"}
_OF_STEPS = {
    "accumulate": "number of batches a step",
    "precision": "precision",
    "averaging": "averaging of weights",
}
_OF_EXECUTION = {
    "device": "device",
    "deterministic": "deterministic mode",
    "compile": "use of torch.compile",
    "recomputed": "modules that are computed again",
}
_OF_OPTIMIZER = {"optimizer": "optimizer", "schedule": "schedule of the learning rate"}


def check_change(then: TrainingSetup, now: TrainingSetup) -> None:
    """Raise LabError unless a run can go on with another set-up between two steps."""
    for field, words in {**_OF_DATA, **_OF_STEPS, **_OF_EXECUTION}.items():
        if getattr(then, field) != getattr(now, field):
            raise LabError(
                f"The {words} of a run cannot change between two of its steps.",
                hint=f"Set the {words} back, or train again.",
            )


def check_match(
    saved: Checkpoint, setup: TrainingSetup, subject: Subject, model: nn.Module
) -> None:
    """Raise LabError unless a run of this subject, whose module is `model`, can go on from a
    checkpoint with this set-up."""
    if not is_same_subject(saved.subject, subject):
        then, now = title(saved.subject), title(subject)
        then = whole_title(saved.subject) if then == now else then
        raise LabError(
            f"The checkpoint is of another subject: {then}, now {now}.",
            hint=f"Choose {then} as the subject to go on from it, or train again. If it is the same"
            " model by another name, load the checkpoint as weights.",
        )
    for field, words in {**_OF_DATA, **_OF_OPTIMIZER, **_OF_STEPS}.items():
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
    for name, gradient in saved.gradients.items():
        if tuple(gradient.shape) != now.get(name):
            raise LabError(
                f"The checkpoint has a gradient of shape {tuple(gradient.shape)} for {name}, which"
                f" has shape {now.get(name, 'none')}.",
                hint="Train again.",
            )
