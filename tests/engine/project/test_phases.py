"""The orders of a step's phases, beside a step that is played through phase by phase."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations

import pytest

from engine.project.step_order import (
    PHASES,
    Phase,
    keeps_gradients,
    order_problem,
    split_order,
    unusual_words,
)

BACKWARD = "Without backward no parameter gets a gradient, so nothing is learnt."
STEP = "Without step the optimizer changes no weight."
ZERO = "Without zero_grad each gradient is added to those of all steps before."


def orders() -> Iterator[tuple[Phase, ...]]:
    """Each choice of phases in each order."""
    for count in range(len(PHASES) + 1):
        yield from permutations(PHASES, count)


def runs(order: Sequence[Phase]) -> bool:
    """Whether each phase finds what it needs."""
    made: set[str] = set()
    for phase in order:
        if (phase == "loss" and "forward" not in made) or (
            phase == "backward" and "loss" not in made
        ):
            return False
        made.add(phase)
    return {"forward", "loss"} <= made


SOUND = [order for order in orders() if runs(order)]


def test_an_order_has_a_problem_if_a_phase_lacks_what_it_needs() -> None:
    for order in orders():
        assert (order_problem(order) == "") == (order in SOUND), order
    for phase in PHASES:
        assert order_problem((*PHASES, phase)) == "A phase of a step can be there only once."
    assert order_problem(()) == order_problem(("forward",)) == "A step needs forward and loss."
    assert "forward comes before it" in order_problem(("loss", "forward"))
    assert "the loss comes before it" in order_problem(("forward", "backward", "loss"))


def test_the_phases_of_a_batch_reach_from_forward_to_backward() -> None:
    for order in SOUND:
        before, of_batch, after = split_order(order)
        assert (*before, *of_batch, *after) == order
        assert of_batch[0] == "forward"
        assert of_batch[-1] == ("backward" if "backward" in order else "loss")


def test_gradients_are_kept_if_a_phase_meets_those_of_the_step_before() -> None:
    for order in SOUND:
        touching = [phase for phase in order if phase in ("zero_grad", "backward", "step")]
        there = bool(touching)  # the step before has left gradients, or none touches any
        meets = there and touching[0] in ("backward", "step")
        assert keeps_gradients(order) == (meets or not touching), order


@pytest.mark.parametrize(
    ("order", "words"),
    [
        (PHASES, ""),
        (("forward", "zero_grad", "loss", "backward", "step"),
         "The same as the usual order, but zero_grad comes at another place."),
        (("forward", "loss", "backward", "step", "zero_grad"),
         "The same as the usual order, but zero_grad comes at another place."),
        (("zero_grad", "forward", "loss", "step"), BACKWARD),
        (("zero_grad", "forward", "loss", "backward"), STEP),
        (("forward", "loss", "backward", "step"), ZERO),
        (("forward", "loss"), f"{BACKWARD} {STEP} {ZERO}"),
        (("forward", "loss", "backward", "zero_grad", "step"),
         "zero_grad comes between backward and step: the step finds no gradient."),
        (("step", "forward", "loss", "backward", "zero_grad"),
         "zero_grad comes between backward and step: the step finds no gradient."),
        (("forward", "step", "zero_grad", "loss", "backward"),
         "step changes weights that backward needs: torch refuses the backward."),
        (("step", "zero_grad", "forward", "loss", "backward"),
         "step before backward: each step uses the gradient of the batch before."),
        (("step", "forward", "loss", "backward"),
         f"{ZERO} step before backward: each step uses the gradient of the batch before."),
    ],
)  # fmt: skip
def test_what_an_unusual_order_does(order: tuple[Phase, ...], words: str) -> None:
    assert unusual_words(order) == words
    assert unusual_words(list(order)) == words


def test_each_gradient_that_is_lost_or_late_is_told() -> None:
    """Two steps are played: which gradients does the second update find?"""
    for order in SOUND:
        if not {"backward", "step", "zero_grad"} <= set(order):
            continue
        gradients: set[int] = set()
        found: list[set[int]] = []
        for number in (1, 2):
            for phase in order:
                if phase == "zero_grad":
                    gradients = set()
                elif phase == "backward":
                    gradients = gradients | {number}
                elif phase == "step":
                    found.append(gradients)
        words = unusual_words(order)
        assert ("finds no gradient" in words) == (not found[-1]), order
        is_late = found[-1] == {1}
        assert (is_late and bool(words)) == (
            "each step uses the gradient of the batch before" in words
            or "torch refuses the backward" in words
        ), order
