"""The words of a list for one run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime

from engine.protocol import RunRow
from widgets.text import format_duration, format_number, format_percent


def name_of(row: RunRow) -> str:
    """When the run began; the folder's name of one that cannot be read, or is not of ours."""
    if row.state == "event files":
        return row.title
    if row.trial is not None:
        return f"trial {row.trial.number}"
    if row.state == "damaged":
        return row.folder.replace("\\", "/").rpartition("/")[2]
    return f"{datetime.fromtimestamp(row.began_s):%d %b %H:%M:%S}"


def texts(row: RunRow, read_s: float) -> tuple[str, ...]:
    if row.state == "damaged":
        return (name_of(row), "", row.state, "", "", "", "", "")
    epoch = row.epoch
    loss = epoch.train_loss if epoch is not None else row.loss
    return (
        name_of(row),
        _subject(row),
        _state(row, read_s),
        f"{row.step:,}",
        _number(loss),
        _number(epoch.validation_loss if epoch else None),
        format_percent(epoch.validation_accuracy)
        if epoch and not math.isnan(epoch.validation_accuracy)
        else "",
        row.note,
    )


def _number(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else format_number(value)


def tips(row: RunRow, read_s: float) -> tuple[str, ...]:
    about = [row.folder]
    if row.origin:
        about.append(f"It went on from {row.origin}.")
    if row.no_script:
        about.append(f"It has no train.py. {row.no_script}")
    if row.ended_s:
        about.append(f"It took {format_duration(row.ended_s - row.began_s)}.")
    why = " ".join(filter(None, (row.error, row.problem, writer_words(row, read_s))))
    return ("\n".join(about), row.title, why or row.state)


def writer_words(row: RunRow, read_s: float) -> str:
    """Which other process writes the run, and when it last did; empty if none does."""
    if not row.elsewhere:
        return ""
    if row.state == "silent":
        return (
            f"{_sentence(row.elsewhere)} has given no sign for {_time_since(row.sign_s, read_s)}."
            " If it has ended, Resume goes on here."
        )
    if not row.told_s:
        return f"{_sentence(row.elsewhere)} trains it; no figures yet."
    return (
        f"{_sentence(row.elsewhere)} trains it; last figure {_time_since(row.told_s, read_s)} ago."
    )


def _subject(row: RunRow) -> str:
    if row.state == "event files":
        return ""
    return row.title if row.trial is None else row.trial.values


def sweep_words(rows: Sequence[RunRow]) -> str:
    """The head over the trials of a sweep."""
    trials = [row.trial for row in rows if row.trial is not None]
    began = datetime.fromtimestamp(min(row.began_s for row in rows))
    count = f"{len(trials):,} trial{'' if len(trials) == 1 else 's'}"
    words = f"Sweep of {began:%d %b %H:%M:%S}, {count}"
    best = next((trial for trial in trials if trial.state == "best"), None)
    if best is None:
        return words
    value = format_percent(best.value) if "accuracy" in best.figure else _number(best.value)
    return f"{words}; best: trial {best.number}, {best.figure} {value} ({best.values})"


def _state(row: RunRow, read_s: float) -> str:
    if row.trial is not None and row.trial.state:
        return row.trial.state
    if row.state == "silent":
        return f"no sign for {_time_since(row.sign_s, read_s)}"
    if row.elsewhere and row.told_s:
        return f"elsewhere, {_time_since(row.told_s, read_s)} ago"
    return "elsewhere" if row.elsewhere else row.state


def _time_since(then_s: float, now_s: float) -> str:
    seconds = max(0, round(now_s - then_s))
    if not then_s:
        return "a long time"
    return f"{seconds} s" if seconds < 60 else f"{seconds // 60:,} min"


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]
