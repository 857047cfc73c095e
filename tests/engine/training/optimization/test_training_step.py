"""One step of a run, phase by phase, against plain torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf, nan
from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engine.project.document import TrainingSetup, replace
from engine.project.step_order import PHASES
from engine.system.errors import LabError
from engine.training.figures.metrics import Diverged
from engine.training.looks.looks import StepLook
from engine.training.objectives.epoch_metrics import EpochMetrics
from engine.training.objectives.objective import Outcome
from engine.training.optimization.optimization import Optimization
from engine.training.optimization.training_step import TrainingStep, check_setup

CPU = torch.device("cpu")
SGD = TrainingSetup(optimizer="optim.SGD", optimizer_params={"lr": 0.5})
TWO = replace(SGD, accumulate=2)
LBFGS = replace(SGD, optimizer="optim.LBFGS", optimizer_params={"lr": 0.5, "max_iter": 3})
BATCHES = [
    (torch.tensor([[1.0, 2.0], [3.0, -1.0]]), torch.tensor([[1.0], [0.0]])),
    (torch.tensor([[0.5, 4.0]]), torch.tensor([[2.0]])),
]


class Fitting:
    """Fits the targets of a batch."""

    def __init__(self, model: nn.Module) -> None:
        self.model, self.metrics = model, EpochMetrics()
        self.asides = 0

    def predict(self, batch: tuple[Tensor, Tensor]) -> Tensor:
        self.asides += self.metrics._aside is not None
        return self.model(batch[0])

    def judged(self, batch: tuple[Tensor, Tensor], prediction: Tensor) -> Outcome:
        return Outcome(F.mse_loss(prediction, batch[1]), len(batch[1]))

    def outcome(self, batch: tuple[Tensor, Tensor]) -> Outcome:
        return self.judged(batch, self.predict(batch))


class Halts:
    """Holds nothing; notes what is called in it."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    @contextmanager
    def calls(self) -> Iterator[None]:
        self.seen.append("call")
        yield

    def backward(self, step: TrainingStep, loss: Tensor) -> None:
        self.seen.append(f"backward of step {step.number}")
        loss.backward()


@pytest.fixture
def model() -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(2, 1)


@pytest.fixture
def make(model: nn.Linear) -> Callable[..., TrainingStep]:
    def step(setup: TrainingSetup = SGD, measured: bool = True, **more: Any) -> TrainingStep:
        objective = cast(Any, Fitting(model))
        optimization = Optimization(setup, model, CPU, None)
        batches = BATCHES[: setup.accumulate]
        return TrainingStep(5, batches, setup, objective, optimization, measured, **more)

    return step


def losses_of(model: nn.Module) -> list[Tensor]:
    return [F.mse_loss(model(x), y) for x, y in BATCHES]


def gradients_of(model: nn.Module, loss: Tensor) -> list[Tensor]:
    return list(torch.autograd.grad(loss, list(model.parameters())))


def norm_of(tensors: list[Tensor]) -> float:
    return float(torch.cat([each.flatten() for each in tensors]).norm())


def test_sizes_below_one_are_no_step() -> None:
    for name in ("batch_size", "epochs", "accumulate"):
        with pytest.raises(LabError, match=f"{name} is 0; it must be at least 1"):
            check_setup(replace(TrainingSetup(), **{name: 0}))
        check_setup(replace(TrainingSetup(), **{name: 1}))
    check_setup(LBFGS)
    check_setup(replace(SGD, precision="float16"))
    check_setup(replace(SGD, order=PHASES[1:]))
    for setup, words in ((LBFGS, "LBFGS runs zero_grad"), (SGD, "The GradScaler of float16")):
        setup = replace(setup, order=PHASES[1:], precision="float16")
        with pytest.raises(LabError, match=words) as raised:
            check_setup(setup)
        assert raised.value.hint.startswith("Choose the usual order")


def test_the_numbers_come_as_the_phases_run(make, model: nn.Linear) -> None:
    step = make(detailed=True)
    (loss, _), before = losses_of(model), [p.detach().clone() for p in model.parameters()]
    gradients = gradients_of(model, loss)
    numbers = [step.numbers()]
    for _ in step.phases():
        numbers.append(step.numbers())
    numbers.append(step.numbers())
    assert [each.done for each in numbers] == [PHASES[:n] for n in range(6)]
    assert [each.prediction for each in numbers] == [(), (), *[(2, 1)] * 4]
    assert [each.loss for each in numbers] == [None] * 3 + [loss.item()] * 3
    assert [each.batches_done for each in numbers] == [0, 0, 0, 1, 1, 1]
    norm = pytest.approx(norm_of(gradients))
    assert [each.gradient_norm for each in numbers] == [None] * 4 + [norm] * 2
    moved = [a.detach() - b for a, b in zip(model.parameters(), before, strict=True)]
    assert [each.update_norm for each in numbers] == [None] * 5 + [pytest.approx(norm_of(moved))]
    for change, gradient in zip(moved, gradients, strict=True):
        torch.testing.assert_close(change, -0.5 * gradient)
    assert {(each.number, each.batches, each.order, each.place) for each in numbers} == {
        (5, 1, PHASES, "")
    }
    step.place = "at line 3"
    assert step.numbers().place == "at line 3"


def test_the_tensors_of_the_newest_batch_can_be_seen(make, model: nn.Linear) -> None:
    step = make(TWO)
    assert step.tensors == {"batch": None, "prediction": None}
    losses, found = losses_of(model), []
    for _ in step.phases():
        found.append((step.tensors["batch"], step.done[-1], step.has_loss_of_all))
        if step.done[-1] == "loss":
            assert torch.equal(step.loss, losses[len(step.outcomes) - 1])
            assert torch.equal(step.tensors["prediction"], model(step.tensors["batch"][0]))
    one, two = BATCHES
    assert [(each[0], each[1]) for each in found] == [
        (None, "zero_grad"),
        (one, "forward"), (one, "loss"), (one, "backward"),
        (two, "forward"), (two, "loss"), (two, "backward"),
    ]  # fmt: skip
    assert [each[2] for each in found] == [phase == "loss" for _, phase, _ in found]
    assert not step.has_ranks


def test_a_step_stops_between_two_batches_and_behind_each_phase(make) -> None:
    step = make(TWO)
    stops = [step.can_stop("batch")]
    for _ in step.phases():
        assert step.can_stop("phase") is True
        stops.append(step.can_stop("batch"))
    stops.append(step.can_stop("batch"))
    assert stops == [False] * 4 + [True] + [False] * 4
    own_order = make(replace(TWO, order=("forward", "loss", "backward", "step")))
    assert [own_order.can_stop("batch") for _ in own_order.phases()] == [
        False, False, True, False, False, False,
    ]  # fmt: skip
    nothing_after = make(replace(TWO, order=PHASES[:4]))
    assert [nothing_after.can_stop("batch") for _ in nothing_after.phases()] == [
        False, False, False, True, False, False,
    ]  # fmt: skip
    assert nothing_after.can_stop("batch") is False


def test_the_loss_of_several_batches_is_their_mean_by_samples(make, model: nn.Linear) -> None:
    step = make(TWO)
    first, second = losses_of(model)
    expected = gradients_of(model, (first + second) / 2)
    step.run()
    assert step.numbers().loss == pytest.approx((2 * first.item() + second.item()) / 3)
    assert step.loss_read is None and step.outcome.samples == 3
    assert [float(norm) for norm in step.norms] == [pytest.approx(norm_of(expected))]


def test_the_loss_that_was_checked_is_kept_for_one_batch(make, model: nn.Linear) -> None:
    step = make()
    assert step.loss_read is None
    loss = losses_of(model)[0].item()
    step.run()
    assert step.loss_read == loss


@pytest.mark.parametrize("value", [nan, inf])
def test_a_loss_that_is_not_finite_reaches_no_weight(make, model: nn.Linear, value: float) -> None:
    model.weight.data.fill_(value)
    with pytest.raises(Diverged) as raised:
        make().run()
    assert "step 5" in str(raised.value) and model.bias.isfinite()
    make(lets_diverge=True).run()
    assert not model.bias.isfinite()


def test_only_a_measured_step_has_norms_and_only_a_detailed_one_an_update(
    make, model: nn.Linear
) -> None:
    step = make(measured=False)
    step.run()
    assert (step.norms, step.measuring_s, step.gradient_norm()) == ([], 0.0, None)
    assert step.numbers().update_norm is None
    assert step.numbers().unmeasured == ("backward", "step")
    step = make()
    assert step.measuring_s == 0.0
    step.run()
    assert len(step.norms) == 1 and 0 < step.measuring_s < 1000
    assert step.numbers().update_norm is None
    assert step.numbers().unmeasured == ("step",)
    step = make(detailed=True)
    step.run()
    assert step.numbers().update_norm and step.numbers().unmeasured == ()


@pytest.mark.parametrize("measured", [False, True])
def test_gradients_are_clipped_whether_they_are_measured_or_not(
    make, model: nn.Linear, measured: bool
) -> None:
    before = [p.detach().clone() for p in model.parameters()]
    gradients = gradients_of(model, losses_of(model)[0])
    make(replace(SGD, clip_norm=0.25), measured).run()
    for new, old, gradient in zip(model.parameters(), before, gradients, strict=True):
        clipped = gradient * 0.25 / (norm_of(gradients) + 1e-6)
        torch.testing.assert_close(new.detach(), old - 0.5 * clipped)


def test_without_an_update_the_gradients_are_measured_behind_backward(
    make, model: nn.Linear
) -> None:
    expected = norm_of(gradients_of(model, losses_of(model)[0]))
    step = make(replace(SGD, order=("zero_grad", "forward", "loss", "backward")))
    step.run()
    assert [float(norm) for norm in step.norms] == [pytest.approx(expected)]
    assert step.gradient_norm() == pytest.approx(expected)
    step = make(replace(SGD, order=("zero_grad", "forward", "loss")))
    step.run()
    assert step.norms == [] and step.gradient_norm() is None
    step = make(replace(SGD, order=("zero_grad", "forward", "loss", "step")))
    step.run()
    assert step.norms == [] and step.gradient_norm() is None


def test_a_norm_before_the_update_is_that_of_the_loss_not_of_its_scale(
    make, model: nn.Linear
) -> None:
    step = make(replace(SGD, precision="float16"))
    phases = step.phases()
    for _ in range(4):
        next(phases)
    scale = step.optimization.autocast.scale
    scaled = norm_of([p.grad for p in model.parameters() if p.grad is not None])
    assert scale > 1 and step.gradient_norm() == pytest.approx(scaled / scale)


def test_zero_grad_leaves_no_gradient_of_an_earlier_step(make, model: nn.Linear) -> None:
    model.weight.grad = torch.full((1, 2), 100.0)
    expected = norm_of(gradients_of(model, losses_of(model)[0]))
    step = make()
    next(step.phases())
    assert model.weight.grad is None
    step = make()
    step.run()
    assert float(step.norms[0]) == pytest.approx(expected)


def test_what_holds_a_step_inside_sees_forward_loss_and_backward(make) -> None:
    step, inside = make(), Halts()
    step.inside = inside
    step.run()
    assert inside.seen == ["call", "call", "backward of step 5"]


def test_a_batch_can_be_run_again_without_a_trace(make, model: nn.Linear) -> None:
    step = make()
    outcome = step.run_again(BATCHES[1])
    assert torch.equal(outcome.loss, losses_of(model)[1])
    assert (step.outcomes, step.done, step.tensors["prediction"]) == ([], [], None)


def test_bfloat16_runs_the_model_and_its_loss_in_autocast(make, model: nn.Linear) -> None:
    step = make(replace(SGD, precision="bfloat16"))
    step.run()
    with torch.autocast("cpu", torch.bfloat16):
        assert step.tensors["prediction"].dtype == torch.bfloat16
        again = step.run_again(BATCHES[0])
    assert again.loss.dtype == torch.float32


def test_a_look_sees_gradients_weights_and_update(make, model: nn.Linear) -> None:
    look = StepLook(dict(model.named_parameters()), 5)
    gradients = gradients_of(model, losses_of(model)[0])
    before = [norm_of([p.detach()]) for p in model.parameters()]
    make(look=look).run()
    rows = look.taken().rows
    assert [row[3] for row in rows] == pytest.approx([norm_of([each]) for each in gradients])
    assert [row[4] for row in rows] == pytest.approx(before)
    assert [row[5] for row in rows] == pytest.approx([0.5 * norm_of([each]) for each in gradients])


@pytest.mark.parametrize("accumulate", [1, 2])
def test_lbfgs_asks_as_torch_does_with_a_closure(make, model: nn.Linear, accumulate: int) -> None:
    setup = replace(LBFGS, accumulate=accumulate)
    plain = nn.Linear(2, 1)
    plain.load_state_dict(model.state_dict())
    optimizer = torch.optim.LBFGS(plain.parameters(), lr=0.5, max_iter=3)
    calls: list[float] = []
    first = norm_of(gradients_of(plain, sum(losses_of(plain)[:accumulate]) / accumulate))  # pyright: ignore

    def closure() -> Tensor:
        optimizer.zero_grad()
        losses = losses_of(plain)[:accumulate]
        for loss in losses:
            (loss / accumulate).backward()
        sizes = [2, 1][:accumulate]
        mean = sum(n * loss.detach() for n, loss in zip(sizes, losses, strict=True)) / sum(sizes)
        calls.append(float(mean))
        return cast(Tensor, mean)

    optimizer.step(closure)
    look = StepLook(dict(model.named_parameters()), 5)
    step = make(setup, look=look)
    step.run()
    for mine, theirs in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs)
    assert len(calls) == 3 and len(step.outcomes) == 3 * accumulate
    assert step.outcome.loss.item() == pytest.approx(calls[0])
    assert [float(norm) for norm in step.norms] == [pytest.approx(first)]
    assert step.gradient_norm() == pytest.approx(first) and tuple(step.done) == PHASES
    assert cast(Any, step._objective).asides == 2 * accumulate
    assert norm_of([torch.tensor([row[3] for row in look.taken().rows])]) == pytest.approx(first)


def test_lbfgs_clips_each_time_that_it_asks(make, model: nn.Linear) -> None:
    plain = nn.Linear(2, 1)
    plain.load_state_dict(model.state_dict())
    optimizer = torch.optim.LBFGS(plain.parameters(), lr=0.5, max_iter=3)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = losses_of(plain)[0]
        loss.backward()
        nn.utils.clip_grad_norm_(plain.parameters(), 0.5)
        return loss

    optimizer.step(closure)  # pyright: ignore[reportArgumentType]
    step = make(replace(LBFGS, clip_norm=0.5))
    step.run()
    for mine, theirs in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs)


def test_a_loss_of_another_model_is_told_behind_backward(make, model: nn.Linear) -> None:
    step = make()
    other = nn.Linear(2, 1)
    phases = step.phases()
    for _ in range(4):
        next(phases)
        step.check_gradients(model)
    for parameter in model.parameters():
        parameter.grad = None
    with pytest.raises(LabError, match="No parameter of this Linear got a gradient") as raised:
        step.check_gradients(other)
    assert raised.value.hint.startswith("Compute the loss with `model`")
    model.bias.grad = torch.zeros(1)
    step.check_gradients(model)
