"""A run in words: its progress, its end and what to do next."""

from __future__ import annotations

import math

from engine.protocol import (
    BestSoFar,
    EpochRow,
    LoopSnapshot,
    RunSnapshot,
    TrainingSnapshot,
    TrialProgress,
)
from widgets.text import format_duration, format_number, format_percent

DIVERGED = "Diverged"
"""The type of the error of a run whose loss became NaN or infinite."""


def progress_text(snapshot: RunSnapshot, best: EpochRow | None) -> str:
    """The progress of the run in one line."""
    if isinstance(snapshot, TrainingSnapshot) and snapshot.state == "running" and not snapshot.run:
        return "The processes of the run are starting: torch loads in each."
    parts = [snapshot.title] if isinstance(snapshot, LoopSnapshot) else []
    if isinstance(snapshot, TrainingSnapshot) and snapshot.trial is not None:
        parts.append(f"trial {snapshot.trial.number:,} of {snapshot.trial.trials:,}")
    if snapshot.epochs:
        parts.append(f"epoch {snapshot.epoch:,} of {snapshot.epochs:,}")
    of = f" of {snapshot.total_steps:,}" if snapshot.total_steps else ""
    parts.append(f"step {snapshot.step:,}{of}")
    if snapshot.steps_per_second > 0:
        parts.append(f"{format_number(snapshot.steps_per_second, 3)} steps/s")
    if snapshot.samples_per_second > 0:
        parts.append(f"{format_number(snapshot.samples_per_second, 3)} samples/s")
    if snapshot.state == "running" and snapshot.remaining_s is not None:
        parts.append(f"{format_duration(snapshot.remaining_s)} left")
    if best is not None and snapshot.state not in ("finished", "stopped"):  # `result_text` has it
        accuracy = format_percent(best.validation_accuracy)
        parts.append(f"best validation accuracy {accuracy} (epoch {best.epoch})")
    parts.append(f"on {snapshot.device}")
    return " · ".join(parts)


def result_text(snapshot: RunSnapshot, last: EpochRow | None, best: EpochRow | None) -> str:
    """The end of the run and what to do next, in words; empty while the run goes on."""
    if isinstance(snapshot, LoopSnapshot):
        return _loop_text(snapshot)
    trial = snapshot.trial if isinstance(snapshot, TrainingSnapshot) else None
    if trial is not None and snapshot.state in ("finished", "stopped", "running"):
        return _trial_text(trial)
    reached = _reached(snapshot)
    saved = checkpoint_text(snapshot)
    match snapshot.state:
        case "finished":
            if isinstance(snapshot, TrainingSnapshot) and at_chance(snapshot, last):
                guess = format_percent(snapshot.guess_accuracy)
                following = (
                    f" Always guessing the most frequent class reaches {guess}: the model has not"
                    " learnt to tell the classes apart. Try another learning rate with fresh"
                    " weights."
                )
            elif explains_nothing(last):
                following = (
                    " Always guessing the mean of the targets has an R2 of 0: the model has learnt"
                    " nothing beyond it. Try another learning rate with fresh weights."
                )
            else:
                following = " Next: export the weights, or train again."
            early = _early_text(snapshot, last)
            epochs = _counted(snapshot.epochs, "epoch")
            done = early or f"Finished {epochs}, {_counted(snapshot.step, 'step')}."
            return f"{done}{_accuracy_text(last, best)}{following}"
        case "stopped":
            return f"Stopped after {reached}.{_accuracy_text(last, best)}{saved}"
        case "failed" if snapshot.error is not None:
            error = snapshot.error
            hint = f" {error.hint}" if error.hint else ""
            if error.type == "RankLost":  # its hint tells of the checkpoint
                saved = ""
            return f"Failed after {reached}. {error.type}: {error.message}{hint}{saved}"
        case "failed":
            return f"Failed after {reached}.{saved}"
        case "paused" if isinstance(snapshot, TrainingSnapshot) and snapshot.is_in_step:
            return (
                f"Paused inside step {snapshot.step + 1:,}. Next and Step go on with it, Back goes"
                " to its start; Continue runs the rest."
            )
        case "paused" if isinstance(snapshot, TrainingSnapshot) and snapshot.processes > 1:
            return (
                f"{snapshot.processes} processes are paused. Step runs one optimizer step; Continue"
                " runs the rest."
            )
        case "paused":
            return "Paused. Step runs one optimizer step, Back undoes one; Continue runs the rest."
        case "running" if snapshot.error is not None:  # a warning: the run goes on
            hint = f" {snapshot.error.hint}" if snapshot.error.hint else ""
            return f"{snapshot.error.message}{hint}"
    return ""


def _trial_text(trial: TrialProgress) -> str:
    """The sweep so far, and at its end what to do next."""
    best = "no trial has a figure yet"
    if trial.best:
        shown = format_percent if "accuracy" in trial.figure else format_number
        best = f"the best is trial {trial.best:,}, {trial.figure} {shown(trial.value)}"
    if not trial.has_ended:
        return f"Trial {trial.number:,}: {trial.values}. So far {best}."
    return (
        f"The sweep has ended after {trial.number:,} of {trial.trials:,} trials: {best}. The model"
        " has the weights that it had before. Runs lists the trials: Use settings, or Open one."
    )


def _loop_text(loop: LoopSnapshot) -> str:
    match loop.state:
        case "finished":
            return f"The loop has ended after {_reached(loop)}."
        case "stopped":
            return f"Stopped after {_reached(loop)}."
        case "failed" if loop.error is not None:
            hint = f" {loop.error.hint}" if loop.error.hint else ""
            return f"Failed after {_reached(loop)}. {loop.error.type}: {loop.error.message}{hint}"
        case "failed":
            return cut_off_text(loop)
        case "paused" if loop.hold is not None:
            return (
                f"Held before the update of step {loop.hold.step:,}. Step runs to the end of this"
                " step; Continue runs the rest."
            )
        case "paused":
            return (
                f"Held after step {loop.step:,}. Step runs to the next optimizer step; Continue"
                " runs the rest."
            )
    return ""


def _early_text(snapshot: RunSnapshot, last: EpochRow | None) -> str:
    """Words for a run that stopped early; empty for another one."""
    if not isinstance(snapshot, TrainingSnapshot) or not snapshot.stopped_early or last is None:
        return ""
    words = f"Stopped early after {last.epoch:,} of {snapshot.epochs:,} epochs"
    best = snapshot.best
    return f"{words}." if best is None else f"{words}: the best was {best_text(best)}."


def best_text(best: BestSoFar) -> str:
    """The best epoch with its figure: "epoch 4, validation loss 0.5"."""
    shown = format_percent if "accuracy" in best.figure else format_number
    return f"epoch {best.epoch:,}, {best.figure} {shown(best.value)}"


def _reached(snapshot: RunSnapshot) -> str:
    if snapshot.total_steps:
        return f"{snapshot.step:,} of {snapshot.total_steps:,} steps"
    return f"{snapshot.step:,} step{'' if snapshot.step == 1 else 's'}"


def at_chance(snapshot: TrainingSnapshot, last: EpochRow | None) -> bool:
    """Whether the last epoch's validation accuracy, or the training accuracy without validation, is
    within two standard deviations of what guessing the most frequent class reaches, or below."""
    guess, labels = snapshot.guess_accuracy, snapshot.guess_labels
    if last is None or not labels or math.isnan(guess):
        return False
    validates = not math.isnan(last.validation_loss)
    accuracy = last.validation_accuracy if validates else last.train_accuracy
    return accuracy <= guess + 2 * math.sqrt(guess * (1 - guess) / labels)  # NaN is not


def explains_nothing(last: EpochRow | None) -> bool:
    """Whether the last epoch predicts numbers no better than their mean does."""
    return last is not None and last.validation_figures.get("R2", 1.0) <= 0


def cut_off_text(snapshot: RunSnapshot) -> str:
    """Words for a run whose engine was lost."""
    saved = checkpoint_text(snapshot)
    if not saved and not isinstance(snapshot, LoopSnapshot):
        saved = " It had written no checkpoint yet: train again."
    return f"The engine stopped after {_reached(snapshot)}.{saved}"


def left_text(words: str, step: int) -> str:
    """What happened to a script whose loop is shown, and the last step that came of it."""
    return f"{words} The last step that came is {step:,}."


def checkpoint_text(snapshot: RunSnapshot) -> str:
    """Words on the run's last checkpoint; empty without one."""
    if not isinstance(snapshot, TrainingSnapshot) or not snapshot.checkpoint:
        return ""
    return (
        f" The last checkpoint is of step {snapshot.checkpoint_step:,}: Resume goes on from there."
    )


def _accuracy_text(last: EpochRow | None, best: EpochRow | None) -> str:
    if last is not None and {"R2", "RMSE"} <= last.validation_figures.keys():
        r2, rmse = (format_number(last.validation_figures[name], 4) for name in ("R2", "RMSE"))
        return f" Validation R2 {r2}, RMSE {rmse}."
    if last is None or best is None or math.isnan(last.validation_accuracy):
        return ""
    text = f" Validation accuracy {format_percent(last.validation_accuracy)}"
    if best.validation_accuracy > last.validation_accuracy:
        text += f", at best {format_percent(best.validation_accuracy)} in epoch {best.epoch}"
    return text + "."


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
