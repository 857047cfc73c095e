"""Steps for the usual tasks, written as Python for a model and its first batch."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ...restoring.module_kept import module_kept
from ...restoring.random_states import torch_states_kept
from ...system.errors import LabError
from ...system.signatures import required_parameters
from .batch_parts import Input, Parts, ways
from .compared_steps import compared
from .usual_tasks import task_of

_WRITE = "Write the step yourself: def step(batch): ... return loss."

_R2 = """

class R2:
    # The share of the variance of y that is explained, over a whole epoch
    sums = 0

    def reset(self):
        self.sums = 0

    def update(self, prediction, y):
        y, error = y.cpu().double(), (prediction - y).cpu().double()
        self.sums = self.sums + torch.stack([torch.ones_like(y), y, y**2, error**2]).sum(1)

    def compute(self):
        count, total, squares, errors = self.sums
        spread = squares - total**2 / count
        return torch.where(spread > 0, 1 - errors / spread, errors == 0).mean()


r2 = R2()
"""


@dataclass(frozen=True)
class UsualStep:
    """`task` is its name ("classification"), `source` the Python of `def step(batch)`."""

    task: str
    source: str


def write_step(model: nn.Module, batch: Any) -> UsualStep:
    """The step of the task that the batch and the model's prediction on it fit.

    The model runs in eval mode, once if it takes the batch in the usual way, and is left as it was.
    Raises LabError if no usual task fits, or the model cannot take the batch.
    """
    if _is_triplet(batch) and isinstance(_alone(model, batch[0]), Tensor):
        lines = [
            "anchor, positive, negative = batch",
            "loss = F.triplet_margin_loss(model(anchor), model(positive), model(negative))",
            'return {"loss": loss}',
        ]
        return UsualStep("triplets", step_source(lines))
    if _takes(model) == 1:
        found = compared(batch, lambda x: _alone(model, x))
        if found is not None:
            return UsualStep(found[0], step_source(found[1]))
    parts, prediction = called(model, batch)
    fitting = task_of(prediction, parts)
    if fitting is None:
        raise LabError(
            f"No usual task fits: the batch is {described(batch)}, the prediction is"
            f" {described(prediction)}.",
            hint=_WRITE,
        )
    main, (task, lines) = fitting
    call = f"prediction = model({parts.call}){main}"
    is_named = any(re.search(r"\by\b", line) for line in (call, *lines))
    source = step_source([parts.line, parts.target_line if is_named else "", call, *lines])
    return UsualStep(task, source + (_R2 if "r2." in source else ""))


def called(model: nn.Module, batch: Any) -> tuple[Parts, Any]:
    """The first way to call the model on the batch that works, and its prediction. Raises LabError
    if none does."""
    parts, prediction = _working(model, batch)
    if isinstance(prediction, Exception):
        raise LabError(
            f"`model({parts.call})` raised {type(prediction).__name__}: {prediction}. The batch is"
            f" {described(batch)}.",
            hint=_WRITE,
        ) from prediction
    return parts, prediction


def usual_call(model: nn.Module, batch: Any) -> Callable[[], object]:
    """Runs the model on the batch as the usual steps do; a triplet one by one. Where there are
    several ways to call the model, they are tried first."""
    if _is_triplet(batch) and _takes(model) == 1:
        return lambda: [model(part) for part in batch]
    possible = [parts for way in ways(batch, model) for parts in way.variants(model)]
    parts = possible[0] if len(possible) == 1 else _working(model, batch)[0]
    return lambda: parts.run(model)


def _alone(model: nn.Module, x: Any) -> Any:
    """The prediction on one input, or the exception that the model raised."""
    return _predicted(model, Parts("", (Input("x", x),)))


def described(value: Any) -> str:
    """`(float32 (8, 3), int64 (8,))`: the value with the dtype and shape of its tensors."""
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {described(item)}" for key, item in value.items()) + "}"
    if isinstance(value, tuple | list):
        return f"({', '.join(described(item) for item in value)})"
    return type(value).__name__


def step_source(lines: list[str]) -> str:
    """The Python of a step with these lines."""
    return "def step(batch):\n" + "".join(f"    {line}\n" for line in lines if line)


def _is_triplet(batch: Any) -> bool:
    return (
        isinstance(batch, tuple | list)
        and len(batch) == 3
        and all(isinstance(part, Tensor) and part.is_floating_point() for part in batch)
        and batch[0].ndim > 1
        and batch[0].shape == batch[1].shape == batch[2].shape
    )


def _takes(model: nn.Module) -> int:
    """How many arguments the model needs."""
    signature = getattr(model, "__signature__", None)  # that of a function
    return len(required_parameters(model.forward if signature is None else model))


def _working(model: nn.Module, batch: Any) -> tuple[Parts, Any]:
    """The first way to call the model that works, and its prediction; if none does, the first way
    and the exception that it raised."""
    tried: list[tuple[Parts, Any]] = []
    for way in ways(batch, model):
        for parts in way.variants(model):
            tried.append((parts, _predicted(model, parts)))
            if not isinstance(tried[-1][1], Exception):
                return tried[-1]
    return tried[0]


def _predicted(model: nn.Module, parts: Parts) -> Any:
    """The model's prediction with its graph, or the exception that it raised."""
    with module_kept(model, training=False), torch.enable_grad(), torch_states_kept():
        try:
            return parts.run(model)
        except Exception as error:  # told by the caller
            return error
