"""States of a run in memory, so that it can go back to any of its steps."""

from __future__ import annotations

from typing import Any

import msgspec
from torch import Tensor

from ..figures.metrics import spread, thin
from .checkpoint_fields import Checkpoint

MAX_STATES = 32
MAX_BYTES = 512 * 2**20
MAX_ROWS, MAX_EPOCHS = 1000, 250
"""The most rows of steps and epochs in a kept state. With those of a whole run, 32 states would
take 50 MB."""


class KeptStates:
    """The first state of a run and later ones, in the order of their steps.

    There are at most `limit`, of MAX_BYTES together: beyond that one goes whose neighbours are
    closest, but not the first and the last. A state of more than half of MAX_BYTES is not kept.
    """

    def __init__(self, limit: int = MAX_STATES) -> None:
        self._limit = limit
        self._states: list[Checkpoint] = []

    @property
    def steps(self) -> list[int]:
        return [state.step for state in self._states]

    def add(self, state: Checkpoint) -> bool:
        """Keep a copy of a state, on the CPU; False if it is too large. One of the same step is
        replaced, later ones go."""
        size = size_of(state)
        self._states = [kept for kept in self._states if kept.step < state.step]
        if 2 * size > MAX_BYTES:  # before it is copied
            return False
        copied = ("model", "optimizer", "rng", "gradients", "averaged")
        copies = {name: _copied(getattr(state, name)) for name in copied}
        copy = msgspec.structs.replace(
            state,
            **copies,
            epoch_rng=_copied(state.epoch_rng),
            history=tuple(thin(list(state.history), MAX_ROWS)),
            epoch_rows=tuple(spread(list(state.epoch_rows), MAX_EPOCHS)),
        )
        self._states.append(copy)
        while len(self._states) > max(2, min(self._limit, MAX_BYTES // max(1, size))):
            steps = self.steps
            _, closest = min((steps[i + 1] - steps[i - 1], i) for i in range(1, len(steps) - 1))
            del self._states[closest]
        return True

    def newest(self, step: int) -> Checkpoint | None:
        """The newest state at a step or before it; None if there is none."""
        before = [state for state in self._states if state.step <= step]
        return before[-1] if before else None

    def newest_finite(self, step: int) -> Checkpoint | None:
        """As `newest`, of those whose model has no number that is NaN or infinite."""
        for state in reversed(self._states):
            if state.step <= step and all(map(_is_finite, state.model.values())):
                return state
        return None

    def until(self, step: int) -> KeptStates:
        """The states at a step or before it."""
        found = KeptStates(self._limit)
        found._states = [state for state in self._states if state.step <= step]
        return found


def size_of(state: Checkpoint) -> int:
    """The bytes of its tensors."""
    best = {} if state.best is None else state.best.weights
    parts = [state.model, state.optimizer, state.gradients, state.averaged, best]
    return _bytes([*parts, state.metrics.values])


def _is_finite(tensor: Tensor) -> bool:
    return not tensor.is_floating_point() or bool(tensor.isfinite().all())


def _copied(value: Any) -> Any:
    """A copy of nested dicts and lists, with its tensors on the CPU."""
    if isinstance(value, Tensor):
        return value.detach().to("cpu", copy=True)
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value


def _bytes(value: Any) -> int:
    if isinstance(value, Tensor):
        return value.nbytes
    if isinstance(value, dict):
        value = list(value.values())
    return sum(map(_bytes, value)) if isinstance(value, list) else 0
