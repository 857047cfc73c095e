"""The optimizer of a run with all that goes with its steps: clipping, autocast, the schedule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import utils

from ...project.document import ADJUSTABLE, TrainingSetup, replace
from ...protocol import GROUP_RATE
from ...system.errors import LabError
from ..checkpoints.checkpoint_fields import Checkpoint, FieldProblem
from ..components.optimizers import make_grouped, update_together
from ..execution.forward import Forward
from .autocast import Autocast
from .groups import Groups
from .optimizer_state import check_optimizer_state
from .rates import Rates


class Optimization:
    """Optimizer, `rates` and `autocast` of a set-up over the parameters of a model that learn, and
    `forward`, the context in which it is called.

    `steps` is the number of optimizer steps of the run, None if it is not known. Raises LabError if
    the set-up cannot be trained with.
    """

    def __init__(
        self,
        setup: TrainingSetup,
        model: nn.Module,
        device: torch.device,
        steps: int | None,
    ) -> None:
        self.setup, self._device = setup, device
        self.groups = Groups(model)
        self.parameters = list(self.groups.named.values())
        self.optimizer = self._new_optimizer(setup)
        self.rates = Rates(setup, self.optimizer, steps)
        self.autocast = Autocast(setup.precision, device, self.optimizer)
        self.forward = Forward(setup, model, self.autocast if self.autocast.is_on else None)

    @property
    def learning_rate(self) -> float:
        return float(self.optimizer.param_groups[0]["lr"])

    def all_rates(self) -> tuple[float, dict[str, float]]:
        """The learning rate of the first group, and those of other modules with options of their
        own, as named figures."""
        groups, others = self.optimizer.param_groups, {}
        if len(groups) > 1:
            first, *names = self.groups.modules(self.setup)
            for name, group in zip(names, groups[1:], strict=True):
                if name != first:
                    others[f"{GROUP_RATE}{name}"] = float(group["lr"])
        return self.learning_rate, others

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
        self.rates.after_step()

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
        if value and gradients:  # an order may have step first
            utils.clip_grad_value_(self.parameters, value)
        return [before]

    def gradients(self) -> list[Tensor]:
        """The gradients of the parameters that have one; the values of a sparse gradient."""
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        if any(gradient.is_sparse for gradient in gradients):
            gradients = [g.coalesce().values() if g.is_sparse else g for g in gradients]
        return gradients

    # -- other settings on the way ---------------------------------------------------------------

    def adjust(self, setup: TrainingSetup) -> None:
        """Take over the ADJUSTABLE fields of a set-up; the optimizer's state stays. Raises
        LabError, and changes nothing, if they are invalid, or need a state that this optimizer
        does not have."""
        setup = replace(self.setup, **{name: getattr(setup, name) for name in ADJUSTABLE})
        made = self._new_optimizer(setup)
        state = self.optimizer.state_dict()["state"]
        try:
            self._check_state(state, setup)
        except FieldProblem as problem:
            raise LabError(
                f"The run's optimizer cannot change this between two steps. {problem}.",
                hint="The next run will use it.",
            ) from problem
        self._regroup(self._new_optimizer(self.setup).param_groups, made.param_groups)
        self.setup = setup

    def become(self, setup: TrainingSetup, steps: int | None, epoch: int) -> None:
        """Go on in an epoch with another set-up. An optimizer of the same class keeps its state.
        Raises LabError as `adjust` and the constructor do."""
        same = setup.optimizer == self.setup.optimizer
        if same:
            self.adjust(setup)
        if not same or setup.schedule != self.setup.schedule:
            optimizer = self._new_optimizer(setup)
            if same:
                optimizer.state = self.optimizer.state
            before, self.rates = self.rates, Rates(setup, optimizer, steps)
            self.rates.go_on_in(epoch, before if same else None)
            self.optimizer = self.autocast.optimizer = optimizer
        self.setup = setup

    def _new_optimizer(self, setup: TrainingSetup) -> torch.optim.Optimizer:
        """An unused optimizer of a set-up."""
        made = make_grouped(setup.optimizer, setup.optimizer_params, self.groups.of(setup))
        if self._device.type == "cpu":
            update_together(made)
        return made

    def _check_state(self, state: Mapping[int, Mapping[str, Any]], setup: TrainingSetup) -> None:
        """Raise FieldProblem unless the state, in the order of the live groups, is one that the
        optimizer of a set-up can go on from."""
        order = [p for group in self.optimizer.param_groups for p in group["params"]]
        make = partial(make_grouped, setup.optimizer, setup.optimizer_params)
        check_optimizer_state(state, order, self.groups.of(setup), make)

    def _regroup(self, then: list[dict[str, Any]], now: list[dict[str, Any]]) -> None:
        """Give the optimizer other groups, and the options that differ. `then` and `now` are
        `param_groups` before any step. A rate that a scheduler has changed keeps its share of the
        rate it began with."""
        live = self.optimizer.param_groups
        place = {id(p): i for i, group in enumerate(live) for p in group["params"]}
        sources = [place[id(group["params"][0])] for group in now]
        changed = []
        for source, new in zip(sources, now, strict=True):
            old, group = then[source], dict(live[source])
            differing = {n: v for n, v in new.items() if n != "params" and v != old[n]}
            share = group["lr"] / old["lr"] if self.rates.change and old["lr"] else 1.0
            group.update(differing, params=new["params"])
            if "lr" in differing and self.rates.change:
                group.update(lr=new["lr"] * share, initial_lr=new["lr"])
            changed.append(group)
        self.optimizer.param_groups[:] = changed
        self.rates.regroup(sources)

    # -- checkpoints -----------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """The fields of a Checkpoint that are of steps; they share memory with the optimizer."""
        return {
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.rates.state(),
            "scaler": self.autocast.state(),
        }

    def restore(self, saved: Checkpoint, steps: int | None) -> None:
        """Go on from a checkpoint with the options of this set-up. Raises LabError if it does not
        fit."""
        setup = self.setup
        self.adjust(saved.setup)  # the state is in the order of its groups
        try:
            self._check_state(saved.optimizer["state"], setup)
            self.rates.restore(saved.scheduler, saved.optimizer.get("param_groups"))
            self.autocast.restore(saved.scaler)
        except FieldProblem as problem:
            raise LabError(
                f"The checkpoint does not fit the optimizer. {problem}.",
                hint="Set the optimizer's options back to go on from it, or train again.",
            ) from problem
        self.rates.check_length(steps)
        self.rates.go_on_in(saved.epoch)
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": saved.optimizer["state"], "param_groups": groups})
        self.adjust(setup)
