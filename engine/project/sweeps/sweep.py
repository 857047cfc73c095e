"""A sweep: settings to vary, as they are written.

A setting is named by its path: `optimizer_params.lr` and `batch_size` are of the training set-up,
`blocks.fc1.out_features` is a parameter of a block; `learning_rate` is short for the first.

Not here: how the values of a trial go into a project (`trials.py`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from msgspec import Struct

from ..document import ParamValue

Value = None | bool | int | float | str

MAX_VALUES = 100
RATE = "optimizer_params.lr"
_SHORT = {"learning_rate": RATE, "lr": RATE}
_RANGE = re.compile(r"\s*(\S+?)\s*\.\.\s*([^\s:]+)\s*(?::\s*(log))?\s*")
_WORDS: dict[str, Value] = {"true": True, "false": False, "none": None}
_TRY = "Write a range (1e-4..1e-1:log, 16..128) or a list (16,32,64)."


class SweepProblem(ValueError):
    """A sweep cannot be as it is written; the message says why, and what to write."""


class Choice(Struct, frozen=True):
    """A setting of a sweep, and what it may be: one of `values`, or if there are none a number from
    `low` to `high`, with `log` spread evenly in its logarithm."""

    name: str
    values: tuple[Value, ...] = ()
    low: int | float = 0
    high: int | float = 0
    log: bool = False

    @property
    def is_whole(self) -> bool:
        return isinstance(self.low, int) and isinstance(self.high, int)


class Sweep(Struct, frozen=True):
    """Trials with values drawn by a sampler with `seed`. The best has the lowest `figure` of its
    last epoch, or with `maximise` the highest. With `prune`, a trial ends early whose figure is
    worse than the median of those before at the same epoch."""

    choices: tuple[Choice, ...]
    trials: int = 20
    seed: int = 0
    figure: str = "validation loss"
    maximise: bool = False
    prune: bool = True

    def is_better(self, value: float | None, best: float) -> bool:
        """Whether a figure is better than the best so far, which is NaN without one."""
        if value is None or math.isnan(value):
            return False
        return math.isnan(best) or (value > best if self.maximise else value < best)


def parse_choice(name: str, text: str) -> Choice:
    """The choice that a text stands for. Raises SweepProblem."""
    name = setting_name(name)
    found = _RANGE.fullmatch(text)
    if found is None:
        words = [part.strip() for part in text.split(",") if part.strip()]
        if name == "optimizer":  # "Adam" will do
            words = [word if "." in word else f"optim.{word}" for word in words]
        values = tuple(map(_value, words))
        if not values:
            raise SweepProblem(f"{name}: there is nothing to try. {_TRY}")
        if len(values) > MAX_VALUES:
            raise SweepProblem(f"{name}: a list has at most {MAX_VALUES} values.")
        return Choice(name, tuple(dict.fromkeys(values)))
    low, high = (_number(name, end) for end in found.groups()[:2])
    if low >= high:
        raise SweepProblem(f"{name}: a range goes up, and {low:g}..{high:g} does not. {_TRY}")
    is_log = found[3] is not None
    if is_log and low <= 0:
        raise SweepProblem(f"{name}: a range with :log begins above 0, not at {low:g}.")
    if not (isinstance(low, int) and isinstance(high, int)):
        low, high = float(low), float(high)
    return Choice(name, low=low, high=high, log=is_log)


def setting_name(name: str) -> str:
    name = name.strip().removeprefix("training.")
    return _SHORT.get(name, name)


def _value(text: str) -> Value:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _number(name: str, text: str) -> int | float:
    value = _value(text)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise SweepProblem(f"{name}: “{text}” is not a number. {_TRY}")
    return value


def in_words(values: Mapping[str, ParamValue]) -> str:
    """The values of a trial: "lr 0.0031, batch_size 32"."""
    return ", ".join(f"{_short_name(name)} {_short(value)}" for name, value in values.items())


def _short_name(name: str) -> str:
    return name.removeprefix("optimizer_params.").removeprefix("blocks.")


def _short(value: ParamValue) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value).removeprefix("optim.")
