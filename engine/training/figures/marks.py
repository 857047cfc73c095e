"""Marks on a run's plots, for changes of its set-up while it went on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...project.document import ParamGroup, ParamValue, TrainingSetup
from ...project.updates import options_of
from ...protocol import RunMark

MAX_MARKS = 100
"""The most marks that are kept: the newest ones."""


class Marks:
    """The marks of a run, in the order of their steps."""

    def __init__(self) -> None:
        self.all: tuple[RunMark, ...] = ()
        self._before: tuple[int, TrainingSetup] | None = None

    def add(self, step: int, text: str) -> None:
        self.all = (*self.all, RunMark(step, text))[-MAX_MARKS:]

    def add_change(self, step: int, then: TrainingSetup, now: TrainingSetup) -> None:
        """Mark another set-up. Several at one step have one mark, from the first to the last."""
        if self._before is not None and self._before[0] == step:
            then = self._before[1]
            self.all = self.all[:-1]
        text = change_words(then, now)
        self._before = (step, then) if text else None
        if text:
            self.add(step, text)

    def restore(self, marks: tuple[RunMark, ...]) -> None:
        self.all, self._before = marks, None


def change_words(then: TrainingSetup, now: TrainingSetup) -> str:
    """The differences of two set-ups of a run: "lr 0.001 → 0.01, linear1 frozen"."""
    return ", ".join(_changes(then, now))


def _changes(then: TrainingSetup, now: TrainingSetup) -> Iterator[str]:
    if then.optimizer != now.optimizer:
        yield " → ".join(each.optimizer.removeprefix("optim.") for each in (then, now))
    before, after = (options_of(each.optimizer, each.optimizer_params) for each in (then, now))
    shared = {name: before[name] for name in before if name in after}
    yield from _options(shared, {name: after[name] for name in shared})
    groups = ({group.module: group for group in each.groups} for each in (then, now))
    old, new = groups
    for module in {**old, **new}:
        one, other = (of.get(module, ParamGroup(module)) for of in (old, new))
        if one.frozen != other.frozen:
            yield f"{module} {'frozen' if other.frozen else 'learns again'}"
        names = {**one.params, **other.params}
        left, right = ({n: g.params.get(n, after.get(n)) for n in names} for g in (one, other))
        yield from (f"{module}: {words}" for words in _options(left, right))
    if then.decay != now.decay:
        yield "weight decay of all" if now.decay == "all" else "no decay of biases and norms"
    for name in ("clip_norm", "clip_value"):
        yield from _options({name: getattr(then, name)}, {name: getattr(now, name)})
    names = ("figure", "patience", "min_delta")
    before, after = ({n: getattr(s.stopping, n) for n in names} for s in (then, now))
    yield from _options(before, after)
    if then.schedule != now.schedule:
        yield now.schedule.kind.partition(".")[2] or "constant rate"
    if then.loss != now.loss:
        yield now.loss.removeprefix("nn.")
    if then.epochs != now.epochs:
        yield f"epochs {then.epochs} → {now.epochs}"


def _options(then: Mapping[str, ParamValue], now: Mapping[str, ParamValue]) -> Iterator[str]:
    for name, value in now.items():
        if value != then[name]:
            yield f"{name} {_shown(then[name])} → {_shown(value)}"


def _shown(value: ParamValue) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
