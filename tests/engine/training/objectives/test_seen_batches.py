"""Whether data gives the same batches again: what a run notes of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
import torch

from engine.training.objectives import seen_batches
from engine.training.objectives.seen_batches import MAX_READ, Place, SeenBatches, digest_of

A, B, C = (torch.full((4,), float(n)) for n in range(3))
OWNER = object()


def seen(found: SeenBatches, batches: Iterable[Any], epoch: int = 0, owner: object = OWNER) -> int:
    """Run a pass; the number of batches that came."""
    return sum(1 for _ in found.noted(batches, epoch, owner))


def test_the_first_batch_that_is_another_than_before_is_told() -> None:
    found = SeenBatches()
    assert seen(found, [A, B, C]) == 3 and seen(found, [A, B, C]) == 3
    assert found.other is None
    seen(found, [A, C, A])
    assert found.other == Place(0, 1)
    seen(found, [B, C, A])
    assert found.other == Place(0, 1)  # the first one since the run went on
    found.expect(0, 0)
    assert found.other is None
    seen(found, [B, C, B])
    assert found.other == Place(0, 2)  # each is compared with the newest


def test_epochs_are_compared_with_themselves() -> None:
    found = SeenBatches()
    seen(found, [A, B], 0)
    seen(found, [B, A], 1)
    seen(found, [A, B], 0)
    assert found.other is None
    seen(found, [B, B], 1)
    assert found.other == Place(1, 1)


def test_a_pass_that_goes_further_or_ends_sooner_is_no_other() -> None:
    found = SeenBatches()
    seen(found, [A])
    seen(found, [A, B, C])
    seen(found, [A, B])
    assert found.other is None
    seen(found, [A, B, B])
    assert found.other == Place(0, 2)


def test_other_data_begins_anew() -> None:
    found, other = SeenBatches(), object()
    seen(found, [A, B])
    seen(found, [B, A], owner=other)
    seen(found, [A, B])
    assert found.other is None


def test_the_digest_is_of_all_batches_of_the_pass_so_far() -> None:
    found = SeenBatches()
    digests = []
    for number, _ in enumerate(found.noted([A, B, C], 0, OWNER), 1):
        digests.append(found.digest(number))
        assert found.digest(number + 1) == 0
    assert len(set(digests)) == 3 and 0 not in digests
    seen(found, [B, A])
    assert found.digest(2) not in (0, digests[1])  # their order counts
    seen(found, [A, B])
    assert found.digest(2) == digests[1]


def test_a_run_that_goes_on_elsewhere_expects_the_batches_of_before() -> None:
    first = SeenBatches()
    seen(first, [A, B])
    digest = first.digest(2)
    same, other, early = SeenBatches(), SeenBatches(), SeenBatches()
    for each in (same, other, early):
        each.expect(2, digest)
    seen(same, [A, B, C])
    assert same.other is None
    seen(other, [A, C, C], epoch=3)
    assert other.other == Place(3, 1)
    seen(early, [C])  # it ends before
    assert early.other is None
    unknown = SeenBatches()
    unknown.expect(2, 0)
    seen(unknown, [C, C])
    assert unknown.other is None


def test_only_the_first_pass_is_held_up_to_what_was_expected() -> None:
    found = SeenBatches()
    seen(found, [A, B])
    found.expect(2, found.digest(2))
    seen(found, [A, B], 1)
    seen(found, [C, C], 2)
    assert found.other is None


def test_only_so_many_batches_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen_batches, "MAX_KEPT", 3)
    found = SeenBatches()
    seen(found, [A, B, C, A, B])
    seen(found, [A, B, C, B, A])
    assert found.other is None  # beyond what is kept
    seen(found, [A, B, A])
    assert found.other == Place(0, 2)


def test_of_too_many_epochs_every_second_one_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen_batches, "MAX_EPOCHS", 4)
    found = SeenBatches()
    for epoch in range(4):
        seen(found, [A], epoch)
    seen(found, [A], 4)
    kept = []
    for epoch in (0, 1, 2, 3):
        other = SeenBatches()
        other._epochs, other._owner = {n: v[:] for n, v in found._epochs.items()}, OWNER
        seen(other, [B], epoch)
        kept.append(other.other is not None)
    assert kept == [True, False, True, False]


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (A, B),
        (A.reshape(2, 2), A),
        ((A, B), (B, A)),
        ({"x": A}, {"x": B}),
        (torch.ones(3, dtype=torch.bfloat16), torch.zeros(3, dtype=torch.bfloat16)),
        (torch.ones(3, requires_grad=True), torch.zeros(3, requires_grad=True)),
        (torch.tensor([1 + 2j]).conj(), torch.tensor([1 - 3j])),
        (torch.arange(2 * MAX_READ), torch.arange(2 * MAX_READ).roll(2)),
    ],
)
def test_the_digest_tells_batches_apart(one: Any, two: Any) -> None:
    assert digest_of(one) != digest_of(two)
    assert digest_of(one) == digest_of(one) and 0 <= digest_of(one) < 2**32


def test_of_a_large_tensor_elements_at_equal_distances_count() -> None:
    x = torch.zeros(2 * MAX_READ)
    before = digest_of(x)
    x[1] = 1
    assert digest_of(x) == before
    x[2] = 1
    assert digest_of(x) != before
    small = torch.zeros(MAX_READ)
    before = digest_of(small)
    small[1] = 1
    assert digest_of(small) != before
    across = torch.zeros(4, MAX_READ).t()  # not contiguous
    before = digest_of(across)
    across[1, 0] = 1
    assert digest_of(across) != before


def test_sparse_tensors_and_what_is_no_tensor_count_for_nothing() -> None:
    assert digest_of([A.to_sparse(), "text", 3, np.ones(2)]) == digest_of([]) == 0
    assert digest_of([A.to_sparse(), B]) == digest_of([B])
    assert digest_of(torch.ones(3, device="meta")) == digest_of(torch.zeros(3, device="meta")) != 0
