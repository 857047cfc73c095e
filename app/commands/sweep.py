"""`tensorlab sweep`: train a subject for each trial of a sweep, without a window."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from app.commands.conversation import Conversation, EngineEnded, failure
from app.commands.failures import BAD_ARGUMENTS, CommandFailure
from app.commands.paths import require_utf8
from app.commands.projects import require_data
from app.commands.report import write_report
from app.commands.runs import run_report
from app.commands.target import Target, run_code, runs_beside, show_output
from engine.project.sweeps.sweep import Sweep, SweepProblem, parse_choice
from engine.project.sweeps.trials import check_sweep
from engine.protocol import ErrorSnapshot, RunRow, SweepCommand, TrainingSnapshot, TrialProgress
from engine.runs.summary import rows_in


@dataclass(frozen=True, kw_only=True)
class SweepOptions:
    """Options of the command line; None keeps the project's, or the usual."""

    choices: Sequence[str]
    trials: int
    sampler_seed: int
    metric: str
    prune: bool
    runs_folder: Path | None = None
    epochs: int | None = None
    device: str | None = None


def sweep(target: Target, options: SweepOptions, json_out: str | None) -> None:
    """Train each trial, and report all of them, the best first. Ctrl+C stops the sweep; the trials
    so far stay. Raises CommandFailure."""
    require_data(target)
    chosen = {"epochs": options.epochs, "device": options.device}
    given = {name: value for name, value in chosen.items() if value is not None}
    setup = msgspec.structs.replace(target.project.training, **given)
    project = msgspec.structs.replace(target.project, training=setup)
    wanted = _sweep_of(options)
    try:
        check_sweep(wanted, project)
    except SweepProblem as problem:
        raise CommandFailure(f"--set: {problem}", BAD_ARGUMENTS) from None
    folder = options.runs_folder
    if folder is not None:
        require_utf8(folder, "--runs")
    command = SweepCommand(
        model=project.model,
        training=setup,
        subject=target.subject,
        objective=target.objective,
        runs=str(folder.absolute()) if folder else runs_beside(target),
        sweep=wanted,
    )
    started_s = time.monotonic()
    trials = _trained(target, command)
    rows = _ranked(trials, wanted.maximise)
    if json_out is None:
        print(_in_words(rows, wanted))
    else:
        best = next((run_report(row) for row in rows if _is_best(row)), None)
        report: dict[str, Any] = {
            "subject": target.text,
            "figure": wanted.figure,
            "seed": wanted.seed,
            "trials": [run_report(row) for row in rows],
            "best": best,
            "seconds": round(time.monotonic() - started_s, 3),
        }
        write_report(report, json_out)
    if len(rows) < wanted.trials:
        raise CommandFailure(f"{target.text}: {len(rows)} of {wanted.trials} trials were trained.")


def _sweep_of(options: SweepOptions) -> Sweep:
    """Raises CommandFailure."""
    choices = []
    for text in options.choices:
        name, equals, values = text.partition("=")
        try:
            if not equals:
                raise SweepProblem(f"“{text}” has no =.")
            choices.append(parse_choice(name, values))
        except SweepProblem as problem:
            raise CommandFailure(f"--set {text}: {problem}", BAD_ARGUMENTS) from None
    figure, _, direction = options.metric.partition(":")
    if direction not in ("", "min", "max"):
        message = f"--metric {options.metric}: after the colon comes min or max."
        raise CommandFailure(message, BAD_ARGUMENTS)
    figure = figure.replace("_", " ") if figure.startswith(("validation_", "train_")) else figure
    maximise = direction == "max" or (not direction and "accuracy" in figure)
    return Sweep(
        tuple(choices), options.trials, options.sampler_seed, figure, maximise, options.prune
    )


def _trained(target: Target, command: SweepCommand) -> list[RunRow]:
    """The trials, as their folders tell them."""
    folders: dict[str, None] = {}
    told = set[int]()
    try:
        with Conversation("training") as engine:
            engine.ready()
            run_code(engine, target)
            for snapshot in engine.ask(command):
                show_output(snapshot)
                if isinstance(snapshot, ErrorSnapshot):
                    raise failure(target.path, snapshot)
                if not isinstance(snapshot, TrainingSnapshot):
                    continue
                if snapshot.folder:
                    folders[snapshot.folder] = None
                trial = snapshot.trial
                if trial is not None and trial.state != "running" and trial.number not in told:
                    told.add(trial.number)
                    _print_progress(trial)
    except EngineEnded as end:
        raise CommandFailure(f"{target.path}: {end}") from None
    parents = dict.fromkeys(Path(folder).parent for folder in folders)
    return [row for runs in parents for row in rows_in(runs) if row.folder in folders]


def _print_progress(trial: TrialProgress) -> None:
    best = f"; best: trial {trial.best}, {trial.figure} {trial.value:.4g}" if trial.best else ""
    words = f"trial {trial.number}/{trial.trials} {trial.state}: {trial.values}{best}"
    print(words, file=sys.stderr, flush=True)


def _ranked(rows: Sequence[RunRow], maximise: bool) -> list[RunRow]:
    """The best first; trials that were pruned or failed come last."""

    def rank(row: RunRow) -> tuple[bool, float]:
        value = row.trial.value if row.trial else None
        known = value is not None and math.isfinite(value) and row.state == "finished"
        return not known, (-value if maximise else value) if known and value is not None else 0.0

    return sorted(rows, key=rank)


def _is_best(row: RunRow) -> bool:
    return row.trial is not None and row.trial.state == "best"


def _in_words(rows: Sequence[RunRow], wanted: Sweep) -> str:
    lines = []
    for row in rows:
        trial = row.trial
        assert trial is not None
        value = f"{wanted.figure} {trial.value:.4g}" if trial.value is not None else row.error
        state = trial.state or row.state
        lines.append(f"trial {trial.number:3}  {state:9} {value}  ({trial.values})  {row.folder}")
    return "\n".join(lines)
