"""`train.py` in the folder of a run: the same training as a plain script."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from torch import Tensor

from ...exporting.train_script import write_script
from ...runs.writer import RunWriter
from ...system.errors import LabError
from ...training.objectives.objective import Objective
from ..subjects.subject import Drawn, Subject, first_weights

FILE = "train.py"
MAX_BYTES = 64 * 2**20
"""A run whose data and first weights are larger gets no script: each run would have a copy."""


def add_script(
    writer: RunWriter, subject: Subject, objective: Objective, drawn: Drawn, runs: int = 1
) -> None:
    """Let a run that begins with the weights of now have its script; if there can be none, let its
    folder say why. It is one of so many `runs`, whose files together are not larger than one's."""
    try:
        made, size = _writer(subject, objective, drawn)
        if size > MAX_BYTES / runs:
            each = "each run" if runs == 1 else f"each of {runs} trials"
            raise LabError(
                f"Data and first weights lie beside it, in {each}: {size / 2**20:,.1f} MiB.",
                hint="Export writes the training script.",
            )
        writer.also.append(made)
    except LabError as error:
        writer.leave_out_script(f"{error} {error.hint}".strip())


def _writer(
    subject: Subject, objective: Objective, drawn: Drawn
) -> tuple[Callable[[Path], object], int]:
    """What writes the script into a folder, and the bytes that lie beside it."""
    weights = first_weights(subject.module)
    text, data = subject.script(objective, drawn, Path(FILE))
    tensors = (each for each in (*data.values(), *weights.values()) if isinstance(each, Tensor))
    size = sum(tensor.nbytes for tensor in tensors)
    return lambda folder: write_script(text, weights, data, folder / FILE), size
