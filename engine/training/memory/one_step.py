"""One step of a set-up, with the memory of each of its operations."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

from ...project.document import TrainingSetup
from ...project.step_order import split_order
from ...system.errors import LabError
from ...system.private_torch import tree_map_only
from ..checks.untouched import untouched
from ..components.devices import find_device
from ..objectives.batches import moved, samples_in, tensors_in
from ..objectives.objective import Objective
from ..optimization.optimization import Optimization
from ..optimization.training_step import TrainingStep
from .tracking import Phase, Tracker


class OneStep:
    """The second of two steps on the first batches: the optimizer has its state by then. On CUDA a
    third one pictures the allocator at the operation where the second had its peak. The model has
    its own storages, gradients and modes afterwards, bit for bit.

    Raises LabError for what cannot be trained, and what the user's code raises.
    """

    def __init__(self, model: nn.Module, objective: Objective, setup: TrainingSetup) -> None:
        if setup.compile:
            raise LabError(
                "A compiled model runs as one program: its operations cannot be told apart.",
                hint="Turn compile off under More to see the memory of each operation.",
            )
        device = find_device(setup.device)
        objective.to(device)
        chosen = islice(objective.batches(0, 0), setup.accumulate)
        batches = [tree_map_only(Tensor, _alone, moved(batch, device)) for batch in chosen]
        if not batches:
            raise LabError("The data has no batch.", hint="Give data with samples.")
        self.samples = sum(map(samples_in, batches))
        home = next((p.device for p in model.parameters()), torch.device("cpu"))
        with untouched(model), objective.metrics.aside():
            model.to(device)
            optimization = Optimization(setup, model, device, None)
            optimization.groups.freeze(setup)
            try:
                for _ in TrainingStep(1, batches, setup, objective, optimization, False).phases():
                    pass
                again = (model, batches, setup, objective, optimization)
                self.tracker = _tracked(*again)
                self.pictured = _tracked(*again, self.peak) if device.type == "cuda" else None
            finally:
                optimization.groups.thaw()
                model.to(home)

    @property
    def peak(self) -> int:
        """The number of the operation after which most bytes live."""
        whole = [sum(each) for each in zip(*self.tracker.bytes_by_kind().values(), strict=True)]
        return max(range(len(whole)), key=lambda number: whole[number])


def _alone(tensor: Tensor) -> Tensor:
    """The tensor, or a copy of it if its storage has more than it: batches may be picked several at
    a time, and those of later steps are not held for this one."""
    is_part = tensor.layout is torch.strided and tensor.untyped_storage().nbytes() > tensor.nbytes
    return tensor.clone() if is_part else tensor


def _tracked(
    model: nn.Module,
    batches: list[Any],
    setup: TrainingSetup,
    objective: Objective,
    optimization: Optimization,
    picture_at: int = -1,
) -> Tracker:
    device = next(model.parameters()).device
    tracker = Tracker(model, device, picture_at=picture_at)
    tracker.know(model.named_parameters(), "parameters")
    tracker.know(model.named_buffers(), "parameters")
    tracker.know(_gradients(model), "gradients")
    tracker.know(_state(model, optimization.optimizer), "optimizer")
    tracker.know((("batch", tensor) for tensor in tensors_in(batches)), "data")
    step = TrainingStep(2, batches, setup, objective, optimization, False)
    labels = _labels(setup, len(batches))
    tracker.phase = next(labels)
    with tracker.following():
        for _ in step.phases():
            tracker.know(_gradients(model), "gradients")
            tracker.phase = next(labels)
    tracker.know(_gradients(model), "gradients")
    tracker.know(_state(model, optimization.optimizer), "optimizer")
    return tracker


def _labels(setup: TrainingSetup, batches: int) -> Iterator[Phase]:
    """The phases of a step in turn; LBFGS runs all of them in one."""
    if setup.optimizer == "optim.LBFGS":
        yield "step"
        return
    before, of_batch, after = split_order(setup.order)
    yield from (*before, *(tuple(of_batch) * batches), *after)


def _gradients(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            yield f"{name}.grad", parameter.grad


def _state(model: nn.Module, optimizer: torch.optim.Optimizer) -> Iterator[tuple[str, Tensor]]:
    names: dict[Tensor, str] = {p: name for name, p in model.named_parameters()}
    for parameter, slots in optimizer.state.items():
        for slot, value in slots.items():
            for tensor in tensors_in(value):
                yield f"{slot} of {names.get(parameter, 'a parameter')}", tensor
