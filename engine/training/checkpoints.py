"""Checkpoints: one file each, with all that a run needs to go on bit for bit.

Their paths are `<data folder>/runs/<run>/step-00001200.pt`. The data folder is the user's cache
folder, or `TENSORLAB_DATA_DIR` if that is set.
"""

from __future__ import annotations

import io
import os
import pickle
import shutil
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import platformdirs
import torch
from torch import Tensor

from ..errors import LabError
from ..project.atomic import write_atomically
from ..project.document import TrainingSetup
from ..protocol import EpochRow
from .metrics import StepRow

FORMAT = 1
KEPT_CHECKPOINTS = 3
KEPT_RUNS = 20


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A run between two optimizer steps.

    `model` and `optimizer` are state_dicts. `rng` is the state of each generator as a uint8 tensor,
    by device type. `epoch` and `batch` (0-based) are those of the next batch; `step` is the number
    of steps done. `loss_sum`, `correct` and `samples` are totals over the current epoch.
    """

    run: str
    setup: TrainingSetup
    model: dict[str, Tensor]
    optimizer: dict[str, Any]
    rng: dict[str, Tensor]
    epoch: int
    batch: int
    step: int
    loss_sum: float
    correct: int
    samples: int
    history: tuple[StepRow, ...]
    epoch_rows: tuple[EpochRow, ...]


def runs_folder() -> Path:
    """Return the folder that holds a folder for each run; it need not exist."""
    chosen = os.environ.get("TENSORLAB_DATA_DIR")
    base = Path(chosen) if chosen else platformdirs.user_cache_path("tensorlab", appauthor=False)
    return base / "runs"


def save(checkpoint: Checkpoint) -> Path:
    """Write the checkpoint and return its path. Old checkpoints of the run, and old runs, are
    removed.

    Raises LabError if the file cannot be written.
    """
    fields = {name: getattr(checkpoint, name) for name in checkpoint.__struct_fields__}
    # Only plain types and tensors, so that the file loads with weights_only=True.
    fields["format"] = FORMAT
    fields["setup"] = msgspec.json.encode(checkpoint.setup).decode()
    fields["history"] = torch.tensor(checkpoint.history, dtype=torch.float64)
    fields["epoch_rows"] = [msgspec.structs.astuple(row) for row in checkpoint.epoch_rows]
    buffer = io.BytesIO()
    torch.save(fields, buffer)

    folder = runs_folder() / checkpoint.run
    path = folder / f"step-{checkpoint.step:08}.pt"
    try:
        if not folder.exists():
            folder.mkdir(parents=True)
            _remove_old_runs(folder)
        write_atomically(path, buffer.getvalue())
        # By time, not by step: a run resumed from an early checkpoint writes smaller steps later.
        written = sorted(folder.glob("step-*.pt"), key=lambda file: file.stat().st_mtime_ns)
        for old in written[:-KEPT_CHECKPOINTS]:
            old.unlink()
    except OSError as error:
        raise LabError(
            f"The checkpoint {path} could not be written: {error.strerror or error}.",
            hint="Free some disk space, or set TENSORLAB_DATA_DIR to a folder you can write to.",
        ) from error
    return path


def load(path: str | os.PathLike[str]) -> Checkpoint:
    """Read a checkpoint; its tensors are on the CPU.

    Raises LabError if the file is missing, damaged, or not a checkpoint of this program. Nothing in
    the file is executed.
    """
    fields = _read(Path(path))
    try:
        if fields["format"] != FORMAT:
            raise LabError(
                f"{path} has checkpoint format {fields['format']}; this program reads {FORMAT}.",
                hint="Open it with the version of Tensor Lab that wrote it.",
            )
        values = {name: fields[name] for name in Checkpoint.__struct_fields__}
        values["setup"] = msgspec.json.decode(fields["setup"], type=TrainingSetup)
        values["history"] = tuple(
            StepRow(int(step), *figures, *map(int, sizes))
            for step, *figures, sizes in (
                (row[0], *row[1:6], row[6:]) for row in fields["history"].tolist()
            )
        )
        values["epoch_rows"] = tuple(EpochRow(*row) for row in fields["epoch_rows"])
        if Path(values["run"]).name != values["run"]:
            raise ValueError("its run's name is no name of a folder")
        return Checkpoint(**values)
    except (KeyError, TypeError, ValueError, AttributeError, msgspec.MsgspecError) as error:
        raise LabError(
            f"{path} is not a checkpoint of a training run: {error}.",
            hint="Choose a step-*.pt file from a run's folder.",
        ) from error


def _read(path: Path) -> dict[str, Any]:
    """Unpickle without executing anything; raises LabError."""
    try:
        fields = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise LabError(
            f"There is no checkpoint {path}.", hint="It may have been cleaned up: train anew."
        ) from error
    except (
        OSError,
        RuntimeError,
        EOFError,
        ValueError,
        KeyError,
        zipfile.BadZipFile,
        pickle.UnpicklingError,
    ) as error:
        # torch's message is left out: it advises to switch safe loading off.
        raise LabError(
            f"{path} cannot be read as a checkpoint: it is damaged or of another kind.",
            hint="Resume from an earlier checkpoint of the same folder, or train anew.",
        ) from error
    if not isinstance(fields, dict):
        raise LabError(
            f"{path} holds a {type(fields).__name__}, not a checkpoint of a training run.",
            hint="Choose a step-*.pt file from a run's folder.",
        )
    return fields


def _remove_old_runs(current: Path) -> None:
    runs = [folder for folder in current.parent.iterdir() if folder.is_dir()]
    runs.sort(key=lambda folder: folder.stat().st_mtime)
    for folder in runs[:-KEPT_RUNS]:
        shutil.rmtree(folder, ignore_errors=True)  # another engine may be removing the same folder
