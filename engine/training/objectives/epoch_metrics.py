"""Metrics that a step returns as objects: updated in each batch, computed over a whole epoch.

Any object with `update`, `compute` and `reset` is one; torchmetrics has many.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ...system.errors import LabError

_METHODS = ("update", "compute", "reset")
_UPDATES = "_update_count"
"""torchmetrics counts here how often a metric was updated."""


class MetricStates(NamedTuple):
    """By the figure's name, the place of each metric that a step has returned among the metrics
    found; and for each metric found its tensors, lists of tensors and numbers, by attribute."""

    names: dict[str, int]
    values: list[dict[str, Any]]


def is_metric(value: object) -> bool:
    return _has_methods(type(value))


@lru_cache(maxsize=64)  # each figure of each step is asked
def _has_methods(kind: type) -> bool:
    return all(callable(getattr(kind, name, None)) for name in _METHODS)


class EpochMetrics:
    """The metrics among the values that a step can reach. `begin` resets them, `figures` computes
    those that the step has returned since."""

    def __init__(self, reached: Iterable[object] = ()) -> None:
        found = {id(value): value for value in reached if is_metric(value)}
        self._found: list[Any] = list(found.values())
        self._names: dict[str, int] = {}
        self._aside: MetricStates | None = None

    @property
    def has_any(self) -> bool:
        """Whether the step can reach a metric."""
        return bool(self._found)

    def to(self, device: torch.device) -> None:
        for metric in self._found:
            if isinstance(metric, nn.Module):
                metric.to(device)

    def begin(self) -> None:
        """An epoch, or a pass over the validation data, begins."""
        for metric in self._found:
            metric.reset()
        self._names = {}

    def take(self, result: object) -> None:
        """Note the metrics that a step has returned. Raises LabError for one that was made in the
        step."""
        figures = result if isinstance(result, Mapping) else {}
        for name, metric in figures.items():
            if not is_metric(metric):
                continue
            place = next((n for n, known in enumerate(self._found) if known is metric), None)
            if place is None:
                raise LabError(
                    f"The metric “{name}” was not found among the names that the step reads, so it"
                    " cannot be reset at the beginning of an epoch.",
                    hint="Make it outside the step, under a name of its own.",
                )
            self._names[str(name)] = place

    def figures(self) -> dict[str, float]:
        """The values of the metrics; those of a collection by its own names. Raises LabError for
        a metric that has no value, or more than one number."""
        found: dict[str, float] = {}
        for name, place in self._names.items():
            try:
                value = self._found[place].compute()
            except Exception as error:  # the user's code may raise anything
                raise LabError(
                    f"The metric “{name}” has no value: {type(error).__name__}: {error}",
                    hint="Its update is called in each step, with what it takes?",
                ) from error
            several = value if isinstance(value, Mapping) else {name: value}
            found.update((str(key), _number(str(key), each)) for key, each in several.items())
        return found

    @contextmanager
    def aside(self) -> Iterator[None]:
        """In this context other batches can be counted; the states of before come back after it,
        and are the ones that `states` tells."""
        before, outer = self.states(), self._aside
        now = before if outer is None else self._metric_states()
        self._aside = before
        try:
            yield
        finally:
            self._aside = outer
            self.restore(now)

    def states(self) -> MetricStates:
        """A copy of what `restore` takes."""
        return self._metric_states() if self._aside is None else self._aside

    def restore(self, states: MetricStates) -> None:
        """Go on from these states. Raises LabError if they are those of other metrics."""
        parts = [part for metric in self._found for part in _parts(metric)]
        for metric in self._found:
            metric.reset()
        if (
            len(parts) != len(states.values)
            or any(place >= len(self._found) for place in states.names.values())
            or any(
                not values.keys() <= vars(part).keys()
                for part, values in zip(parts, states.values, strict=True)
            )
        ):
            raise LabError(
                "The step has other metrics than before.",
                hint="Go on with the step as it was, or train again.",
            )
        self._names = dict(states.names)
        for part, values in zip(parts, states.values, strict=True):
            for name, value in values.items():
                setattr(part, name, _copied(value))

    def _metric_states(self) -> MetricStates:
        parts = [part for metric in self._found for part in _parts(metric)]
        values = [
            {name: _copied(getattr(part, name)) for name in _attributes(part)} for part in parts
        ]
        return MetricStates(dict(self._names), values)


def _parts(metric: Any) -> list[Any]:
    """The metric; of a collection those in it."""
    if not isinstance(metric, nn.Module):
        return [metric]
    return [part for part in metric.modules() if _UPDATES in vars(part)] or [metric]


def _attributes(part: Any) -> list[str]:
    """The names of what a metric counts in."""
    if _UPDATES in vars(part):
        return [*part.metric_state, _UPDATES]
    return [name for name, value in vars(part).items() if _is_state(value)]


def _is_state(value: object) -> bool:
    if isinstance(value, list):
        return all(isinstance(each, Tensor) for each in value)
    return isinstance(value, Tensor | int | float)


def _copied(value: Any) -> Any:
    if isinstance(value, list):
        return [each.detach().clone() for each in value]
    return value.detach().clone() if isinstance(value, Tensor) else value


def _number(name: str, value: object) -> float:
    if isinstance(value, Tensor) and value.numel() == 1:
        return float(value.detach())
    if isinstance(value, int | float):
        return float(value)
    shown = str(tuple(value.shape)) if isinstance(value, Tensor) else type(value).__name__
    raise LabError(
        f"The metric “{name}” gives {shown}; a figure is one number.",
        hint='Reduce it: torchmetrics has average="macro" for this.',
    )
