"""Runs as event files of TensorBoard, by torch's own writer of them: a folder for each run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..project.document import Project
from ..protocol import EpochRow
from ..runs import folders, reading
from ..runs.difference import settings_of
from ..runs.reading import StepFigures
from ..runs.record import RunRecord, load
from ..runs.summary import is_out_of_reach
from ..system.errors import LabError
from .tags import EPOCH, EPOCH_COLUMNS, SETTINGS, STEP, TRAIN, VALIDATION

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

ROWS_A_TIME = 2000
HINT = "Install it with: pip install 'tensorlab[tensorboard]'"


def write_run(run: Path, folder: Path) -> Iterator[int]:
    """Write a run into a new folder, and yield how many steps are written, now and then. Raises
    LabError without TensorBoard or for a folder that has something, RunProblem and OSError."""
    record = load(run)
    path = run / folders.METRICS
    as_copy = is_out_of_reach(record)
    writer = _writer(folder)
    try:
        _write_settings(writer, record)
        done, last = 0, {}
        for row in reading.each_step(path, as_copy):
            _add(writer, row.step, row.wall_s or record.began_s, _of_step(row))
            done += 1
            if done % ROWS_A_TIME == 0:
                yield done
        for row, wall_s in reading.each_epoch(path, as_copy):
            last = _of_epoch(row)
            _add(writer, row.step, wall_s or record.began_s, last)
        _write_hyper_parameters(writer, record, last)
        yield done
    finally:
        writer.close()


def _writer(folder: Path) -> SummaryWriter:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise LabError("TensorBoard is not installed.", hint=HINT) from error
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise LabError(
            f"{folder} has something already.",
            hint="Choose another folder, or empty this one: TensorBoard would mix the two.",
        )
    folder.mkdir(parents=True, exist_ok=True)
    return SummaryWriter(str(folder))


def _add(writer: SummaryWriter, step: int, wall_s: float, figures: Mapping[str, float]) -> None:
    """Add one event for all figures of a step: an event for each would take ten times as long."""
    from tensorboard.compat.proto import summary_pb2

    kind = summary_pb2.Summary  # pyright: ignore[reportAttributeAccessIssue]
    values = [kind.Value(tag=tag, simple_value=value) for tag, value in figures.items()]
    if values:
        file = writer._get_file_writer()
        file.add_summary(kind(value=values), step, wall_s)


def _of_step(row: StepFigures) -> dict[str, float]:
    """The figures of a step by their tags."""
    return {f"{STEP}{name}": value for name, value in {**row.figures, **row.columns}.items()}


def _of_epoch(row: EpochRow) -> dict[str, float]:
    found = {f"{EPOCH}{name}": getattr(row, name) for name in EPOCH_COLUMNS}
    found |= {f"{TRAIN}{name}": value for name, value in row.train_figures.items()}
    found |= {f"{VALIDATION}{name}": value for name, value in row.validation_figures.items()}
    return {tag: value for tag, value in found.items() if not math.isnan(value)}


# -- settings ------------------------------------------------------------------------------------


def _write_settings(writer: SummaryWriter, record: RunRecord) -> None:
    """The settings as text, which TensorBoard shows as a table."""
    rows = [f"| {_cell(name)} | {_cell(value)} |" for name, value in settings_of(record.project)]
    head = ["| setting | value |", "|---|---|"]
    writer.add_text(SETTINGS, "\n".join(head + rows), 0, walltime=record.began_s)
    if record.note:
        writer.add_text("note", record.note, 0, walltime=record.began_s)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").splitlines())


def _write_hyper_parameters(
    writer: SummaryWriter, record: RunRecord, last: Mapping[str, float]
) -> None:
    """The numbers of the settings beside the last figures, for TensorBoard's table of them."""
    from torch.utils.tensorboard.summary import hparams

    numbers = _numbers(record.project)
    figures = {f"last/{tag}": value for tag, value in last.items() if math.isfinite(value)}
    file = writer._get_file_writer()
    for summary in hparams(numbers, figures):
        file.add_summary(summary)
    for tag, value in figures.items():
        writer.add_scalar(tag, value, 0, walltime=record.ended_s or record.began_s)


def _numbers(project: Project) -> dict[str, Any]:
    """The values that TensorBoard takes as hyper-parameters: numbers, words and switches."""
    setup = project.training
    found: dict[str, Any] = {
        name: value
        for name, value in setup.optimizer_params.items()
        if isinstance(value, bool | int | float | str)
    }
    for name in ("optimizer", "batch_size", "epochs", "seed", "accumulate", "precision"):
        found[name] = getattr(setup, name)
    return found
