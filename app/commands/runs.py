"""Folders of runs: `tensorlab runs` lists them, `tensorlab train --run` makes one or goes on with
one. No torch."""

from __future__ import annotations

import math
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from app.commands.event_files import write_event_files
from app.commands.failures import BAD_ARGUMENTS, CommandFailure
from app.commands.report import write_report
from app.commands.target import Target, require_agreement
from engine.project import files
from engine.project.cells import expressions_of
from engine.project.subject import needs_cells, python_named, takes_setup_data, title
from engine.protocol import RunRow
from engine.runs.folders import is_run
from engine.runs.record import RunProblem, load
from engine.runs.summary import rows_in

_SPLIT = ("hold_out", "validation_fraction", "split_seed", "stratified")
"""The settings of a share of the data that validates."""


def require_new(folder: Path) -> None:
    """Check that a new run can have this folder. Raises CommandFailure."""
    try:
        if is_run(folder):
            raise CommandFailure(
                f"--run {folder}: it has a run already. --resume goes on with it; a new run needs"
                " another folder.",
                BAD_ARGUMENTS,
            )
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise CommandFailure(f"--run {folder}: it is not an empty folder.", BAD_ARGUMENTS)
    except OSError as error:
        raise CommandFailure(f"--run {folder}: {error.strerror}.", BAD_ARGUMENTS) from None
    if not folder.absolute().parent.is_dir():
        raise CommandFailure(f"--run {folder}: the folder does not exist.", BAD_ARGUMENTS)


def target_of_run(folder: Path, run_cells: bool, *of_code: object) -> Target:
    """The subject and the settings of a run, whose Python may run with `run_cells`. Raises
    CommandFailure, also if one of the options `of_code` is given: a run has its own."""
    if any(of_code):
        message = (
            "--data, --validation, --dataset, --hold-out, --loss and --settings go with a SUBJECT;"
            " --run DIR --resume has its own."
        )
        raise CommandFailure(message, BAD_ARGUMENTS)
    try:
        record = load(folder)
    except RunProblem as problem:
        way_on = " If it has checkpoints, name the SUBJECT too." if is_run(folder) else ""
        raise CommandFailure(f"--run {folder}: {problem}{way_on}", BAD_ARGUMENTS) from None
    project = record.project
    if needs_cells(project.subject):
        raise CommandFailure(
            f"--run {folder}: its subject is {title(project.subject)}, which cells of a project"
            f" made. Name the project: PROJECT.tlab --run-cells --run {folder} --resume.",
            BAD_ARGUMENTS,
        )
    if python_named(project.subject):
        require_agreement(f"--run {folder}", project, run_cells)
    unagreed = bool(expressions_of(project)) and not run_cells
    return Target(
        str(folder), folder, project, project.subject, project.objective, unagreed=unagreed
    )


def list_runs(place: Path, json_out: str | None, events: Path | None = None) -> None:
    """Print the runs of a folder, or of a project; also of a single run. With `events`, also write
    them there as TensorBoard's event files. Raises CommandFailure."""
    folder = Path(files.runs_folder(place)) if place.suffix == files.SUFFIX else place
    if not folder.is_dir():
        raise CommandFailure(f"{folder}: there is no such folder.", BAD_ARGUMENTS)
    rows = rows_in(folder)
    written = {} if events is None else {"event_files": write_event_files(rows, events)}
    if json_out is not None:
        write_report({"runs": [run_report(row) for row in rows], **written}, json_out)
    elif not rows:
        print(f"{folder}: there are no runs.")
    else:
        for row in rows:
            print(words_of(row))
        for folder in written.get("event_files", ()):
            print(f"wrote {folder}")


def run_report(row: RunRow) -> dict:
    """A run with its settings, for JSON."""
    fields = msgspec.to_builtins(row)
    settings: dict = {}
    try:
        record = load(Path(row.folder))
        project = record.project
        settings = msgspec.to_builtins(project.training)
        if not takes_setup_data(project.subject, project.objective):
            kept = ("loading", *(_SPLIT if project.training.data.hold_out else ()))
            settings["data"] = {name: settings["data"][name] for name in kept}
        fields["versions"] = record.versions
        fields["blocks"] = len(record.project.model.blocks)
        fields["objective"] = msgspec.to_builtins(record.project.objective)
    except RunProblem:
        pass  # `problem` says it
    return {**_plain(fields), "settings": _plain(settings)}


def _plain(value: Any) -> Any:
    """The value for JSON, which has neither NaN nor infinities: NaN becomes null, an infinity a
    text."""
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def words_of(row: RunRow) -> str:
    """A run in one line; its note, its error and its problem in further lines."""
    name = Path(row.folder).name
    if row.state == "damaged":
        return f"{name}  damaged: {row.problem}"
    parts = [f"trial {row.trial.number} ({row.trial.values})"] if row.trial else []
    parts += [f"{datetime.fromtimestamp(row.began_s):%Y-%m-%d %H:%M}", row.title, row.state]
    parts.append(f"step {row.step:,}")
    if row.loss is not None and math.isfinite(row.loss):
        parts.append(f"loss {row.loss:.4g}")
    if row.epoch is not None:
        parts.append(f"epoch {row.epoch.epoch} of {row.epochs}")
        if not math.isnan(row.epoch.validation_loss):
            parts.append(f"validation loss {row.epoch.validation_loss:.4g}")
        if not math.isnan(row.epoch.validation_accuracy):
            parts.append(f"accuracy {row.epoch.validation_accuracy:.1%}")
    lines = [f"{name}  {', '.join(parts)}"]
    no_script = f"It has no train.py. {row.no_script}" if row.no_script else ""
    for words in (row.note, row.error, row.problem, no_script):
        lines += [f"    {line}" for line in words.splitlines()]
    return "\n".join(lines)
