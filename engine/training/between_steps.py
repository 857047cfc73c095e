"""Other work between two steps of a run: what the next step needs is put back after it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor, nn

from ..project.step_order import keeps_gradients
from .loop import TrainingLoop


@contextmanager
def kept_between_steps(loop: TrainingLoop) -> Iterator[None]:
    """In this context the engine may draw random numbers and change gradients: the run's own are
    restored after it."""
    gradients = _gradients_in_use(loop)
    with loop.random.suspended(), loop.determinism.suspended(), loop.objective.metrics.aside():
        yield
    for parameter, gradient in gradients:
        parameter.grad = gradient


def _gradients_in_use(loop: TrainingLoop) -> list[tuple[nn.Parameter, Tensor | None]]:
    """Each parameter with a copy of its gradient, if the rest of this step, or the next step, uses
    it."""
    if not (loop.is_in_step or keeps_gradients(loop.setup.order)):
        return []
    return [(p, None if p.grad is None else p.grad.clone()) for p in loop.parameters]


def weight_versions(loop: TrainingLoop) -> list[int]:
    """The version counter of each parameter and buffer. Two lists differ if one of these tensors
    was written to in between."""
    return [tensor._version for tensor in loop.model.state_dict().values()]
