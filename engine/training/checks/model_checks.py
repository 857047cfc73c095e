"""Checks of the model with its loss: the first loss, unreached parameters, modes, one batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite, log
from typing import Any

import torch
from torch import Tensor, nn

from ...project.document import TrainingSetup
from ...protocol import Check
from ...recording.compiled import add_forward_hook
from ...system.private_torch import DropoutNd, NormBase
from ..components.optimizers import make_optimizer
from ..objectives.batches import tensors_in
from ..objectives.objective import Objective
from .losses_seen import NUMBERS, LossSeen
from .untouched import untouched

FITTED = 0.1
"""The loss of one batch counts as fitted below this share of its first value."""
STEPS = 200
CLOSE = 1e-4
"""Outputs differ if they are farther apart than this share of the largest."""


def first_loss(loss: float, calls: Sequence[LossSeen]) -> Check:
    """The loss before training, against what guessing without a look at the inputs would have."""
    labels = [call for call in calls if call.labels is not None]
    numbers = [call for call in calls if call.func in NUMBERS]
    if not isfinite(loss):
        return Check(
            "first_loss", "error", f"The loss of the first batches is {loss}.",
            fix="Train once with “not_finite” under “Hold when…”: it names the operation.",
        )  # fmt: skip
    if labels:
        guess, of = log(labels[0].classes), f"log({labels[0].classes}) = "
        what = "guessing all classes alike"
    elif numbers:
        parts = (call.target for call in numbers)
        targets = torch.cat([t.flatten(1) if t.ndim > 1 else t[:, None] for t in parts]).double()
        guess, of = float(targets.var(0, correction=0).mean()), "the targets' variance "
        what = "predicting the targets' mean"
    else:
        return Check("first_loss", "note", f"The loss is {loss:.4g} before training.")
    evidence = f"loss {loss:.4g}; {what}: {of}{guess:.4g}"
    high = loss > guess + 0.7 if labels else loss > 3 * guess
    if high:
        return Check(
            "first_loss",
            "warning",
            "The loss is far above that of guessing: the first predictions are too sure, or of"
            " another scale than the targets.",
            evidence,
            "Make the last layer's initial weights smaller, or standardise inputs and targets.",
        )
    if loss < (guess - 0.3 if labels else 0.7 * guess):
        return Check(
            "first_loss", "note", "The weights are better than guessing already.", evidence
        )
    return Check("first_loss", "good", "The loss is that of guessing.", evidence)


def unreached(model: nn.Module, objective: Objective, batch: Any) -> Check:
    """Parameters that the loss does not depend on."""
    with untouched(model):
        objective.outcome(batch).loss.backward()
        named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
        without = [n for n, p in named if p.grad is None]
        zero = [n for n, p in named if p.grad is not None and not bool(p.grad.any())]
    frozen = sum(not p.requires_grad for p in model.parameters())
    evidence = f"{len(named) - len(without)} of {len(named)} parameters get a gradient"
    if frozen:
        evidence += f"; {frozen} are frozen"
    if without:
        return Check(
            "unreached",
            "warning",
            f"The loss does not depend on {_listed(without)}: no gradient, nothing is learnt.",
            evidence,
            "Use them in forward, or remove them.",
        )
    if zero:
        return Check(
            "unreached",
            "warning",
            f"The gradient of {_listed(zero)} is 0 for the whole first batch.",
            evidence,
            "Look at the units behind them: dead ones pass no gradient.",
        )
    return Check("unreached", "good", "The loss depends on every parameter that learns.", evidence)


def modes(model: nn.Module, objective: Objective, batch: Any) -> Check:
    """Whether the model gives something else in eval mode, and whether samples of a batch change
    each other's outputs there."""
    taken: list[tuple[tuple, dict[str, Any], Any]] = []

    def take(_: nn.Module, args: tuple, kwargs: dict[str, Any], result: Any) -> None:
        taken.append((args, kwargs, result))

    hook = add_forward_hook(model, take, with_kwargs=True)
    try:
        with untouched(model), torch.no_grad():
            objective.outcome(batch)
    finally:
        hook.remove()
    if not taken:
        return Check("modes", "note", "The step does not call the model itself.")
    args, kwargs, trained = taken[0]
    with untouched(model, training=False), torch.no_grad():
        evaluated, part = model(*args, **kwargs), _first_output(model, args, kwargs)
    whole = next(iter(tensors_in(evaluated)), None)
    if part is not None and whole is not None and whole.ndim and len(whole) > 1:
        apart = _largest_difference(whole[:1], part)
        if apart is None or apart > CLOSE:
            return Check(
                "modes",
                "error",
                "In eval mode a sample's output depends on the other samples of its batch.",
                "outputs of another shape" if apart is None else f"they differ by {apart:.2%}",
                "Look for a reshape or a mean over dim 0; or BatchNorm without running statistics.",
            )
    kinds = sorted(
        {
            f"{type(m).__name__}(p={m.p:g})" if hasattr(m, "p") else type(m).__name__
            for m in model.modules()
            if isinstance(m, DropoutNd | NormBase)
        }
    )
    first = next(iter(tensors_in(trained)), None)
    apart = None if first is None or whole is None else _largest_difference(first, whole)
    if apart is None or apart <= CLOSE:
        return Check("modes", "good", "The model gives the same in training and in eval mode.")
    because = f" because of {', '.join(kinds)}" if kinds else ""
    return Check(
        "modes",
        "note",
        f"The model gives something else in eval mode than in training{because}.",
        f"the outputs of the first batch differ by {apart:.2%} of the largest",
        "" if kinds else "Look for code that asks self.training, or for random numbers.",
    )


def one_batch(
    model: nn.Module, objective: Objective, setup: TrainingSetup, batch: Any
) -> Iterator[Check | None]:
    """Whether the set-up's optimizer can fit one batch. Yields None after each step, then the
    check."""
    losses: list[float] = []
    with untouched(model):
        optimizer = make_optimizer(setup.optimizer, setup.optimizer_params, model.parameters())

        def closure() -> Tensor:
            optimizer.zero_grad()
            loss = objective.outcome(batch).loss
            loss.backward()
            return loss.detach()

        for _ in range(STEPS):
            losses.append(float(optimizer.step(closure)))  # type: ignore[arg-type]
            yield None
            if not isfinite(losses[-1]) or losses[-1] < 0.01 * losses[0]:
                break
    first, last, steps = losses[0], losses[-1], len(losses)
    evidence = f"loss {first:.4g} at first, {last:.4g} after {steps} steps on the same batch"
    if not isfinite(last):
        yield Check(
            "one_batch", "error", f"On one batch the loss became {last}.", evidence,
            "Lower the learning rate.",
        )  # fmt: skip
    elif last < FITTED * first:
        yield Check("one_batch", "good", "One batch can be fitted.", evidence)
    elif last > 0.9 * first:
        yield Check(
            "one_batch",
            "error",
            "The loss of one batch does not fall: with this set-up the model cannot learn.",
            evidence,
            "Try another rate; then look whether the loss belongs to the targets.",
        )
    else:
        yield Check(
            "one_batch",
            "warning",
            "One batch is not fitted: the model is too small, the rate too low, or the targets do"
            " not follow from the inputs.",
            evidence,
            "Try a higher rate first.",
        )


def _first_output(model: nn.Module, args: tuple, kwargs: dict[str, Any]) -> Tensor | None:
    """The output for the first sample alone; None if it cannot be had."""
    given = [*args, *kwargs.values()]
    if not given or not all(isinstance(each, Tensor) and each.ndim for each in given):
        return None
    result = model(*(a[:1] for a in args), **{name: a[:1] for name, a in kwargs.items()})
    return next(iter(tensors_in(result)), None)


def _largest_difference(a: Tensor, b: Tensor) -> float | None:
    """The largest difference as a share of the largest number; None for other shapes."""
    if a.shape != b.shape:
        return None
    scale = float(b.double().abs().max()) or 1.0
    return float((a.double() - b.double()).abs().max()) / scale


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(f"`{name}`" for name in names[:3]) + more
