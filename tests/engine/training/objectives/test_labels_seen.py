"""A label out of range is told before a GPU gets it, in any step of a run."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.recording import kernel_asserts
from engine.training.objectives.code_objective import CodeObjective

CPU = torch.device("cpu")


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """Tensors of the CPU count as on a GPU. The tensors that are read once they are there."""
    found: list[Tensor] = []
    read = kernel_asserts._limits_of
    known = kernel_asserts.known_limits
    monkeypatch.setattr(kernel_asserts, "is_on_gpu", lambda t: True)
    for place in ("batches", "code_objective"):
        monkeypatch.setattr(f"engine.training.objectives.{place}.is_gpu", lambda device: True)

    def limits_of(t: Tensor) -> tuple[float, float]:
        if known(t) is None:
            found.append(t)
        return read(t)

    monkeypatch.setattr(kernel_asserts, "_limits_of", limits_of)
    return found


def steps(
    labels: list[list[int]], loss: Callable[[Tensor, Tensor], Tensor] = F.cross_entropy
) -> None:
    """Steps of a run, each on a batch with these labels, of 3 classes."""
    net = nn.Linear(2, 3)
    batches = [(torch.ones(len(each), 2), torch.tensor(each)) for each in labels]
    objective = CodeObjective(lambda batch: loss(net(batch[0]), batch[1]), batches)
    objective.to(CPU)
    for batch in objective.batches(0, 0):
        objective.outcome(batch)


@pytest.mark.parametrize("wrong", [3, 7, -1, -50])
@pytest.mark.parametrize("before", [[[0, 2]] * 9, [[0, 1], [2, -100]] * 4, [[-100, -100]]])
def test_a_label_is_told_as_on_the_cpu_in_a_late_step(
    reads: list[Tensor], monkeypatch: pytest.MonkeyPatch, before: list[list[int]], wrong: int
) -> None:
    told: list[str] = []
    for is_checked in (True, False):
        if not is_checked:
            monkeypatch.setattr(kernel_asserts, "is_on_gpu", lambda t: False)
        for last in ([1, wrong], [-100, wrong]):
            with pytest.raises(IndexError) as raised:
                steps([*before, last])
            told.append(str(raised.value))
            frames = [entry.name for entry in raised.traceback]
            assert ("_labels" in frames) is is_checked
    assert told == [f"Target {wrong} is out of bounds."] * 4


def test_steps_with_labels_in_range_wait_for_nothing(reads: list[Tensor]) -> None:
    steps([[0, 1], [0, 2], [2, 1], [1, -100], [-100, -100]])
    assert not reads


def test_what_a_step_makes_of_labels_is_read_only_where_they_have_new_numbers(
    reads: list[Tensor],
) -> None:
    steps([[0, 1], [1, 0], [0, 0], [2, 0], [1, 2]], lambda p, y: F.cross_entropy(p, y + 0))
    assert [t.tolist() for t in reads] == [[0, 1], [2, 0]]
    with pytest.raises(IndexError, match="Target 3 is out of bounds"):
        steps([[0, 1], [1, 0], [2, 0], [1, 3]], lambda p, y: F.cross_entropy(p, y + 0))


def test_labels_that_a_step_leaves_out_are_no_mistake(reads: list[Tensor]) -> None:
    steps([[0, 1], [9, 2], [8, 1]], lambda p, y: F.cross_entropy(p[y < 3], y[y < 3]))


def test_an_index_that_a_table_lacks_is_told(reads: list[Tensor]) -> None:
    table = nn.Embedding(5, 3)
    steps([[0, 4], [2, 3]], lambda p, y: table(y).sum())
    with pytest.raises(IndexError, match="index out of range in self"):
        steps([[0, 4], [2, 3], [5, 1]], lambda p, y: table(y).sum())
