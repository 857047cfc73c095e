"""The optimizer of a run with all that goes with its steps: clipping, autocast, the schedule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import utils
from torch.optim.lr_scheduler import ReduceLROnPlateau

from ...errors import LabError
from ...project.document import ParamValue, TrainingSetup, replace
from ..checkpoints.checkpoint_fields import Checkpoint, FieldProblem
from ..components.optimizers import make_optimizer
from ..components.schedulers import check_length, make_scheduler
from .autocast import Autocast
from .optimizer_state import check_optimizer_state, restore_scheduler, scheduler_state


class Optimization:
    """Optimizer, scheduler and `autocast` of a set-up over parameters that learn.

    `steps` is the number of optimizer steps of the run, None if it is not known. Raises LabError if
    the set-up cannot be trained with.
    """

    def __init__(
        self,
        setup: TrainingSetup,
        parameters: Sequence[nn.Parameter],
        device: torch.device,
        steps: int | None,
    ) -> None:
        self.setup = setup
        self.parameters = parameters
        self.optimizer = make_optimizer(setup.optimizer, setup.optimizer_params, parameters)
        self.scheduler = make_scheduler(setup, self.optimizer, steps)
        self.autocast = Autocast(setup.precision, device, self.optimizer)

    @property
    def learning_rate(self) -> float:
        return float(self.optimizer.param_groups[0]["lr"])

    # -- a step ----------------------------------------------------------------------------------

    @property
    def asks_itself(self) -> bool:
        """Whether the optimizer asks for the gradients itself, several times a step (LBFGS)."""
        return isinstance(self.optimizer, torch.optim.LBFGS)

    def step(self, closure: Callable[[], Tensor] | None = None) -> None:
        """A step with the gradients that the parameters have. An optimizer that asks for them
        itself calls `closure`, which makes them and returns the loss."""
        if self.asks_itself:
            self.optimizer.step(closure)  # pyright: ignore[reportCallIssue, reportArgumentType]
        else:
            self.autocast.step()
        if self.scheduler is not None and self.setup.schedule.each == "step":
            self.scheduler.step()

    def end_epoch(self, loss: float) -> None:
        """Let a scheduler of epochs step. `loss` is the one to watch."""
        if self.scheduler is None or self.setup.schedule.each == "step":
            return
        if isinstance(self.scheduler, ReduceLROnPlateau):
            self.scheduler.step(loss)
        else:
            self.scheduler.step()

    def clip(self, measured: bool) -> list[Tensor]:
        """Clip the gradients as the set-up says. Returns tensors whose norm is that of the
        gradients before it; none if not `measured`."""
        norm, value = self.setup.clip_norm, self.setup.clip_value
        if not (measured or norm or value):
            return []
        self.autocast.unscale()
        gradients = self.gradients()
        if not (norm or value):
            return gradients
        before = utils.get_total_norm(gradients)
        if norm:
            utils.clip_grads_with_norm_(self.parameters, norm, before)
        if value:
            utils.clip_grad_value_(self.parameters, value)
        return [before]

    def gradients(self) -> list[Tensor]:
        """Those that the parameters have; of a sparse one, its values."""
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        if any(gradient.is_sparse for gradient in gradients):
            gradients = [g.coalesce().values() if g.is_sparse else g for g in gradients]
        return gradients

    # -- other settings on the way ---------------------------------------------------------------

    def adjust(self, optimizer_params: Mapping[str, ParamValue]) -> None:
        """Give the optimizer other parameters; its state stays. Raises LabError, and changes
        nothing, if they are invalid, or need a state that this optimizer does not have."""
        make = partial(make_optimizer, self.setup.optimizer, optimizer_params)
        try:
            check_optimizer_state(self.optimizer.state_dict()["state"], self.parameters, make)
        except FieldProblem as problem:
            raise LabError(
                f"The run's optimizer cannot change this between two steps. {problem}.",
                hint="The next run will use it.",
            ) from problem
        self._change_options(self.setup.optimizer_params, optimizer_params)
        self.setup = replace(self.setup, optimizer_params=dict(optimizer_params))

    def become(self, setup: TrainingSetup, steps: int | None) -> None:
        """Go on with another set-up. An optimizer of the same class keeps its state. Raises
        LabError as `adjust` and the constructor do."""
        same = setup.optimizer == self.setup.optimizer
        if same and setup.schedule == self.setup.schedule:
            self.adjust(setup.optimizer_params)
        else:
            optimizer = make_optimizer(setup.optimizer, setup.optimizer_params, self.parameters)
            if same:
                groups = optimizer.state_dict()["param_groups"]
                state = self.optimizer.state_dict()["state"]
                optimizer.load_state_dict({"state": state, "param_groups": groups})
            self.scheduler = make_scheduler(setup, optimizer, steps)
            self.optimizer = self.autocast.optimizer = optimizer
        self.setup = setup

    def _change_options(
        self, then: Mapping[str, ParamValue], now: Mapping[str, ParamValue]
    ) -> None:
        """Give the optimizer the options that differ. A rate that a scheduler has changed keeps its
        share of the rate it began with."""
        old, new = (
            make_optimizer(self.setup.optimizer, params, self.parameters).param_groups[0]
            for params in (then, now)
        )
        changed = {n: v for n, v in new.items() if n != "params" and v != old[n]}
        (group,) = self.optimizer.param_groups
        share = group["lr"] / old["lr"] if self.scheduler is not None and old["lr"] else 1.0
        group.update(changed)
        if "lr" in changed and self.scheduler is not None:
            group.update(lr=new["lr"] * share, initial_lr=new["lr"])
            if hasattr(self.scheduler, "base_lrs"):
                self.scheduler.base_lrs = [new["lr"]]

    # -- checkpoints -----------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """The fields of a Checkpoint that are of steps; they share memory with the optimizer."""
        return {
            "optimizer": self.optimizer.state_dict(),
            "scheduler": scheduler_state(self.scheduler),
            "scaler": self.autocast.state(),
        }

    def restore(self, saved: Checkpoint, steps: int | None) -> None:
        """Go on from a checkpoint with the options of this set-up. Raises LabError if it does not
        fit."""
        make = partial(make_optimizer, self.setup.optimizer, self.setup.optimizer_params)
        try:
            check_optimizer_state(saved.optimizer["state"], self.parameters, make)
            restore_scheduler(self.scheduler, saved.scheduler, saved.optimizer.get("param_groups"))
            self.autocast.restore(saved.scaler)
        except FieldProblem as problem:
            raise LabError(
                f"The checkpoint does not fit the optimizer. {problem}.",
                hint="Set the optimizer's options back to go on from it, or train again.",
            ) from problem
        if self.scheduler is not None:
            check_length(self.scheduler, self.setup, steps)
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": saved.optimizer["state"], "param_groups": groups})
        self._change_options(saved.setup.optimizer_params, self.setup.optimizer_params)
