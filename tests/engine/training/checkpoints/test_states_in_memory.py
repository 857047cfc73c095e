"""States in memory: which are kept, that they are copies, and which of them leads to a step."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.project.document import TrainingSetup
from engine.project.subject import CanvasSubject
from engine.protocol import EpochRow
from engine.training.checkpoints import states_in_memory
from engine.training.checkpoints.best_epoch import BestEpoch
from engine.training.checkpoints.checkpoint_fields import Checkpoint
from engine.training.checkpoints.past import Past
from engine.training.checkpoints.run_states import RunStates
from engine.training.checkpoints.states_in_memory import KeptStates, size_of
from engine.training.figures.metrics import EpochTotals, StepRow
from engine.training.objectives.epoch_metrics import MetricStates

WEIGHTS = 25  # float32: 100 bytes


def state(step: int, value: float = 0.0, **fields: Any) -> Checkpoint:
    """The state of a run at a step, with `WEIGHTS` weights of one value."""
    whole = {
        "run": "run", "setup": TrainingSetup(), "subject": CanvasSubject(), "optimizer": {},
        "model": {"weight": torch.full((WEIGHTS,), value), "count": torch.tensor(step)},
        "rng": {}, "epoch_rng": {}, "epoch": 0, "batch": 0, "step": step,
        "totals": EpochTotals(), "history": (), "epoch_rows": (),
    }  # fmt: skip
    return Checkpoint(**{**whole, **fields})


def steps_of(states: KeptStates) -> list[int]:
    return [step for step in range(1000) if (found := states.newest(step)) and found.step == step]


def kept(*steps: int, limit: int = states_in_memory.MAX_STATES) -> KeptStates:
    states = KeptStates(limit)
    for step in steps:
        assert states.add(state(step))
    return states


def test_the_newest_state_at_a_step_or_before_it() -> None:
    states = kept(2, 5, 9)
    assert states.newest(1) is None
    assert [states.newest(step).step for step in (2, 4, 5, 8, 9, 100)] == [2, 2, 5, 5, 9, 9]
    assert steps_of(states.until(5)) == [2, 5] and steps_of(states) == [2, 5, 9]


def test_one_of_the_same_step_is_replaced_and_later_ones_go() -> None:
    states = kept(2, 5, 9)
    states.add(state(5, value=3.0))
    assert steps_of(states) == [2, 5]
    assert states.newest(7).model["weight"][0] == 3.0


def test_a_state_is_a_copy() -> None:
    """The run changes its tensors in place while it goes on."""
    moments = {"state": {0: {"exp_avg": torch.zeros(3), "old": [torch.zeros(2)]}}}
    live = state(
        1, optimizer=moments, rng={"cpu": torch.zeros(4)}, epoch_rng={"cpu": torch.zeros(4)},
        gradients={"weight": torch.zeros(3)}, averaged={"weight": torch.zeros(3)},
    )  # fmt: skip
    states = KeptStates()
    states.add(live)
    entry = live.optimizer["state"][0]
    for tensor in (
        live.model["weight"], entry["exp_avg"], entry["old"][0], live.rng["cpu"],
        live.epoch_rng["cpu"], live.gradients["weight"], live.averaged["weight"],
    ):  # fmt: skip
        tensor.fill_(7.0)
    copy = states.newest(1)
    entry = copy.optimizer["state"][0]
    for tensor in (
        copy.model["weight"], entry["exp_avg"], entry["old"][0], copy.rng["cpu"],
        copy.epoch_rng["cpu"], copy.gradients["weight"], copy.averaged["weight"],
    ):  # fmt: skip
        assert not tensor.any()


def test_beyond_the_bound_one_goes_whose_neighbours_are_closest() -> None:
    assert steps_of(kept(0, 10, 20, 21, limit=4)) == [0, 10, 20, 21]
    assert steps_of(kept(0, 10, 20, 21, 40, limit=4)) == [0, 10, 21, 40]  # 10 and 21: 11 apart
    assert steps_of(kept(0, 1, 2, 30, 60, limit=4)) == [0, 2, 30, 60]


def test_states_of_a_long_run_are_spread_over_it() -> None:
    states = KeptStates()
    for step in range(500):
        states.add(state(step))
        steps = sorted({states.newest(at).step for at in range(step + 1)})
        assert len(steps) <= states_in_memory.MAX_STATES
        assert (steps[0], steps[-1]) == (0, step)
    assert max(later - step for step, later in pairwise(steps)) <= 64


def test_the_past_that_all_states_tell_is_bounded() -> None:
    states = KeptStates()
    rows = [StepRow(step, 1.0, 0.5, 1.0, 0.1, 1.0, 1, 0, 0) for step in range(200_000)]
    epochs = [EpochRow(epoch, epoch, 1.0, 0.5, 1.0, 0.5) for epoch in range(50_000)]
    for step in range(4000, 200_001, 4000):  # each has rows that no other has
        past = tuple(rows[step - 4000 : step]), tuple(epochs[step // 4 - 1000 : step // 4])
        states.add(state(step, history=past[0], epoch_rows=past[1]))
        newest = states.newest(step)
        assert (newest.history[0], newest.history[-1]) == (past[0][0], past[0][-1])
        assert (newest.epoch_rows[0], newest.epoch_rows[-1]) == (past[1][0], past[1][-1])
    found = [states.newest(step) for step in range(4000, 200_001, 4000)]
    told = {id(row) for each in found for row in (*each.history, *each.epoch_rows)}
    assert len(told) <= states_in_memory.MAX_STATES * 1250


def test_all_together_have_a_bound_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    size = size_of(state(0))
    monkeypatch.setattr(states_in_memory, "MAX_BYTES", 3 * size)
    assert steps_of(kept(0, 10, 20)) == [0, 10, 20]
    assert steps_of(kept(0, 10, 20, 30)) == [0, 20, 30]
    monkeypatch.setattr(states_in_memory, "MAX_BYTES", 2 * size)
    assert steps_of(kept(0, 10, 20)) == [0, 20]  # of half the bound each: two fit
    monkeypatch.setattr(states_in_memory, "MAX_BYTES", 2 * size - 1)
    monkeypatch.setattr(states_in_memory, "_copied", lambda value: pytest.fail("it was copied"))
    states = KeptStates()
    assert not states.add(state(0)) and states.newest(9) is None


def test_one_that_is_too_large_leaves_none_of_a_later_step(monkeypatch: pytest.MonkeyPatch) -> None:
    states = kept(2, 5, 9)
    monkeypatch.setattr(states_in_memory, "MAX_BYTES", 100)
    assert not states.add(state(5))
    assert steps_of(states) == [2]


def test_the_size_is_that_of_all_tensors() -> None:
    best = BestEpoch(
        figure="train loss", epoch=1, step=1, value=0.5, reference=0.5, waited=0,
        weights={"weight": torch.zeros(3, dtype=torch.float64)},
    )  # fmt: skip
    whole = state(
        0,
        model={"weight": torch.zeros(5), "mask": torch.zeros(3, dtype=torch.bool)},
        optimizer={"state": {0: {"exp_avg": torch.zeros(7), "step": 3, "old": [torch.zeros(2)]}}},
        gradients={"weight": torch.zeros(11)},
        averaged={"weight": torch.zeros(13)},
        best=best,
        metrics=MetricStates({"f1": 0}, [{"sums": [torch.zeros(17)]}]),
    )
    assert size_of(whole) == 4 * (5 + 7 + 2 + 11 + 13 + 17) + 3 + 3 * 8


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_the_newest_state_whose_weights_are_finite(number: float) -> None:
    states = kept(2, 5)
    states.add(state(9, value=number))
    assert states.newest_finite(20).step == 5
    assert states.newest_finite(4).step == 2
    assert states.newest_finite(1) is None


# -- of a run -----------------------------------------------------------------------------------


@pytest.fixture
def run_states(tmp_path: Path) -> RunStates:
    found = RunStates(lambda: tmp_path, "objective")  # pyright: ignore[reportArgumentType]
    for step in (0, 4, 8):
        found.add(state(step), lambda: True)
    return found


def test_a_state_before_a_break_does_not_lead_behind_it(run_states: RunStates) -> None:
    run_states.past = Past().broken(4).broken(6).broken(4)
    assert run_states.past.breaks == (4, 6)
    assert [s and s.step for s in map(run_states.newest, (3, 4, 5, 6, 7, 8))] == [
        0, 4, 4, None, None, 8,
    ]  # fmt: skip
    assert run_states.newest_finite(5).step == 4 and run_states.newest_finite(7) is None


def test_a_state_of_other_code_does_not_lead_on() -> None:
    past = Past(since=4)
    assert not past.leads(3, 5) and past.leads(4, 5)


def test_of_a_run_that_goes_back_the_past_before_the_step_is_left() -> None:
    slower = TrainingSetup(batch_size=7)
    past = Past(since=1).changed(2, slower).changed(5, slower).broken(2).broken(5)
    before = past.until(5)  # the change came after step 5, the break at it
    assert [change.step for change in before.changes] == [2]
    assert (before.breaks, before.since) == ((2, 5), 1)
    assert past.until(4).breaks == (2,)


def test_a_run_that_goes_back_has_the_objective_of_the_steps_there(
    run_states: RunStates, tmp_path: Path
) -> None:
    run_states.objectives += [(4, "second"), (8, "third")]  # pyright: ignore
    assert [run_states.objective_at(step) for step in (0, 3, 4, 7, 8)] == [
        "objective", "objective", "second", "second", "third",
    ]  # fmt: skip
    back = run_states.until(4, lambda: tmp_path / "later")
    assert back.objectives == [(0, "objective"), (4, "second")]
    assert (back.newest(9).step, run_states.newest(9).step) == (4, 8)
