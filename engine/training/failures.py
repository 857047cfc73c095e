"""Errors of a run, in words, with what to try."""

from __future__ import annotations

import msgspec
import torch

from ..project.document import TrainingSetup
from ..protocol import CODE_CHANGED, OTHER_BATCHES, UNORDERED, ErrorReport
from ..system.errors import LabError, error_report
from ..system.user_files import is_user_file
from ..tensors.error_help import explain_error
from .execution.compiling import compile_problem
from .execution.determinism import refused_operation
from .figures.metrics import Diverged

HIGH_LEARNING_RATE = 0.1
"""Few models can be trained with a higher one, so no higher one is proposed."""


def explain(error: Exception, setup: TrainingSetup, learning_rate: float) -> ErrorReport:
    """Return the exception as plain data, with a hint where the cause is known."""
    report = error_report(_in_words(error), is_user_file)
    return msgspec.structs.replace(report, hint=report.hint or _hint(error, setup, learning_rate))


def code_changed(names: tuple[str, ...]) -> ErrorReport:
    """A run goes on with files of code that are not those of its beginning."""
    files, have = ", ".join(names), "has" if len(names) == 1 else "have"
    return ErrorReport(
        type=CODE_CHANGED,
        message=f"{files} {have} changed since the run began.",
        hint="It goes on with the code of now. Its folder has that of then, in “code”.",
    )


def unordered() -> ErrorReport:
    """A run goes on in the middle of an epoch whose batches have no order."""
    return ErrorReport(
        type=UNORDERED,
        message="With in_order off, the batches that are left of this epoch are not the same.",
        hint="Some samples come twice in it, others not at all. Turn in_order on for a run that"
        " goes on bit for bit.",
    )


def other_batches(epoch: int, batch: int) -> ErrorReport:
    """The data gave another batch than before at this place (both from 1)."""
    return ErrorReport(
        type=OTHER_BATCHES,
        message=f"Batch {batch:,} of epoch {epoch:,} is not the one that the data gave before.",
        hint="Such data draws random numbers of its own, or has changed: from here on the steps are"
        " others. Draw from the global generator of torch, NumPy or Python, or from a"
        " torch.Generator that the data set has as an attribute: a run takes these back.",
    )


def _in_words(error: Exception) -> Exception:
    if name := refused_operation(error):
        told = LabError(
            f"{name} has no deterministic implementation on this device.",
            hint="Use another operation, or turn deterministic off under More.",
        )
        return told.with_traceback(error.__traceback__)
    told = compile_problem(error)
    return error if told is None else told.with_traceback(error.__traceback__)


def _hint(error: Exception, setup: TrainingSetup, learning_rate: float) -> str:
    if isinstance(error, Diverged):
        if setup.optimizer_params.get("eps") == 0:
            return "eps is 0, so a gradient of zero is divided by zero: set eps to 1e-08."
        return (
            f"Most often the learning rate is too high: it is {learning_rate:g}, try "
            f"{min(learning_rate / 10, HIGH_LEARNING_RATE):g} with fresh weights. Else "
            "look for a division by zero, the logarithm of zero or very large values in the model."
        )
    if isinstance(error, torch.OutOfMemoryError):
        return (
            f"{setup.device} has too little memory: make the batch size ({setup.batch_size}) or "
            "the model smaller, or train on the CPU."
        )
    return explain_error(error)
