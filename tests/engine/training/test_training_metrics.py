"""Rows, columns and their thinning."""

from __future__ import annotations

import math
import weakref
from math import nan

import pytest
import torch

from engine.protocol import MAX_SNAPSHOT_BYTES, EpochRow, TrainingSnapshot, encode_snapshot
from engine.training.figures import metrics as module
from engine.training.figures.metrics import (
    HISTORY_EPOCHS,
    HISTORY_ROWS,
    ROWS_PER_SNAPSHOT,
    Diverged,
    EpochTotals,
    Measured,
    Metrics,
    StepRow,
    spread,
    thin,
)
from engine.training.objectives.objective import Outcome


def row(step: int, loss: float) -> StepRow:
    return StepRow(step, loss, 0.5, 1.0, 0.1, 0.3, 400_000_000, 10**10, 2 * 10**10)


def add(
    metrics: Metrics,
    step: int,
    loss: float = 1.0,
    gradients: tuple[float, ...] = (3.0, 4.0),
    measured: Measured | None = None,
) -> None:
    """Add a step of two samples, of which the first is right."""
    scores = torch.tensor([[0.0, 1.0], [0.0, 1.0]]), torch.tensor([1, 0])
    measured = measured or Measured(0.1, (1.0, 1.5), [torch.tensor([g]) for g in gradients])
    metrics.add(step, Outcome(torch.tensor(loss), 2, scores), measured)


def test_a_row_has_the_figures_of_its_step() -> None:
    metrics = Metrics()
    add(metrics, 1)
    add(metrics, 2, loss=2.0, gradients=())
    add(metrics, 3, gradients=(5.0, 12.0))
    metrics.samples_per_second = 64.0
    metrics.flush(rss_bytes=7)
    columns, _ = metrics.drain(with_cuda=False)
    assert columns.step == (1, 2, 3)
    assert columns.loss == (1.0, 2.0, 1.0)
    assert columns.accuracy == (0.5, 0.5, 0.5)
    assert columns.gradient_norm == (5.0, 0.0, 13.0)
    assert columns.step_ms == (500.0, 500.0, 500.0)
    assert columns.rss_bytes == (7, 7, 7)
    assert columns.samples_per_second == (64.0, 64.0, 64.0)
    assert columns.cuda_allocated_bytes == columns.cuda_reserved_bytes == columns.gpu_percent == ()


@pytest.mark.parametrize("reads", [(True, True, True), (False, True, False)])
def test_a_loss_that_was_read_gives_the_same_figures(reads: tuple[bool, ...]) -> None:
    """Also among others that were not. Rows have float32, as torch's losses."""
    losses = torch.tensor([0.1, 2.5, 1e-30], dtype=torch.float64)
    rows = []
    for is_read in ((False, False, False), reads):
        metrics = Metrics()
        for step, (loss, reads_it) in enumerate(zip(losses, is_read, strict=True), 1):
            outcome = Outcome(loss.clone().requires_grad_(), 2)
            metrics.add(
                step, outcome, Measured(0.1, (0.0, 1.0), []), loss.item() if reads_it else None
            )
        metrics.flush(7)
        rows.append((metrics.history, metrics.totals))
    assert rows[0] == rows[1]
    assert [row.loss for row in rows[1][0]] == losses.float().tolist()


def test_a_figure_that_no_row_has_takes_no_column() -> None:
    metrics = Metrics()
    add(metrics, 1)
    metrics.flush(7, gpu_percent=80.0)
    assert metrics.drain(with_cuda=True)[0].samples_per_second == ()
    metrics.samples_per_second = 5.0
    add(metrics, 2)
    metrics.flush(7)
    metrics.tell_again()
    columns, _ = metrics.drain(with_cuda=True)
    assert repr(columns.samples_per_second) == "(nan, 5.0)"
    assert repr(columns.gpu_percent) == "(80.0, nan)"


def test_many_steps_held_give_the_same_figures_as_few(monkeypatch: pytest.MonkeyPatch) -> None:
    together, apart = Metrics(), Metrics()
    for step in range(1, 6):
        add(together, step, loss=step)
    together.flush(0)
    monkeypatch.setattr("engine.training.figures.metrics.MAX_UNREDUCED_BYTES", 0)
    for step in range(1, 6):
        add(apart, step, loss=step)
    apart.flush(0)
    assert together.history == apart.history
    assert len(together.history) == 5


def test_large_gradients_are_not_held_until_the_flush() -> None:
    metrics, gradient = Metrics(), torch.ones(module.MAX_UNREDUCED_BYTES // 4)
    held = weakref.ref(gradient)
    add(metrics, 1, measured=Measured(0.1, (1.0, 1.5), [gradient]))
    del gradient
    assert held() is None
    metrics.flush(0)
    assert metrics.history[0].gradient_norm == math.sqrt(module.MAX_UNREDUCED_BYTES // 4)


def test_gradients_are_held_up_to_the_limit_after_each_reduction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_UNREDUCED_BYTES", 32)
    metrics, gradients = Metrics(), [torch.ones(4) for _ in range(5)]  # 16 bytes each
    held = [weakref.ref(gradient) for gradient in gradients]
    alive = []
    for step in range(5):
        loss = Outcome(torch.ones(()), 1, None)
        metrics.add(step, loss, Measured(0.1, (1.0, 1.5), [gradients.pop(0)]))
        alive.append([each() is not None for each in held[: step + 1]].count(True))
    assert alive == [1, 2, 0, 1, 2]


def test_what_was_drained_does_not_come_again() -> None:
    metrics = Metrics()
    add(metrics, 1)
    metrics.flush(0)
    metrics.end_epoch(1, 1, EpochTotals(1.0, 2, 2))
    steps, epochs = metrics.drain(with_cuda=False)
    assert (steps.step, [e.epoch for e in epochs]) == ((1,), [1])
    steps, epochs = metrics.drain(with_cuda=False)
    assert (steps.step, epochs) == ((), ())


def test_the_rows_before_a_nan_are_kept() -> None:
    metrics = Metrics()
    for step, loss in ((1, 1.0), (2, nan), (3, nan)):
        add(metrics, step, loss)
    with pytest.raises(Diverged, match="nan at step 2"):
        metrics.flush(0)
    assert metrics.drain(with_cuda=False)[0].step == (1,)


def test_thinning_keeps_order_ends_and_extremes() -> None:
    rows = [row(step, loss=float(step % 10)) for step in range(10_000)]
    rows[4321] = row(4321, loss=1e9)
    rows[8765] = row(8765, loss=-1e9)
    kept = thin(rows, ROWS_PER_SNAPSHOT)
    assert len(kept) <= ROWS_PER_SNAPSHOT
    assert kept == sorted(kept)
    assert (kept[0], kept[-1]) == (rows[0], rows[-1])
    assert rows[4321] in kept and rows[8765] in kept
    assert {id(each) for each in kept} <= {id(each) for each in rows}
    assert thin(rows[:200], ROWS_PER_SNAPSHOT) == rows[:200]


def test_epochs_are_spread_evenly() -> None:
    rows = [EpochRow(epoch, epoch, 0.0, 0.0, 0.0, 0.0) for epoch in range(1, 1001)]
    kept = spread(rows, 10)
    assert [r.epoch for r in kept] == [1, 112, 223, 334, 445, 556, 667, 778, 889, 1000]


def test_a_history_is_thinned_when_it_is_longer_than_twice_its_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "HISTORY_ROWS", 10)
    monkeypatch.setattr(module, "HISTORY_EPOCHS", 10)
    metrics, lengths = Metrics(), []
    for step in range(1, 23):
        add(metrics, step)
        metrics.flush(0)
        metrics.end_epoch(step, step, EpochTotals())
        lengths.append((len(metrics.history), len(metrics.epochs)))
    assert lengths[:20] == [(n, n) for n in range(1, 21)]
    rows, epochs = lengths[20]
    assert rows <= 10 and epochs == 10 and lengths[21] == (rows + 1, 11)


def test_a_long_history_stays_bounded_and_fits_one_snapshot() -> None:
    metrics = Metrics()
    for step in range(1, 3 * HISTORY_ROWS):
        add(metrics, step, loss=1 / step)
        metrics.flush(400_000_000, (10**10, 2 * 10**10))
        metrics.end_epoch(step, step, EpochTotals(3 / step, 1, 3, counted=True))
    assert len(metrics.history) <= 2 * HISTORY_ROWS
    assert len(metrics.epochs) <= 2 * HISTORY_EPOCHS

    resumed = Metrics()
    resumed.restore(tuple(metrics.history), tuple(metrics.epochs), metrics.totals)
    steps, epochs = resumed.drain(with_cuda=True)
    assert ROWS_PER_SNAPSHOT < len(steps.step) <= HISTORY_ROWS
    assert (steps.step[0], steps.step[-1]) == (1, 3 * HISTORY_ROWS - 1)
    snapshot = TrainingSnapshot(
        run="r", state="running", step=0, total_steps=0, epoch=1, epochs=1, steps_per_second=0.0,
        remaining_s=None, steps=steps, epoch_rows=epochs, device="cuda:0",
    )  # fmt: skip
    assert len(encode_snapshot(snapshot)) <= MAX_SNAPSHOT_BYTES

    for step in range(3 * HISTORY_ROWS, 3 * HISTORY_ROWS + 2 * ROWS_PER_SNAPSHOT):
        add(resumed, step)
    resumed.flush(0)
    later, _ = resumed.drain(with_cuda=False)  # after the history, as few rows as ever
    assert 4 < len(later.step) <= ROWS_PER_SNAPSHOT and later.step[0] == 3 * HISTORY_ROWS
