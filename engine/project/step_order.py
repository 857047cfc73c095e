"""The phases of an optimizer step, and in which orders they can be run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

Phase = Literal["zero_grad", "forward", "loss", "backward", "step"]
PHASES: tuple[Phase, ...] = get_args(Phase)
"""In the usual order."""


def order_problem(order: Sequence[Phase]) -> str:
    """Why a step cannot run its phases in this order, in a sentence; empty if it can.

    zero_grad and step can stand anywhere or be left out; backward can be left out. The loss is
    computed from the prediction of forward, and backward starts at the loss.
    """
    if len(set(order)) != len(order):
        return "A phase of a step can be there only once."
    if "forward" not in order or "loss" not in order:
        return "A step needs forward and loss."
    if order.index("loss") < order.index("forward"):
        return "The loss is computed from the prediction: forward comes before it."
    if "backward" in order and order.index("backward") < order.index("loss"):
        return "backward() starts at the loss: the loss comes before it."
    return ""


def split_order(
    order: Sequence[Phase],
) -> tuple[Sequence[Phase], Sequence[Phase], Sequence[Phase]]:
    """The phases before the batches of a step, those of each batch (from forward to backward, or
    to loss without it), and those after the batches."""
    first = order.index("forward")
    last = order.index("backward" if "backward" in order else "loss") + 1
    return order[:first], order[first:last], order[last:]


def keeps_gradients(order: Sequence[Phase]) -> bool:
    """Whether a step uses gradients of the step before: zero_grad is not the first of the phases
    that touch them."""
    touching = [phase for phase in order if phase in ("zero_grad", "backward", "step")]
    return touching[:1] != ["zero_grad"]


def unusual_words(order: Sequence[Phase]) -> str:
    """The effect of an unusual order, in sentences; empty for the usual one."""
    if tuple(order) == PHASES:
        return ""
    words = []
    if "backward" not in order:
        words.append("Without backward no parameter gets a gradient, so nothing is learnt.")
    if "step" not in order:
        words.append("Without step the optimizer changes no weight.")
    if "zero_grad" not in order:
        words.append("Without zero_grad each gradient is added to those of all steps before.")
    if "backward" in order and "step" in order:
        start = order.index("backward") + 1
        following = (*order[start:], *order[:start])  # the next step's phases come after this one's
        if next(phase for phase in following if phase in ("zero_grad", "step")) == "zero_grad":
            words.append("zero_grad comes between backward and step: the step finds no gradient.")
        elif order.index("forward") < order.index("step") < order.index("backward"):
            words.append("step changes weights that backward needs: torch refuses the backward.")
        elif order.index("step") < order.index("backward"):
            words.append("step before backward: each step uses the gradient of the batch before.")
    return " ".join(words) or "The same as the usual order, but zero_grad comes at another place."
