"""What a list tells of a run: read from its folder, whoever writes it."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from ..project.subject import title
from ..protocol import KeptState, RunRow
from .folders import METRICS, checkpoints_of, runs_in
from .metrics import last_figures
from .record import RunProblem, RunRecord, load


def rows_in(runs: Path) -> list[RunRow]:
    """The runs of a folder, the newest first."""
    return sorted((row_of(folder) for folder in runs_in(runs)), key=lambda r: -r.began_s)


def row_of(folder: Path) -> RunRow:
    """What cannot be read is told in `problem`."""
    kept = next(map(str, checkpoints_of(folder)), "")
    try:
        record = load(folder)
    except RunProblem as problem:
        return RunRow(folder=str(folder), state="damaged", checkpoint=kept, problem=str(problem))
    setup, origin = record.project.training, record.origin
    row = RunRow(
        folder=str(folder),
        id=record.id,
        title=title(record.project.subject),
        state=state_of(record),
        began_s=record.began_s,
        ended_s=record.ended_s,
        epochs=setup.epochs,
        checkpoint=kept,
        note=record.note,
        error=record.error,
        origin=f"step {origin.step:,} of {origin.run}" if origin else "",
    )
    if not (folder / METRICS).exists():  # its first figures are not written yet
        return row
    try:
        step, loss, epoch = last_figures(folder / METRICS)
    except RunProblem as problem:
        return replace(row, problem=str(problem))
    return replace(row, step=step, loss=loss, epoch=epoch)


def state_of(record: RunRecord) -> KeptState:
    """A run whose process has gone was cut off; that of another machine is believed."""
    if record.state == "running" and record.writer.is_alive() is False:
        return "cut off"
    return record.state
