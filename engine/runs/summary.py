"""The summary of a run for lists: read from its folder, whoever writes it."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from ..project.subject import title
from ..project.sweeps.sweep import in_words
from ..protocol import KeptState, RunRow, TrialRow
from .folders import METRICS, checkpoints_of, is_run, runs_in, step_of
from .heartbeat import ALIVE, SILENT_S, silent_s
from .reading import last_figures
from .record import RunProblem, RunRecord, RunState, Trial, load


def rows_in(runs: Path) -> list[RunRow]:
    """The runs of a folder, the newest first; the one whose folder it is."""
    folders = [runs] if is_run(runs) else runs_in(runs)
    return _with_best(sorted(map(row_of, folders), key=lambda r: -r.began_s))


def row_of(folder: Path) -> RunRow:
    """The run's summary; `problem` says what cannot be read."""
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
        state=state_of(folder, record),
        elsewhere=_elsewhere(record),
        told_s=max(_changed_s(folder / METRICS), _changed_s(folder / f"{METRICS}-wal")),
        sign_s=_changed_s(folder / ALIVE),
        began_s=record.began_s,
        ended_s=record.ended_s,
        epochs=setup.epochs,
        checkpoint=kept,
        note=record.note,
        error=record.error,
        no_script=record.no_script,
        origin=f"step {origin.step:,} of {origin.run}" if origin else "",
    )
    if record.trial is not None:
        row = replace(row, trial=_trial(record.trial, record.state))
    if not (folder / METRICS).exists():  # its first figures are not written yet
        return row
    try:
        step, loss, epoch = last_figures(folder / METRICS, is_out_of_reach(record))
    except RunProblem as problem:
        return replace(row, problem=str(problem))
    if epoch is not None:
        step = max(step, epoch.step)  # the last steps of an epoch may have no row of their own
    if record.state in ("finished", "stopped"):
        step = max(step, step_of(Path(kept)))  # it was written at the end
    return replace(row, step=step, loss=loss, epoch=epoch)


def state_of(folder: Path, record: RunRecord) -> KeptState:
    """A run whose process has gone was cut off. Of one on another machine there are only signs."""
    if record.state != "running":
        return record.state
    is_alive = record.writer.is_alive()
    if is_alive is None:
        return "silent" if silent_s(folder) >= SILENT_S else "running"
    return "running" if is_alive else "cut off"


def is_out_of_reach(record: RunRecord) -> bool:
    """Whether another machine writes the run: its figures are then read from a copy."""
    return record.state == "running" and record.writer.is_alive() is None


def _elsewhere(record: RunRecord) -> str:
    writer = record.writer
    if record.state != "running" or writer.is_own or writer.is_alive() is False:
        return ""
    return f"process {writer.pid} of {writer.host}"


def _changed_s(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _trial(trial: Trial, state: RunState) -> TrialRow:
    has_value = state == "finished" or trial.is_pruned
    return TrialRow(
        sweep=trial.sweep,
        number=trial.number,
        values=in_words(trial.values),
        figure=trial.figure,
        value=trial.value if has_value else None,
        state="pruned" if trial.is_pruned else "",
        maximise=trial.maximise,
    )


def _with_best(rows: list[RunRow]) -> list[RunRow]:
    """The best trial of each sweep is marked: the first one of equal ones."""
    best: dict[str, tuple[float, int]] = {}
    for row in rows:
        trial = row.trial
        if trial is None or trial.value is None or trial.state == "pruned":
            continue
        rank = (-trial.value if trial.maximise else trial.value), trial.number
        best[trial.sweep] = min(rank, best.get(trial.sweep, rank))
    return [_marked(row, best) for row in rows]


def _marked(row: RunRow, best: dict[str, tuple[float, int]]) -> RunRow:
    trial = row.trial
    if trial is None or best.get(trial.sweep, (0, 0))[1] != trial.number:
        return row
    return replace(row, trial=replace(trial, state="best"))
