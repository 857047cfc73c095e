"""One optimizer step, phase by phase."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from math import isfinite
from time import perf_counter
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor, nn

from ...project.document import TrainingSetup
from ...project.step_order import PHASES, Phase, split_order
from ...protocol import StepNumbers
from ...system.errors import LabError
from ...system.private_torch import foreach_norm, foreach_sub
from ..distributed.ranks import Ranks
from ..figures.metrics import Diverged
from ..looks.looks import StepLook
from ..objectives.batches import tensors_in
from ..objectives.objective import Objective, Outcome, joined
from .optimization import Optimization

T = TypeVar("T")


def check_setup(setup: TrainingSetup) -> None:
    """Raise LabError if a set-up has no step: a size is below 1, or its phases cannot run in the
    order that it asks for."""
    for name in ("batch_size", "epochs", "accumulate"):
        if (value := getattr(setup, name)) < 1:
            raise LabError(f"{name} is {value}; it must be at least 1.")
    if setup.order == PHASES:
        return
    reason = ""
    if setup.optimizer == "optim.LBFGS":
        reason = "LBFGS runs zero_grad, forward, loss and backward itself, several times a step"
    elif setup.precision == "float16":
        reason = "The GradScaler of float16 works on gradients between backward and step"
    if reason:
        raise LabError(
            f"{reason}: its phases cannot be left out or come in another order.",
            hint="Choose the usual order, or another optimizer or precision.",
        )


class Inside(Protocol):
    """Holds a step inside of its phases."""

    def calls(self) -> AbstractContextManager[None]:
        """The context of forward, and of loss."""
        ...

    def backward(self, step: TrainingStep, loss: Tensor) -> None:
        """Do what `loss.backward()` does."""
        ...


class TrainingStep:
    """The step number `number` (from 1), on `batches`: its gradients are the sum over them.

    `phases` runs it. With `measured`, `norms` has the norm of the gradients that the update uses,
    before clipping, if there are any, and `measuring_s` how long that took. With `detailed`, the
    length of the update is measured. A loss that is not finite raises Diverged before it reaches a
    weight, unless `lets_diverge`. `inside` holds it within a phase, where `place` says in words
    where it is. `ranks` are those that train together: they share gradients in
    the backward pass, and figures before the update.
    """

    def __init__(
        self,
        number: int,
        batches: list[Any],
        setup: TrainingSetup,
        objective: Objective,
        optimization: Optimization,
        measured: bool,
        detailed: bool = False,
        lets_diverge: bool = False,
        ranks: Ranks | None = None,
        look: StepLook | None = None,
    ) -> None:
        self._ranks, self._look = ranks, look
        self.number, self.batches, self.setup = number, batches, setup
        self.optimization, self._objective = optimization, objective
        self._measured, self._detailed, self._lets_diverge = measured, detailed, lets_diverge
        self.done: list[Phase] = []
        self.outcomes: list[Outcome] = []
        self._shared: Outcome | None = None
        self.inside: Inside | None = None
        self.place = ""
        self.norms: list[Tensor] = []
        self.measuring_s = 0.0
        self._batch: Any = None
        self._prediction: Any = None
        self._update_norm: float | None = None
        self._loss_read: float | None = None

    @property
    def outcome(self) -> Outcome:
        """What the batches gave: of an optimizer that asks several times, the first time. Of
        several ranks it is what all of them had, once backward is done."""
        if self._shared is not None:
            return self._shared
        return joined(self.outcomes[: len(self.batches)])

    def can_stop(self, by: str) -> bool:
        """Whether it can stop behind its newest phase: by batches, where all phases of one are done
        and those of the next one are to come."""
        if by != "batch":
            return True
        plan, place = _plan(self.setup.order, len(self.batches)), len(self.done)
        if not 0 < place < len(plan):
            return False
        (_, batch), (_, following) = plan[place - 1], plan[place]
        return batch is not None and following not in (None, batch)

    @property
    def loss_read(self) -> float | None:
        """The number of the outcome's loss, if the check of it has read it."""
        return self._loss_read if len(self.outcomes) == 1 and self._shared is None else None

    @property
    def tensors(self) -> dict[str, Any]:
        """The newest batch and what forward has made of it, by the names that scripts have."""
        return {"batch": self._batch, "prediction": self._prediction}

    @property
    def loss(self) -> Tensor:
        """The loss of the newest batch, with its graph."""
        return self.outcomes[-1].loss

    @property
    def has_ranks(self) -> bool:
        """Whether several ranks run it."""
        return self._ranks is not None

    @property
    def has_loss_of_all(self) -> bool:
        """Whether the phase that has just run made the loss known: for several ranks it is
        backward, in which they share it."""
        return self.done[-1] == ("loss" if self._ranks is None else "backward")

    def run_again(self, batch: Any) -> Outcome:
        """Forward and loss of a batch once more; it changes nothing of the step."""
        with self.optimization.forward:
            return self._objective.outcome(batch)

    def run(self) -> None:
        """Run all phases."""
        deque(self.phases(), maxlen=0)

    def phases(self) -> Iterator[None]:
        """Run the step. Yields between two phases. Raises Diverged, and what the user's code
        raises."""
        if self.optimization.asks_itself:
            self._ask()
            return
        for place, (phase, batch) in enumerate(_plan(self.setup.order, len(self.batches))):
            if place:
                yield
            self._batch = None if batch is None else self.batches[batch]
            _RUN[phase](self)
            self.done.append(phase)
        if self._measured and "step" not in self.setup.order:
            self._measure(self.optimization.gradients)

    # -- the phases ------------------------------------------------------------------------------

    def _zero_grad(self) -> None:
        # What optimizer.zero_grad() does; that also tells torch's profiler, which takes longer.
        for parameter in self.optimization.parameters:
            parameter.grad = None

    def _forward(self) -> None:
        if self._ranks is not None:
            self._ranks.is_last = self._batch is self.batches[-1]
        self._prediction = self._called(self._objective.predict, self._batch)

    def _loss(self) -> None:
        outcome = self._called(self._objective.judged, self._batch, self._prediction)
        self._check(outcome.loss)
        self.outcomes.append(outcome)

    def _backward(self) -> None:
        loss = self.loss
        if self.setup.accumulate > 1:
            loss = loss / self.setup.accumulate
        if self._ranks is None:
            loss = self.optimization.autocast.scaled(loss)
            loss.backward() if self.inside is None else self.inside.backward(self, loss)
        else:  # gradients are averaged over the ranks
            share = self._batch.share * self._ranks.size
            self._ranks.backward(self.optimization.autocast.scaled(loss * share))
            if self._ranks.is_last and self._shared is None:
                self._shared = self._ranks.share(self.number, self.outcomes)

    def _step(self) -> None:
        self._look_at_gradients()
        if self._measured:
            self._measure(lambda: self.optimization.clip(True))
        else:
            self.optimization.clip(False)
        self._update()

    def _called(self, function: Callable[..., T], *given: Any) -> T:
        """Call what runs the model."""
        if self.inside is None and self.optimization.forward.is_plain:
            return function(*given)
        calls = nullcontext() if self.inside is None else self.inside.calls()
        with calls, self.optimization.forward:
            return function(*given)

    def _ask(self) -> None:
        def closure() -> Tensor:
            self._zero_grad()
            first = len(self.outcomes)
            # A batch counts once for the metrics of the epoch.
            with self._objective.metrics.aside() if first else nullcontext():
                for batch in self.batches:
                    self._batch = batch
                    self._forward()
                    self._loss()
                    self._backward()
            if first:
                self.optimization.clip(measured=False)
            else:
                self._look_at_gradients()
                self._measure(lambda: self.optimization.clip(self._measured))
            found = self.outcomes[first:]
            if self._ranks is None:
                return joined(found).loss
            # All ranks decide alike how far to go.
            return self._ranks.share(self.number, found).loss if first else self.outcome.loss

        self._update(closure)
        self.done = list(PHASES)

    def _look_at_gradients(self) -> None:
        if self._look is not None:
            self._look.see_gradients(self.optimization.autocast.scale)

    def _update(self, closure: Callable[[], Tensor] | None = None) -> None:
        if self._look is not None:
            self._look.see_weights()
        self._move(closure)
        if self._look is not None:
            self._look.see_update()

    def _move(self, closure: Callable[[], Tensor] | None) -> None:
        parameters = self.optimization.parameters
        if not self._detailed:
            self.optimization.step(closure)
            return
        before = [p.detach().clone() for p in parameters]
        self.optimization.step(closure)
        now = [p.detach() for p in parameters]
        self._update_norm = float(_norm(list(foreach_sub(now, before))))

    def _measure(self, gradients: Callable[[], list[Tensor]]) -> None:
        """Keep the norm of the gradients, if there are any. They are not kept: the next step's take
        their memory."""
        started = perf_counter()
        found = gradients()
        self.norms = [_norm(found)] if found and self._measured else []
        self.measuring_s = perf_counter() - started

    # -- checks ----------------------------------------------------------------------------------

    def _check(self, loss: Tensor) -> None:
        """Raise Diverged before a loss that is not finite spoils the weights.

        On CUDA this would wait for the device at every step, so there only `flush` checks.
        """
        if self._lets_diverge or self._ranks is not None or loss.device.type == "cuda":
            return
        self._loss_read = loss.item()
        if not isfinite(self._loss_read):
            raise Diverged(self.number, self._loss_read)

    def check_gradients(self, model: nn.Module) -> None:
        """Raise LabError if backward, which has just run, gave not one parameter a gradient: the
        loss is that of another model."""
        if self._ranks is not None and not self._ranks.is_last:
            return  # they are averaged with the step's last batch
        if self.done[-1] != "backward" and not self.optimization.asks_itself:
            return
        if all(p.grad is None for p in self.optimization.parameters):
            raise LabError(
                f"No parameter of this {type(model).__name__} got a gradient: the loss does"
                " not depend on it.",
                hint="Compute the loss with `model`; or choose the module that the step uses.",
            )

    # -- numbers ---------------------------------------------------------------------------------

    def numbers(self) -> StepNumbers:
        """The numbers of the phases that are done."""
        shapes = [tuple(tensor.shape) for tensor in tensors_in(self._prediction)]
        return StepNumbers(
            number=self.number,
            done=tuple(dict.fromkeys(self.done)),
            order=self.setup.order,
            batches_done=len(self.outcomes),
            batches=len(self.batches),
            prediction=shapes[0] if shapes else (),
            loss=float(self.outcome.loss.detach()) if self.outcomes else None,
            gradient_norm=self.gradient_norm(),
            update_norm=self._update_norm,
            place=self.place,
            unmeasured=tuple(self._unmeasured()),
        )

    def _unmeasured(self) -> Iterator[Phase]:
        """The phases that are done and whose norm was not taken."""
        if "step" in self.done:
            if not self._measured and "backward" in self.done:
                yield "backward"
            if self._update_norm is None:
                yield "step"

    def gradient_norm(self) -> float | None:
        """The 2-norm of all gradients: those that the update has used, before clipping, else those
        that the parameters have; None without any, and where they were not measured."""
        if "step" in self.done:
            return float(self.norms[0]) if self.norms else None
        gradients = self.optimization.gradients()
        if not gradients:
            return None
        return float(_norm(gradients)) / self.optimization.autocast.scale


def _norm(tensors: list[Tensor]) -> Tensor:
    """Their 2-norm together, as `utils.get_total_norm` has it, for tensors on one device: it takes
    half the time."""
    return torch.linalg.vector_norm(torch.stack(foreach_norm(tensors)))


@lru_cache(maxsize=16)
def _plan(order: tuple[Phase, ...], batches: int) -> list[tuple[Phase, int | None]]:
    """The phases of a step in turn, those of a batch with its place among the step's batches."""
    before, of_batch, after = split_order(order)
    return [
        *((phase, None) for phase in before),
        *((phase, batch) for batch in range(batches) for phase in of_batch),
        *((phase, None) for phase in after),
    ]


_RUN = {
    "zero_grad": TrainingStep._zero_grad,
    "forward": TrainingStep._forward,
    "loss": TrainingStep._loss,
    "backward": TrainingStep._backward,
    "step": TrainingStep._step,
}
