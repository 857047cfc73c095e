"""What the next step of a run needs stays, whatever is done between two steps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor, nn

from ..project.steps.order import keeps_gradients
from .loop import TrainingLoop


@contextmanager
def kept_between_steps(loop: TrainingLoop) -> Iterator[None]:
    """Random numbers that are drawn in this context, and gradients that change, do not change the
    run."""
    gradients = _gradients_in_use(loop)
    with loop.random.suspended(), loop.determinism.suspended(), loop.objective.metrics.aside():
        yield
    for parameter, gradient in gradients:
        parameter.grad = gradient


def _gradients_in_use(loop: TrainingLoop) -> list[tuple[nn.Parameter, Tensor | None]]:
    """Copies of the gradients that the rest of this step, or the next one, uses."""
    if not (loop.is_in_step or keeps_gradients(loop.setup.order)):
        return []
    return [(p, None if p.grad is None else p.grad.clone()) for p in loop.parameters]


def weight_versions(loop: TrainingLoop) -> list[int]:
    """Equal before and after, unless parameters or buffers were written to."""
    return [tensor._version for tensor in loop.model.state_dict().values()]
