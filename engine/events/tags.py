"""The tags of our figures in event files, and what the tags of other programs stand for."""

from __future__ import annotations

from ..protocol import EpochRow, StepColumns

STEP_COLUMNS = tuple(name for name in StepColumns.__struct_fields__[1:] if name != "figures")
EPOCH_COLUMNS = EpochRow.__struct_fields__[2:6]
STEP, EPOCH, TRAIN, VALIDATION = "step/", "epoch/", "epoch/train ", "epoch/validation "
"""Prefixes of a figure's name in a tag: for a step, for an epoch, and in it for training or
validation samples."""
SETTINGS = "settings"

_USUAL = {
    "loss": ("loss", "train_loss", "train/loss", "loss/train", "training/loss", "train_loss_step"),
    "accuracy": (
        *("accuracy", "acc", "train_acc", "train/acc", "train_accuracy", "train/accuracy"),
        *("accuracy/train", "acc/train", "train_acc_step"),
    ),
    "learning_rate": ("lr", "learning_rate", "train/lr", "train/learning_rate"),
    "gradient_norm": ("grad_norm", "gradient_norm", "train/grad_norm"),
    "train_loss": ("train_loss_epoch", "epoch_loss"),
    "validation_loss": (
        *("val_loss", "val/loss", "loss/val", "valid/loss", "validation/loss", "loss/validation"),
        *("validation_loss", "eval/loss", "test_loss", "loss/test"),
    ),
    "validation_accuracy": (
        *("val_acc", "val/acc", "acc/val", "val_accuracy", "val/accuracy", "accuracy/val"),
        *("validation/accuracy", "accuracy/validation", "validation_accuracy", "eval/accuracy"),
        *("accuracy/test",),
    ),
}
"""How usual programs name our figures, in small letters."""
COLUMN_OF = {
    **{tag: column for column, tags in _USUAL.items() for tag in tags},
    **{f"{STEP}{column}": column for column in STEP_COLUMNS},
    **{f"{EPOCH}{column}": column for column in EPOCH_COLUMNS},
}


def column_of(tag: str) -> str:
    """The column of steps or epochs that a tag stands for; "" for any other figure."""
    return COLUMN_OF.get(tag) or COLUMN_OF.get(tag.lower(), "")
