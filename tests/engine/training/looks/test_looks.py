"""Norms and histograms of every parameter, against plain torch; a look changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from math import hypot, inf, isfinite, isnan, nan

import numpy as np
import pytest
import torch
from torch import nn

from engine.project.document import ParamGroup, TrainingSetup, replace
from engine.runs.parameter_figures import Look
from engine.training.looks.histograms import BINS, histogram
from engine.training.looks.looks import SHARE, Looks, StepLook
from engine.training.loop import TrainingLoop
from engine.training.objectives.objective import CatalogueObjective

Make = Callable[[], nn.Sequential]
SGD = {"optimizer": "optim.SGD", "optimizer_params": {"lr": 0.1}}


def looked(model: nn.Module, setup: TrainingSetup, steps: int) -> tuple[list[Look], TrainingLoop]:
    """The looks at the first steps, all by hand."""
    loop = TrainingLoop(model, setup)
    running = loop.steps()
    while loop.step < steps:
        loop.by = "step"
        next(running)
    running.close()
    loop.flush()
    return list(loop.looks.drain()), loop


@pytest.mark.parametrize("clip_norm", [0.0, 0.01])
def test_the_norms_are_those_of_a_plain_loop(make_mlp: Make, moons, clip_norm: float) -> None:
    setup = replace(moons, **SGD, clip_norm=clip_norm)
    looks, loop = looked(make_mlp(), setup, 4)
    loop.close()

    plain = make_mlp()
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.1)
    objective = CatalogueObjective(plain, setup)
    torch.manual_seed(setup.seed)
    batches = [batch for epoch in range(2) for batch in objective.batches(epoch, 0)]
    plain.train()
    for step in range(4):
        x, y = batches[step]
        optimizer.zero_grad()
        nn.functional.cross_entropy(plain(x), y).backward()
        named = dict(plain.named_parameters())
        gradients = {n: p.grad.clone() for n, p in named.items() if p.grad is not None}
        weights = {n: p.detach().clone() for n, p in named.items()}
        if clip_norm:
            nn.utils.clip_grad_norm_(plain.parameters(), clip_norm)
        optimizer.step()
        rows = {row.name: row for row in looks[step].rows}
        assert list(rows) == list(named)
        for place, (name, row) in enumerate(rows.items()):
            assert (row.step, row.place) == (step + 1, place)
            assert row.gradient_norm == pytest.approx(gradients[name].norm().item(), rel=1e-5)
            assert row.weight_norm == pytest.approx(weights[name].norm().item(), rel=1e-5)
            moved = (named[name].detach() - weights[name]).norm().item()
            assert row.update_norm == pytest.approx(moved, rel=1e-4)
        assert [(h.name, h.kind) for h in looks[step].histograms] == [
            (name, kind) for kind in ("gradients", "weights") for name in named
        ]
        for found in looks[step].histograms:
            of = gradients[found.name] if found.kind == "gradients" else named[found.name]
            values = of.detach().numpy().ravel()
            assert (found.low, found.high) == (values.min(), values.max())
            assert sum(np.frombuffer(found.counts, "<u4")) == values.size


@pytest.mark.parametrize(
    "fields",
    [
        {"accumulate": 2},
        {"precision": "float16"},
        {"optimizer": "optim.LBFGS", "optimizer_params": {"max_iter": 3}},
        {"clip_norm": 0.01, "precision": "float16"},
    ],
)
def test_the_norms_together_are_the_gradient_norm_of_the_step(
    make_mlp: Make, moons, fields: dict
) -> None:
    """A gradient that overflows in float16 is infinite, and its step is left out."""
    looks, loop = looked(make_mlp(), replace(moons, **fields, epochs=9), 6)
    assert len(looks) == 6
    moved = 0
    for look, row in zip(looks, loop.metrics.history, strict=True):
        whole = hypot(*(each.gradient_norm for each in look.rows))
        assert whole == pytest.approx(row.gradient_norm, rel=1e-5) and whole > 0
        update = hypot(*(each.update_norm for each in look.rows))
        assert (update > 0) == isfinite(whole)
        moved += update > 0
    assert moved
    loop.close()


def test_a_look_changes_no_bit(make_mlp: Make, moons) -> None:
    def weights(by_hand: bool) -> list[torch.Tensor]:
        loop = TrainingLoop(make_mlp(), moons)
        loop.by = "step" if by_hand else ""
        for _ in loop.steps():
            loop.by = "step" if by_hand else ""
        return list(loop.model.state_dict().values())

    for one, other in zip(weights(False), weights(True), strict=True):
        assert torch.equal(one, other)


def looked_at(monkeypatch, look_s: float, steps: int) -> list[int]:
    """Which of these steps, a hundredth of a second apart, get a look that takes so long. Step 21
    is run by hand."""
    now = 0.0
    monkeypatch.setattr("engine.training.looks.looks.perf_counter", lambda: now)
    looks = Looks({"w": nn.Parameter(torch.ones(3))})
    taken = []
    for step in range(steps):
        look = looks.begin(step, by_hand=step == 20)
        if look is not None:
            taken.append(step + 1)
            look.spent_s = look_s
            looks.end(look)
        now += 0.01
    assert looks.drain() == ()  # none of them had an update
    return taken


def test_the_first_steps_get_a_look_and_later_ones_once_time_has_passed(monkeypatch) -> None:
    """A look of 0.18 s is followed by 60 s without one."""
    assert looked_at(monkeypatch, 0.18, 6100) == [1, 2, 4, 8, 16, 21, 6022]


def test_looks_that_take_little_time_come_less_often_as_a_run_goes_on(monkeypatch) -> None:
    taken = np.array(looked_at(monkeypatch, 0.0, 6000))
    assert set(range(1, 21)) <= set(taken.tolist())
    gaps = np.diff(taken)
    late = taken[1:] > 100
    assert (gaps[late] <= 0.05 * taken[1:][late] + 1.01).all()
    assert (gaps[late] >= 0.05 * taken[:-1][late] - 1.01).all()


def test_once_no_look_is_free_the_last_one_is_waited_for_with_what_keeping_it_took(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr("engine.training.looks.looks.perf_counter", lambda: now)
    net = nn.Linear(2, 1)
    looks = Looks(dict(net.named_parameters()), free_s=0.5)
    look = looks.begin(20, by_hand=False)
    assert look is not None
    look.spent_s = 0.006
    now = 110.0
    looks.end(look)
    looks.spend(0.003)
    assert looks.due_s == 110.5  # a twentieth of the time since it began
    looks.end_free()
    assert looks.due_s == pytest.approx(110.0 + 0.009 / SHARE)
    looks.spend(0.003)
    assert looks.due_s == pytest.approx(110.0 + 0.012 / SHARE)
    later = looks.due_s
    looks.end_free()
    assert looks.due_s == later


def test_a_frozen_parameter_has_no_gradient_and_does_not_move(make_mlp: Make, moons) -> None:
    looks, loop = looked(make_mlp(), replace(moons, groups=(ParamGroup("0", frozen=True),)), 1)
    rows = {row.name: row for row in looks[0].rows}
    assert isnan(rows["0.weight"].gradient_norm) and rows["0.weight"].update_norm == 0
    assert rows["4.weight"].gradient_norm > 0
    kinds = {h.kind for h in looks[0].histograms if h.name == "0.weight"}
    assert kinds == {"weights"}
    loop.close()


def test_a_step_without_gradients_moves_nothing(make_mlp: Make, moons) -> None:
    (look, *_), loop = looked(make_mlp(), replace(moons, order=("forward", "loss", "step")), 1)
    assert all(isnan(row.gradient_norm) and row.update_norm == 0 for row in look.rows)
    loop.close()


def test_a_sparse_gradient_is_that_of_its_rows() -> None:
    embedding = nn.Embedding(10, 3, sparse=True)
    embedding(torch.tensor([1, 1, 4])).sum().backward()
    assert embedding.weight.grad is not None
    look = Looks(dict(embedding.named_parameters())).begin(0, True)
    assert look is not None
    look.see_gradients(1.0)
    look.see_weights()
    look.see_update()
    (row,) = look.taken().rows
    assert row.gradient_norm == pytest.approx(embedding.weight.grad.to_dense().norm().item())


# -- histograms ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_a_histogram_is_that_of_numpy(dtype: torch.dtype) -> None:
    torch.manual_seed(2)
    values = torch.randn(997).to(dtype)
    found = histogram(values)
    assert found is not None
    plain = values.float() if dtype.itemsize == 2 else values
    counts, edges = np.histogram(plain.numpy(), BINS)
    assert (found.low, found.high) == pytest.approx((edges[0], edges[-1]))
    assert found.others == 0 and found.counts.sum() == 997
    assert np.abs(found.counts - counts).sum() <= 2  # a number on an edge, by rounding


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.float64])
def test_large_numbers_are_in_bins_of_their_own(dtype: torch.dtype) -> None:
    values = 2**30 + torch.arange(64).to(dtype)
    found = histogram(values)
    assert found is not None
    assert (found.low, found.high) == (2.0**30, 2.0**30 + 63) and found.counts.tolist() == [1] * 64


def test_numbers_that_are_not_finite_are_counted_apart() -> None:
    found = histogram(torch.tensor([1.0, nan, 3.0, inf, -inf]))
    assert found is not None
    assert (found.low, found.high, found.others) == (1.0, 3.0, 3)
    assert found.counts[0] == found.counts[-1] == 1 and found.counts.sum() == 2
    assert histogram(torch.tensor([nan, inf])) is None
    assert histogram(torch.empty(0)) is None


@pytest.mark.parametrize("warns_only", [False, True])
def test_elements_are_counted_in_deterministic_mode_too(monkeypatch, warns_only: bool) -> None:
    """On CUDA torch.histc has no deterministic implementation."""
    histc = torch.histc

    def as_on_cuda(*args) -> torch.Tensor:
        if torch.are_deterministic_algorithms_enabled():
            raise RuntimeError("_histc_cuda does not have a deterministic implementation")
        return histc(*args)

    monkeypatch.setattr(torch, "histc", as_on_cuda)
    torch.use_deterministic_algorithms(True, warn_only=warns_only)
    try:
        found = histogram(torch.tensor([1.0, 2.0, 3.0]))
        assert torch.are_deterministic_algorithms_enabled()
        assert torch.is_deterministic_algorithms_warn_only_enabled() is warns_only
    finally:
        torch.use_deterministic_algorithms(False)
    assert found is not None and found.counts.sum() == 3


def test_gradients_that_are_scaled_are_told_as_they_are() -> None:
    w = nn.Parameter(torch.ones(3))
    w.grad = torch.tensor([-8.0, 2.0, 4.0])
    look = StepLook({"w": w}, 1)
    look.see_gradients(4.0)
    look.see_weights()
    look.see_update()
    (row,), (gradients, weights) = look.taken()
    assert row.gradient_norm == pytest.approx((w.grad / 4).norm().item())
    assert (gradients.low, gradients.high) == (-2.0, 1.0)
    assert (weights.low, weights.high) == (1.0, 1.0)


def test_parameters_without_a_shape_and_sharded_ones_are_left_out() -> None:
    class Sharded(torch.Tensor):
        pass

    named = {
        "lazy": nn.UninitializedParameter(), "w": nn.Parameter(torch.ones(2)),
        "part": nn.Parameter(torch.ones(2).as_subclass(Sharded)),
    }  # fmt: skip
    look = Looks(named).begin(0, by_hand=False)
    assert look is not None
    look.see_weights()
    look.see_update()
    assert [row.name for row in look.taken().rows] == ["w"]


def test_equal_numbers_are_all_in_the_first_bin() -> None:
    found = histogram(torch.zeros(5))
    assert found is not None and (found.low, found.high) == (0.0, 0.0)
    assert found.counts[0] == 5 and found.counts.sum() == 5


def test_a_look_waits_for_the_gpu_before_and_after_so_that_its_time_is_its_own(monkeypatch) -> None:
    now = 0.0
    waits = iter([5.0, 0.25, 3.0, 0.0, 0.0, 0.5])  # what runs when a look begins, and its own

    def synchronize(device: torch.device) -> None:
        nonlocal now
        now += next(waits)

    monkeypatch.setattr("engine.training.looks.looks.perf_counter", lambda: now)
    monkeypatch.setattr(torch.cuda, "synchronize", synchronize)
    w = nn.Parameter(torch.ones(3))
    w.grad = torch.ones(3)
    look = StepLook({"w": w}, 1)
    look._device = torch.device("cuda", 0)
    look.see_gradients(1.0)
    look.see_weights()
    look.see_update()
    assert look.spent_s == 0.75 and next(waits, None) is None
