"""The lines of a loop of the user's own code in its plots: one for each optimizer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from engine.protocol import LOSS_PART, LoopLine, LoopSnapshot
from widgets.training.plots.series import BadSteps, Series

BY_OPTIMIZER = ("loss", "gradient_norm", "learning_rate")
"""The plots, and the columns, that have a line for each optimizer."""
MAX_ADDED = 3
"""The most losses whose names are written as a sum."""


def key_of(column: str, line: int, loop: LoopSnapshot) -> str:
    """The key of the series of a column that has the steps of this line."""
    return f"{column} of {loop.lines[line].optimizer}" if line else column


def series_of(plot: str, own: Series, loop: LoopSnapshot) -> Iterator[Series]:
    """The series of a plot of BY_OPTIMIZER, whose own one is named by the user's variables, too."""
    titles = loss_titles(loop.lines)
    for line, about in enumerate(loop.lines):
        title, tip = own.title, own.tip
        if plot == "loss":
            title = titles[line] or own.title
            tip = f"{title}: {_meaning(about)}"
        elif len(loop.lines) > 1:
            title, tip = about.optimizer, f"{about.optimizer}: {own.tip}"
        yield Series(key_of(plot, line, loop), title, own.color + line, tip=tip)


def part_series(key: str, color: int) -> Series:
    """The series of one of several losses of a step."""
    name = key.removeprefix(LOSS_PART)
    return Series(key, name, color, tip=f"{name}: one of the losses of a step")


def points_of(column: str, line: int, loop: LoopSnapshot) -> tuple[list[int], list[float]]:
    """The steps of a line, and its numbers there, as far as they are known."""
    points = [
        (step, value)
        for step, value in zip(loop.steps.step, getattr(loop.steps, column), strict=True)
        if loop.line_of_step.get(step, 0) == line and value is not None
    ]
    return [step for step, _ in points], [value for _, value in points]


def bad_of(line: LoopLine) -> BadSteps | None:
    """Where the losses of a line were NaN or infinite; None if they never were."""
    if not line.bad_steps:
        return None
    is_least = line.bad_from < line.first_bad
    return BadSteps(line.first_bad, line.bad_from, line.bad_steps, is_least, line.bad_since or None)


def loss_titles(lines: tuple[LoopLine, ...]) -> list[str]:
    """What is drawn as the loss of each optimizer, by the user's names; "" where there is none."""
    names = [_losses(line) for line in lines]
    often = Counter(names)
    return [
        f"{name or 'loss'} ({line.optimizer})" if often[name] > 1 or (len(lines) > 1 and not name)
        else name
        for name, line in zip(names, lines, strict=True)
    ]  # fmt: skip


def _losses(line: LoopLine) -> str:
    if len(line.losses) == 1:
        return f"sum of {line.losses[0]}" if line.is_sum else line.losses[0]
    if len(line.losses) > MAX_ADDED and line.is_sum:
        return f"sum of {len(line.losses)} losses"
    return (" + " if line.is_sum else " or ").join(line.losses[:MAX_ADDED])


def _meaning(line: LoopLine) -> str:
    what = "the sum of all losses on which backward was called in a step of" if line.is_sum else (
        "the loss of a step of"
    )  # fmt: skip
    return f"{what} {line.optimizer}"
