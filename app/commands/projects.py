"""`tensorlab train` and `tensorlab export`: work on a project or on code without a window."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from app.commands.conversation import Conversation, EngineEnded, failure
from app.commands.failures import BAD_ARGUMENTS, CommandFailure
from app.commands.progress import Progress
from app.commands.report import write_report
from app.commands.run_beginnings import BeginFrom, Beginning, begin
from app.commands.target import Target, run_files, show_output
from engine.project import files
from engine.project.atomic import regular_target
from engine.project.document import HoldWhen, TrainingSetup
from engine.protocol import (
    EpochRow,
    ErrorSnapshot,
    ExportCommand,
    ExportSnapshot,
    TrainCommand,
    TrainingSnapshot,
)

Format = Literal["pt", "safetensors", "py", "script"]


def format_of(path: Path, allowed: tuple[Format, ...], option: str = "--out") -> Format:
    """The format by the file's suffix. Raises CommandFailure if it is not one of `allowed`."""
    for known in allowed:
        if path.suffix == f".{known}":
            return known
    endings = " or ".join(f".{known}" for known in allowed)
    raise CommandFailure(f"{option} {path}: the name must end in {endings}.", BAD_ARGUMENTS)


def require_utf8(path: Path, option: str = "") -> None:
    """Check that the name of a file can be sent to the engine."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        shown = os.fsencode(path).decode(errors="replace")
        message = f"{option} {shown}: the name is not valid UTF-8. Rename it.".strip()
        raise CommandFailure(message, BAD_ARGUMENTS) from None


def require_folder_of(path: Path, option: str = "--out") -> None:
    """Check that a result can be written there, before training for an hour."""
    require_utf8(path, option)
    if path.is_dir():
        raise CommandFailure(f"{option} {path}: this is a folder.", BAD_ARGUMENTS)
    if not path.absolute().parent.is_dir():
        raise CommandFailure(f"{option} {path}: the folder does not exist.", BAD_ARGUMENTS)
    try:
        regular_target(path)
    except OSError as error:
        raise CommandFailure(f"{option} {path}: {error.strerror}.", BAD_ARGUMENTS) from None


def require_data(target: Target) -> None:
    """Check that there is something to train on."""
    if target.is_code and not target.objective.data:
        raise CommandFailure(
            f"{target.text}: which data? Add --data FILE.py:NAME, or --data NAME for one of the"
            " same file.",
            BAD_ARGUMENTS,
        )


@dataclass(frozen=True)
class TrainOptions:
    """Options of the command line that replace the project's; None keeps the project's."""

    epochs: int | None = None
    device: str | None = None
    seed: int | None = None
    out: Path | None = None
    begin_from: BeginFrom = "weights"
    script: Path | None = None
    run: Path | None = None
    processes: int | None = None

    def applied_to(self, setup: TrainingSetup) -> TrainingSetup:
        """The set-up with these options. Nothing holds the run: nobody would let it go on."""
        chosen = {
            "epochs": self.epochs,
            "device": self.device,
            "seed": self.seed,
            "processes": self.processes,
        }
        return msgspec.structs.replace(
            setup,
            hold=HoldWhen(),
            **{name: value for name, value in chosen.items() if value is not None},
        )


def train(target: Target, options: TrainOptions, json_out: str | None) -> None:
    """Train a subject, a project from the weights saved beside it if there are any; report, and
    write the weights. Ctrl+C, SIGTERM and SIGHUP stop at the next step, and the weights so far are
    written. Raises CommandFailure."""
    path, project = target.path, target.project
    require_data(target)
    weights_format = format_of(options.out, ("pt", "safetensors")) if options.out else None
    if options.out is not None:
        require_folder_of(options.out)
    if options.run is not None:
        require_utf8(options.run, "--run")
    if options.script is not None:
        _check_script(target, options, options.script)
    setup = options.applied_to(project.training)
    started_s = time.monotonic()
    progress = Progress(sys.stderr)
    try:
        with Conversation("training") as engine:
            _require_device(setup.device, [d.name for d in engine.ready().devices], options, path)
            run_files(engine, target)
            beginning = begin(engine, target, setup, options.begin_from, options.run)
            if options.script is not None:
                script = _export_command(target, setup, "script", options.script)
                _exported(engine, script, options.script)
            command = TrainCommand(
                model=project.model,
                training=setup,
                checkpoint=beginning.path if beginning.kind == "checkpoint" else "",
                subject=target.subject,
                objective=target.objective,
                folder=str(options.run.absolute()) if options.run else "",
            )
            for snapshot in engine.ask(command):
                show_output(snapshot)
                if isinstance(snapshot, ErrorSnapshot):
                    raise failure(path, snapshot)
                if isinstance(snapshot, TrainingSnapshot):
                    progress.show(snapshot)
            progress.end()
            run = progress.last
            if run is None or run.state == "failed":
                message = run.error.message if run and run.error else "training did not start"
                hint = f"\n{run.error.hint}" if run and run.error and run.error.hint else ""
                raise CommandFailure(f"{path}: {message}{hint}")
            weights = None
            if options.out is not None and weights_format is not None:
                command = _export_command(target, setup, weights_format, options.out)
                weights = _exported(engine, command, options.out)
    except EngineEnded as end:
        progress.end()
        way_on = _way_on(end.checkpoint_step, options.run)
        raise CommandFailure(f"{path}: {end}\n{way_on}") from None
    report = _training_report(target, setup, beginning, run, progress.last_epoch, weights)
    report["seconds"] = round(time.monotonic() - started_s, 3)
    if json_out is None:
        print(_in_words(report, beginning))
    else:
        write_report(report, json_out)
    if run.state == "stopped":
        resume = f"--run {options.run} --resume" if options.run else "--resume"
        way_on = f" Go on with {resume}." if run.checkpoint else ""
        of = f" of {run.total_steps:,}" if run.total_steps else ""
        raise CommandFailure(f"{path}: stopped after {run.step:,}{of} steps.{way_on}")


def export(
    target: Target, weights: Path | None, format_: Format | None, out: Path, json_out: str | None
) -> None:
    """Write a subject's weights, or a project's Python. Raises CommandFailure.

    Without `weights`, those beside the project are written; without these, the initial ones.
    """
    path, project = target.path, target.project
    if weights is not None and not weights.is_file():
        raise CommandFailure(f"--weights {weights}: there is no such file.", BAD_ARGUMENTS)
    format_ = format_ or format_of(out, ("pt", "safetensors", "py"))
    require_folder_of(out)
    has_own = not target.is_code and format_ != "py" and files.weights_file(path).is_file()
    if weights is None and has_own:
        weights = files.weights_file(path)
    if weights is not None:
        require_utf8(weights, "--weights")
    command = ExportCommand(
        model=project.model,
        training=project.training,
        format=format_,
        path=str(out.absolute()),
        weights=str(weights.absolute()) if weights else "",
        subject=target.subject,
    )
    try:
        with Conversation("exporting") as engine:
            run_files(engine, target)
            report = _exported(engine, command, weights or path)
    except EngineEnded as end:
        raise CommandFailure(f"{path}: {end}") from None
    if json_out is None:
        print(_export_words(report))
    else:
        write_report(report, json_out)


def _check_script(target: Target, options: TrainOptions, script: Path) -> None:
    format_of(script, ("py",), "--script")
    require_folder_of(script, "--script")
    if target.is_code:
        message = f"--script: {target.text} is code; only a model of blocks is written as a script."
        raise CommandFailure(message, BAD_ARGUMENTS)
    if options.begin_from == "checkpoint":
        message = "--script: a script begins at the first step, and --resume in the middle."
        raise CommandFailure(message, BAD_ARGUMENTS)


def _export_command(
    target: Target, setup: TrainingSetup, format_: Format, path: Path
) -> ExportCommand:
    return ExportCommand(
        model=target.project.model,
        training=setup,
        format=format_,
        path=str(path.absolute()),
        subject=target.subject,
    )


def _way_on(checkpoint_step: int | None, run: Path | None) -> str:
    """What to do after the engine has ended a run."""
    if checkpoint_step is None:
        return "Train again: the run had written no checkpoint yet."
    way = f"`tensorlab train --run {run} --resume`" if run else "the same command and --resume"
    return f"The run's last checkpoint is step {checkpoint_step:,}. Go on from it with {way}."


def _require_device(device: str, known: list[str], options: TrainOptions, path: Path) -> None:
    if device in known:
        return
    message = f"there is no device “{device}” on this machine; it has: {', '.join(known)}."
    if options.device is not None:
        raise CommandFailure(f"--device: {message}", BAD_ARGUMENTS)
    raise CommandFailure(f"{path}: training.device: {message} Choose one with --device.")


def _exported(engine: Conversation, command: ExportCommand, place: Path) -> dict:
    for snapshot in engine.ask(command):
        show_output(snapshot)
        if isinstance(snapshot, ErrorSnapshot):
            raise failure(place, snapshot)
        if isinstance(snapshot, ExportSnapshot):
            return {
                "path": snapshot.path,
                "format": snapshot.format,
                "size_bytes": snapshot.size_bytes,
                "sha256": snapshot.sha256,
                "max_error": _number(snapshot.max_error),
                "keys": list(snapshot.keys),
                "renaming": snapshot.renaming or None,
            }
    raise CommandFailure(f"{place}: the export was stopped.")


def _training_report(
    target: Target,
    setup: TrainingSetup,
    beginning: Beginning,
    run: TrainingSnapshot,
    row: EpochRow | None,
    weights: dict | None,
) -> dict:
    return {
        "subject": target.text,
        **({"data": target.objective.data} if target.is_code else {"project": target.text}),
        "state": run.state,
        "begins": beginning.report(),
        "device": setup.device,
        "seed": setup.seed,
        "epochs": row.epoch if row else 0,
        "steps": run.step,
        "train_loss": _number(row.train_loss) if row else None,
        "train_accuracy": _number(row.train_accuracy) if row else None,
        "val_loss": _number(row.validation_loss) if row else None,
        "val_accuracy": _number(row.validation_accuracy) if row else None,
        "train_figures": _numbers(row.train_figures) if row else {},
        "val_figures": _numbers(row.validation_figures) if row else {},
        "steps_per_second": _number(run.steps_per_second),
        "run": run.folder or None,
        "checkpoint": run.checkpoint or None,
        "weights": weights,
    }


def _numbers(figures: Mapping[str, float]) -> dict[str, float | str | None]:
    return {name: _number(value) for name, value in figures.items()}


def _number(value: float) -> float | str | None:
    """The value for JSON, which has no NaN and no infinities: NaN, which means "none", becomes
    null."""
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else str(value)


def _in_words(report: dict, beginning: Beginning) -> str:
    words = [
        f"{report['state']} after {report['steps']:,} steps in {report['seconds']:.1f} s "
        f"on {report['device']}, {beginning}"
    ]
    if isinstance(report["val_accuracy"], float):
        words.append(f"validation accuracy {report['val_accuracy']:.2%}")
    if report["weights"]:
        words.append(_export_words(report["weights"]))
    return "\n".join(words)


def _export_words(report: dict) -> str:
    return (
        f"wrote {report['path']}: {report['size_bytes']:,} bytes, SHA-256 {report['sha256']}\n"
        f"loaded back and compared: largest difference {report['max_error']}"
        + (f"\n{report['renaming']}" if report["renaming"] else "")
    )
