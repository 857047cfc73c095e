"""`tensorlab train`: work on a project or on code without a window."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from app.commands.conversation import Conversation, EngineEnded, failure
from app.commands.export import export_words, exported
from app.commands.failures import BAD_ARGUMENTS, CommandFailure
from app.commands.paths import format_of, require_folder_of, require_utf8
from app.commands.progress import Progress
from app.commands.report import number, write_report
from app.commands.run_beginnings import BeginFrom, Beginning, begin
from app.commands.target import Target, run_code, runs_beside, show_output
from engine.project.document import HoldWhen, TrainingSetup
from engine.project.subject import python_named
from engine.protocol import (
    EpochRow,
    ErrorSnapshot,
    ExportCommand,
    Finding,
    FindingSnapshot,
    TrainCommand,
    TrainingSnapshot,
)
from engine.protocol.exporting.formats import Format

_WEIGHTS: tuple[Format, ...] = ("pt", "safetensors")


def require_data(target: Target) -> None:
    """Check that there is something to train on."""
    if target.is_code and not target.objective.has_data:
        way = (
            "Add --data FILE.py:NAME, --data NAME for one of the same file, or --dataset KIND for a"
            " data set or a file of data."
        )
        if target.has_folder:
            way = "Choose them under Train in the window, and save the project."
        raise CommandFailure(f"{target.text}: which data? {way}", BAD_ARGUMENTS)


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """Options of the command line that replace the project's; None keeps the project's."""

    epochs: int | None = None
    device: str | None = None
    seed: int | None = None
    nproc_per_node: int | None = None
    begin_from: BeginFrom = "weights"
    run_folder: Path | None = None
    out: Path | None = None
    script: Path | None = None

    def applied_to(self, setup: TrainingSetup) -> TrainingSetup:
        """The set-up with these options. Nothing holds the run: nobody would let it go on."""
        chosen = {
            "epochs": self.epochs,
            "device": self.device,
            "seed": self.seed,
            "processes": self.nproc_per_node,
        }
        return msgspec.structs.replace(
            setup,
            hold=HoldWhen(),
            **{name: value for name, value in chosen.items() if value is not None},
        )


def train(target: Target, options: TrainOptions, json_out: str | None) -> None:
    """Train a subject, and report.

    - A project begins from the weights saved beside it, if there are any.
    - What cannot be written is refused before the engine starts.
    - Ctrl+C, SIGTERM and SIGHUP stop at the next step, and the weights so far are written.

    Raises CommandFailure, also for a run that was stopped."""
    require_data(target)
    _check_paths(options)
    setup = options.applied_to(target.project.training)
    started_s = time.monotonic()
    progress = Progress(sys.stderr)
    weights = None
    try:
        with Conversation("training") as engine:
            _require_device(engine, target, setup, options)
            run_code(engine, target)
            beginning = begin(engine, target, setup, options.begin_from, options.run_folder)
            if options.script is not None:
                _written(engine, target, setup, options.script)
            command = _train_command(target, setup, beginning, options.run_folder)
            findings = _follow(engine, target, command, progress)
            run = _require_run(target, progress.last)
            if options.out is not None:
                weights = _written(engine, target, setup, options.out)
    except EngineEnded as end:
        progress.end()
        way_on = _way_on(end.checkpoint_step, _resuming(target, options.run_folder))
        raise CommandFailure(f"{target.path}: {end}\n{way_on}") from None
    report = _training_report(target, setup, beginning, run, progress.last_epoch, weights)
    report["findings"] = msgspec.to_builtins(findings)
    report["seconds"] = round(time.monotonic() - started_s, 3)
    if json_out is None:
        print(_in_words(report, beginning))
    else:
        write_report(report, json_out)
    if run.state == "stopped":
        raise _stopped(target, run, options.run_folder)


def _check_paths(options: TrainOptions) -> None:
    """Raises CommandFailure."""
    if options.out is not None:
        format_of(options.out, _WEIGHTS)
        require_folder_of(options.out)
    if options.run_folder is not None:
        require_utf8(options.run_folder, "--run")
    if options.script is not None:
        format_of(options.script, ("py",), "--script")
        require_folder_of(options.script, "--script")
        if options.begin_from == "checkpoint":
            message = "--script: a script begins at the first step, and --resume in the middle."
            raise CommandFailure(message, BAD_ARGUMENTS)


def _require_device(
    engine: Conversation, target: Target, setup: TrainingSetup, options: TrainOptions
) -> None:
    known = [device.name for device in engine.ready().devices]
    if setup.device in known:
        return
    has = ", ".join(known)
    message = f"there is no device “{setup.device}” on this machine; it has: {has}."
    if options.device is not None:
        raise CommandFailure(f"--device: {message}", BAD_ARGUMENTS)
    raise CommandFailure(f"{target.path}: training.device: {message} Choose one with --device.")


def _train_command(
    target: Target, setup: TrainingSetup, beginning: Beginning, folder: Path | None
) -> TrainCommand:
    return TrainCommand(
        model=target.project.model,
        training=setup,
        checkpoint=beginning.path if beginning.kind == "checkpoint" else "",
        subject=target.subject,
        objective=target.objective,
        runs=runs_beside(target),
        folder=str(folder.absolute()) if folder else "",
    )


def _follow(
    engine: Conversation, target: Target, command: TrainCommand, progress: Progress
) -> list[Finding]:
    """Show the run to its end, and give what was found in the loop. Raises CommandFailure and
    EngineEnded."""
    findings: list[Finding] = []
    for snapshot in engine.ask(command):
        show_output(snapshot)
        if isinstance(snapshot, ErrorSnapshot):
            raise failure(target.path, snapshot)
        if isinstance(snapshot, FindingSnapshot):
            findings.append(snapshot.finding)
            progress.say(_finding_words(snapshot.finding))
        if isinstance(snapshot, TrainingSnapshot):
            progress.show(snapshot)
    progress.end()
    return findings


def _require_run(target: Target, run: TrainingSnapshot | None) -> TrainingSnapshot:
    if run is not None and run.state != "failed":
        return run
    error = run.error if run else None
    message = error.message if error else "training did not start"
    hint = f"\n{error.hint}" if error and error.hint else ""
    raise CommandFailure(f"{target.path}: {message}{hint}")


def _stopped(target: Target, run: TrainingSnapshot, folder: Path | None) -> CommandFailure:
    resume = _resuming(target, folder) or "--resume"
    way_on = f" Go on with {resume}." if run.checkpoint else ""
    of = f" of {run.total_steps:,}" if run.total_steps else ""
    return CommandFailure(f"{target.path}: stopped after {run.step:,}{of} steps.{way_on}")


def _written(engine: Conversation, target: Target, setup: TrainingSetup, path: Path) -> dict:
    """The report on what is trained as a script, or on its weights, written by the engine that
    trains it, which also compares it: no fresh process reads it back. Raises CommandFailure and
    EngineEnded."""
    command = ExportCommand(
        model=target.project.model,
        training=setup,
        format="script" if path.suffix == ".py" else format_of(path, _WEIGHTS),
        path=str(path.absolute()),
        subject=target.subject,
        objective=target.objective,
        verify=False,
    )
    return exported(engine, command, path)


def _resuming(target: Target, run: Path | None) -> str:
    """The options that go on with the run in the folder `run`, whose code the user agrees to; ""
    without a folder."""
    agreed = " --run-cells" if python_named(target.subject) else ""
    return f"--run {run} --resume{agreed}" if run else ""


def _way_on(checkpoint_step: int | None, resuming: str) -> str:
    """What to do after the engine has ended a run."""
    if checkpoint_step is None:
        return "Train again: the run had written no checkpoint yet."
    way = f"`tensorlab train {resuming}`" if resuming else "the same command and --resume"
    return f"The run's last checkpoint is step {checkpoint_step:,}. Go on from it with {way}."


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
        **({"data": _data_in_words(target)} if target.is_code else {"project": target.text}),
        "state": run.state,
        "begins": beginning.report(),
        "device": setup.device,
        "seed": setup.seed,
        "epochs": row.epoch if row else 0,
        "steps": run.step,
        "train_loss": number(row.train_loss) if row else None,
        "train_accuracy": number(row.train_accuracy) if row else None,
        "val_loss": number(row.validation_loss) if row else None,
        "val_accuracy": number(row.validation_accuracy) if row else None,
        "train_figures": _numbers(row.train_figures) if row else {},
        "val_figures": _numbers(row.validation_figures) if row else {},
        "steps_per_second": number(run.steps_per_second),
        "run": run.folder or None,
        "checkpoint": run.checkpoint or None,
        "weights": weights,
    }


def _data_in_words(target: Target) -> str:
    data = target.project.training.data
    if not target.objective.of_setup:
        return target.objective.data
    return f"{data.kind}:{data.path}" if data.path else data.kind


def _numbers(figures: Mapping[str, float]) -> dict[str, float | str | None]:
    return {name: number(value) for name, value in figures.items()}


def _finding_words(finding: Finding) -> str:
    where = f"{finding.file}:{finding.line}: " if finding.line else ""
    evidence = (f"  {each}" for each in finding.evidence)
    return "\n".join((f"{where}{finding.kind}: {finding.text}", *evidence, f"  Fix: {finding.fix}"))


def _in_words(report: dict, beginning: Beginning) -> str:
    words = [
        f"{report['state']} after {report['steps']:,} steps in {report['seconds']:.1f} s "
        f"on {report['device']}, {beginning}"
    ]
    if isinstance(report["val_accuracy"], float):
        words.append(f"validation accuracy {report['val_accuracy']:.2%}")
    if report["weights"]:
        words.append(export_words(report["weights"]))
    return "\n".join(words)
