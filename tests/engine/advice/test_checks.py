"""Units, gradients and parameters, shown to their checks by hand; the words of findings."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.advice.losses import suffix_for
from engine.advice.notes import Names, Notes, all_zero, counted, listed
from engine.advice.trained import _parameters_under
from engine.advice.units import Units
from engine.advice.zeroing import (
    AGAIN_AFTER,
    LEFT_AFTER,
    MAX_WATCHED_STEPS,
    TOLD_AFTER,
    Zeroing,
)
from engine.protocol import Finding

# -- units -----------------------------------------------------------------------------------------


class Relu:
    """Outputs of a ReLU, shown at steps of a loop."""

    def __init__(self, layer: nn.Module | None = None) -> None:
        self.found: list[Finding] = []
        self.notes = Notes(self.found.append)
        self.units = Units(self.notes, Names(self.notes))
        self.modules = () if layer is None else (layer,)

    def show(self, step: int, *outputs: Tensor) -> None:
        self.notes.steps = step
        for output in outputs:
            result = output.clone().requires_grad_()
            self.units.told[F.relu](F.relu, (output,), {}, result, self.modules)


def some_dead(shape: tuple[int, ...], dead: int, dim: int) -> Tensor:
    """Ones, and zeros in the first places of this dimension."""
    values = torch.ones(shape)
    values.narrow(dim, 0, dead).zero_()
    return values


@pytest.mark.parametrize(
    ("shape", "dim", "dead", "is_told"),
    [
        ((64, 4), 1, 2, True),
        ((64, 4), 1, 1, False),
        ((64, 4), 0, 32, False),  # samples, not units
        ((8, 8, 4), 2, 2, True),
        ((8, 8, 4), 1, 4, False),
        ((16, 4, 2, 2), 1, 2, True),
        ((16, 4, 2, 2), 3, 1, False),
        ((64,), 0, 64, False),
    ],
)
def test_a_unit_is_a_channel_of_images_or_the_last_dimension(
    shape: tuple[int, ...], dim: int, dead: int, is_told: bool
) -> None:
    relu = Relu(nn.ReLU())
    for step in (16, 18, 64):
        relu.show(step, some_dead(shape, dead, dim))
    assert bool(relu.found) is is_told
    if is_told:
        assert relu.found[0].text.startswith("2 of the 4 units behind a ReLU give 0")
        assert relu.found[0].evidence == (
            "2 of 4 outputs were 0 for all of 192 values each, at 3 steps from 16 to 64",
        )


@pytest.mark.parametrize("layer", [nn.ReLU(), None])
@pytest.mark.parametrize(
    ("looks", "values", "is_told"),
    [
        ((60, 62, 64), 43, False),  # 60 and 62 are not looked at
        ((30, 32, 64), 43, True),
        ((30, 32, 64), 42, False),  # 126 of 128 values
        ((32, 64), 100, False),
        ((28, 30, 32), 100, False),  # they may learn yet
        ((64, 64, 64), 100, False),  # three calls in one step
        ((17, 19, 64), 100, False),
    ],
)
def test_dead_units_are_told_after_enough_looks_at_enough_values(
    layer: nn.Module | None, looks: tuple[int, ...], values: int, is_told: bool
) -> None:
    relu = Relu(layer)
    for step in looks:
        relu.show(step, torch.zeros(values, 3))
    assert [each.text[:17] for each in relu.found] == ["All 3 units behin"] * is_told


def test_once_it_was_told_or_not_it_looks_anew() -> None:
    relu = Relu(nn.ReLU())
    for step in (16, 18, 64):
        relu.show(step, torch.ones(64, 2))
    for step in (128, 256):
        relu.show(step, torch.zeros(64, 2))
    assert not relu.found
    relu.show(384, torch.zeros(64, 2))
    assert relu.found[0].evidence == (
        "2 of 2 outputs were 0 for all of 192 values each, at 3 steps from 128 to 384",
    )


def test_outputs_without_a_graph_or_without_numbers_are_left_alone() -> None:
    relu = Relu(nn.ReLU())
    for step in (16, 18, 64):
        relu.show(step, torch.zeros(0, 3), torch.zeros(99, 3, device="meta"))
        relu.units.told[F.relu](F.relu, (), {}, torch.zeros(99, 3), relu.modules)
    assert not relu.found
    relu.show(128, torch.zeros(99, 3))
    relu.show(256, torch.zeros(99, 4))  # another width: not this layer
    assert not relu.found


def test_few_values_are_looked_at_in_more_steps() -> None:
    relu = Relu(nn.ReLU())
    assert [step for step in range(3000) if relu.units.wants(step)] == [
        *range(16, 33, 2),
        64,
        *range(128, 2049, 128),
    ]
    relu.show(16, torch.zeros(127, 3))
    wanted = [step for step in range(3000) if relu.units.wants(step)]
    assert wanted == [*range(16, 33, 2), *range(33, 193), *range(256, 2049, 128)]
    relu.show(18, torch.zeros(1, 3))
    assert not relu.units.wants(33)


# -- gradients that are cleared --------------------------------------------------------------------


class Clearing:
    """Steps of optimizers, with the gradients cleared before backward or not."""

    def __init__(self) -> None:
        self.found: list[Finding] = []
        self.notes = Notes(self.found.append)
        self.zeroing = Zeroing(self.notes, Names(self.notes))
        self.weights = [nn.Parameter(torch.ones(size)) for size in (4, 3, 2, 1)]
        self.optimizer = torch.optim.SGD(self.weights)

    def step(self, is_cleared: bool = True, backwards: int = 1) -> None:
        for weight in self.weights if is_cleared else ():
            weight.grad = None
        for _ in range(backwards):
            self.zeroing.saw_loss(torch.ones(()))
            for weight in self.weights:
                grad = torch.ones_like(weight)
                weight.grad = grad if weight.grad is None else weight.grad + grad
        self.notes.steps += 1
        self.zeroing.before_step(self.optimizer, False)
        self.zeroing.after_step(self.optimizer, False)

    def other_step(self) -> None:
        """Another optimizer takes one, with a closure."""
        self.notes.steps += 1
        optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)])
        self.zeroing.before_step(optimizer, True)
        self.zeroing.after_step(optimizer, True)


def test_an_optimizer_is_watched_in_its_first_16_steps_and_again_after_48() -> None:
    clearing = Clearing()
    watched = []
    for step in range(1, 140):
        clearing.step()
        if clearing.zeroing.active:
            watched.append(step)
    first = range(1, MAX_WATCHED_STEPS + 1)
    assert watched[:16] == [*first] and watched[16] == 16 + AGAIN_AFTER + 1
    assert watched[17] == 66 + AGAIN_AFTER  # step 66 has seen that they are cleared
    assert not clearing.zeroing.is_early and not clearing.found


def test_an_optimizer_that_is_watched_again_is_watched_on_while_nothing_is_cleared() -> None:
    clearing = Clearing()
    for _ in range(65):
        clearing.step()
    for _ in range(TOLD_AFTER):
        assert clearing.zeroing.active and not clearing.found
        clearing.step(is_cleared=False)
    assert len(clearing.found) == 1 and not clearing.zeroing.active


def test_several_backward_calls_for_one_step_are_one() -> None:
    clearing = Clearing()
    for _ in range(8):
        clearing.step(backwards=3)
    assert not clearing.found


def test_the_norms_are_those_of_the_smallest_parameter() -> None:
    clearing = Clearing()
    clearing.step()
    clearing.step(is_cleared=False, backwards=2)
    assert not clearing.found and clearing.zeroing.is_early
    clearing.step(is_cleared=False)
    (found,) = clearing.found
    assert found.evidence == (
        "`weight.grad` before and after backward: norm 1, then 3",
        "`weight.grad` before and after backward: norm 3, then 4",
    )
    for _ in range(200):
        clearing.step(is_cleared=False)
    assert len(clearing.found) == 1 and not clearing.zeroing.active


def test_gradients_that_are_cleared_in_every_second_step_are_added_up_on_purpose() -> None:
    clearing = Clearing()
    for step in range(12):
        clearing.step(is_cleared=step % 2 == 0)
    assert not clearing.found


def test_only_some_gradients_are_cleared() -> None:
    """Three small ones are looked at: if one of them is gone, they are cleared."""
    for number, is_told in ((0, True), (1, False), (2, False), (3, False)):
        clearing = Clearing()
        for _ in range(6):
            clearing.weights[number].grad = None
            clearing.step(is_cleared=False)
        assert bool(clearing.found) is is_told


def test_zeros_are_cleared_gradients() -> None:
    clearing = Clearing()
    for _ in range(6):
        for weight in clearing.weights:
            weight.grad = torch.zeros_like(weight)
        clearing.step(is_cleared=False)
    assert not clearing.found


@pytest.mark.parametrize(("steps", "others"), [(1, LEFT_AFTER), (65, 8)])
def test_an_optimizer_that_takes_no_step_while_it_is_watched_is_left(
    steps: int, others: int
) -> None:
    """In its first steps after 64 steps of others; when it is watched again, after 8."""
    clearing = Clearing()
    for _ in range(steps):
        clearing.step()
    for _ in range(others):
        clearing.other_step()
        assert clearing.zeroing.active
    clearing.other_step()
    assert not clearing.zeroing.active


# -- parameters, and words -------------------------------------------------------------------------


def chain(nodes: int) -> Tensor:
    """Its graph has so many nodes, that of the parameter too."""
    result = nn.Parameter(torch.ones(()))
    for _ in range(nodes - 1):
        result = result * 1.0
    return result


def test_graphs_of_5000_nodes_are_walked() -> None:
    for nodes, count in ((2, 1), (5000, 1)):
        found = _parameters_under(chain(nodes))
        assert found is not None and len(found) == count
    assert _parameters_under(chain(5001)) is None
    assert _parameters_under(torch.ones(())) == []
    plain = torch.ones(3, requires_grad=True)
    held = nn.Parameter(torch.ones(3))
    found = _parameters_under((plain * held + held).sum())
    assert found is not None and [id(each) for each in found] == [id(held)]


@pytest.mark.parametrize(
    ("old", "new", "suffix"),
    [
        ((6,), (6, 1), ".unsqueeze(-1)"),
        ((6, 1), (6,), ".squeeze(-1)"),
        ((6,), (2, 3), ".reshape(2, 3)"),
        ((1, 6), (6, 1), ".reshape(6, 1)"),
        ((1, 3), (6, 3), ".expand(6, 3)"),
    ],
)
def test_a_target_is_brought_to_the_shape_of_the_prediction(
    old: tuple[int, ...], new: tuple[int, ...], suffix: str
) -> None:
    target = torch.arange(6.0).reshape(old) if old != (1, 3) else torch.ones(old)
    assert suffix_for(target, torch.ones(new)) == suffix
    assert eval(f"target{suffix}").shape == new


def test_names_are_listed_and_things_counted() -> None:
    assert listed(["a"]) == "a" and listed(["a", "b", "c"]) == "a, b, c"
    assert listed(["a", "b", "c", "d"]) == "a, b, c and 1 more"
    assert (counted(1, "step"), counted(0, "step"), counted(1234, "step")) == (
        "1 step",
        "0 steps",
        "1,234 steps",
    )


@pytest.mark.parametrize("made", [lambda t: t, Tensor.to_sparse])
def test_zeros_are_seen_in_dense_and_sparse_gradients(made: Callable[[Tensor], Tensor]) -> None:
    assert all_zero(made(torch.zeros(3))) and not all_zero(made(torch.tensor([0.0, 2.0])))
