"""The batches of a set-up's data, against the data set's own rows."""

from __future__ import annotations

from typing import Any, cast

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, SequentialSampler

from engine.datasets.dataset import epoch_order
from engine.project.document import DataSetup, Loading, TrainingSetup, replace
from engine.system.errors import LabError
from engine.training.objectives import catalogue_data
from engine.training.objectives.catalogue_data import CatalogueData
from engine.training.objectives.loaders import Given
from engine.training.objectives.seen_batches import SeenBatches

META = torch.device("meta")
MOONS = DataSetup("moons", {"samples": 100})
SETUP = TrainingSetup(data=MOONS, batch_size=32, seed=7)


def loading(**fields: Any) -> TrainingSetup:
    return replace(SETUP, data=replace(MOONS, loading=Loading(**fields)))


def equal(one: Any, two: Any) -> bool:
    pairs = list(zip(one, two, strict=True))
    return all(torch.equal(a, c) and torch.equal(b, d) for (a, b), (c, d) in pairs)


def plain(data: CatalogueData, epoch: int) -> list[tuple[Tensor, Tensor]]:
    rows = epoch_order(80, 7, epoch).split(32)
    return [(data.dataset.x_train[each], data.dataset.y_train[each]) for each in rows]


@pytest.mark.parametrize("first", [0, 1, 2])
@pytest.mark.parametrize("way", ["together", "singly", "loaded"])
def test_each_way_gives_the_batches_of_the_order(
    way: str, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "singly":
        monkeypatch.setattr(catalogue_data, "PICKED_BYTES", 0)
    data = CatalogueData(loading(workers=0) if way == "loaded" else SETUP)
    before = torch.get_rng_state()
    for epoch in (0, 1, 0):
        assert equal(data.batches(epoch, first), plain(data, epoch)[first:])
    assert torch.equal(torch.get_rng_state(), before)
    assert data.batches_per_epoch == 3 and data.repeats and not data.draws_by_code
    data.close()


def test_as_many_whole_batches_as_the_limit_allows_are_picked_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = CatalogueData(SETUP)
    of_batch = 32 * 2 * 4
    for limit, together in ((1, 32), (2 * of_batch - 1, 32), (2 * of_batch, 64), (1 << 20, 80)):
        monkeypatch.setattr(catalogue_data, "PICKED_BYTES", limit)
        x, y = next(data.batches(0, 0))
        assert x.untyped_storage().nbytes() == together * 2 * 4
        assert y.untyped_storage().nbytes() == together * y.element_size()


def test_the_last_batch_is_dropped_if_the_setup_says_so() -> None:
    data = CatalogueData(loading(drop_last=True))
    assert [len(x) for x, _ in data.batches(0, 0)] == [32, 32] and data.batches_per_epoch == 2
    with pytest.raises(LabError, match=r"80 samples make no batch of 81\.") as raised:
        CatalogueData(replace(loading(drop_last=True), batch_size=81))
    assert raised.value.hint.startswith("Make batch_size smaller")
    assert CatalogueData(replace(SETUP, batch_size=81)).batches_per_epoch == 1


def test_each_part_comes_in_its_order() -> None:
    data = CatalogueData(replace(SETUP, batch_size=8))
    dataset = data.dataset
    found = list(data.in_order(is_validation=True))
    assert [len(x) for x, _ in found] == [8, 8, 4]
    assert equal(found, zip(dataset.x_val.split(8), dataset.y_val.split(8), strict=True))
    assert equal(data.validation_batches(), found)
    trained = zip(dataset.x_train.split(8), dataset.y_train.split(8), strict=True)
    assert equal(data.in_order(is_validation=False), trained)
    assert data.validation_samples == 20


def test_samples_in_memory_lie_on_the_device_and_loaded_ones_go_there() -> None:
    data = CatalogueData(SETUP)
    data.to(META)
    assert data.dataset.x_train.device == META
    loaded = CatalogueData(loading(workers=0))
    loaded.to(META)
    assert loaded.dataset.x_train.device.type == "cpu"
    given = CatalogueData(SETUP, Given(sampler=SequentialSampler))
    given.to(META)
    assert given.dataset.x_train.device.type == "cpu"
    for each in (loaded, given):
        assert {part.device for batch in each.batches(0, 0) for part in batch} == {META}
        assert {part.device for batch in each.validation_batches() for part in batch} == {META}


def test_objects_of_the_users_code_make_the_order() -> None:
    data = CatalogueData(SETUP, Given(sampler=SequentialSampler))
    dataset = data.dataset
    expected = list(zip(dataset.x_train.split(32), dataset.y_train.split(32), strict=True))
    assert equal(data.batches(0, 0), expected) and equal(data.batches(1, 2), expected[2:])
    assert data.draws_by_code and data.batches_per_epoch == 3 and data.generators == ()
    own = torch.Generator()
    assert CatalogueData(SETUP, Given(generator=own)).generators == (own,)
    seen = SeenBatches()
    list(data.batches(0, 0, seen))
    assert seen.digest(3) != 0
    plain_set = CatalogueData(SETUP)
    list(plain_set.batches(0, 0, seen := SeenBatches()))
    assert seen.digest(3) == 0  # torch alone makes them


@pytest.mark.parametrize(
    "collated", [lambda samples: 3, lambda samples: [1, 2], lambda samples: (torch.ones(2),)]
)
def test_what_is_no_pair_of_tensors_is_told(collated: Any) -> None:
    data = CatalogueData(SETUP, Given(collate_fn=collated))
    with pytest.raises(LabError, match="gives no pair of tensors") as raised:
        next(data.batches(0, 0))
    assert raised.value.hint == "Let it return (x, y)."


def test_a_balanced_order_takes_no_objects() -> None:
    with pytest.raises(LabError, match="balanced says itself which samples come") as raised:
        CatalogueData(loading(balanced=True), Given(generator=torch.Generator()))
    assert "WeightedRandomSampler" in raised.value.hint


def test_workers_that_stay_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    data, kept = CatalogueData(loading(workers=0)), DataLoader(cast(Any, [1]), num_workers=1,
                                                               persistent_workers=True)  # fmt: skip
    data._loader = kept
    kept._iterator = object()  # pyright: ignore[reportAttributeAccessIssue]
    data.close()
    assert kept._iterator is None
