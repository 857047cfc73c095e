"""What is asked of batches of any kind, and of the data that gives them."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils.data import (
    DataLoader,
    Dataset,
    RandomSampler,
    Sampler,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
)

from engine.project.document import Loading
from engine.system.errors import LabError
from engine.training.objectives.batches import (
    as_columns,
    batches_of,
    generators_of,
    has_samples,
    in_order,
    is_on,
    length_of,
    moved,
    parts_of,
    repeats_surely,
    samples_in,
    skipped,
    tensors_in,
)
from engine.training.objectives.loaders import Given

CPU, META = torch.device("cpu"), torch.device("meta")
X, Y = torch.arange(20.0).view(10, 2), torch.arange(10)
Pair = namedtuple("Pair", "x y")


@dataclass
class Batch:
    x: Tensor
    name: str
    y: Tensor


class Samples(Dataset):
    def __len__(self) -> int:
        return 10

    def __getitem__(self, row: int) -> tuple[Tensor, int]:
        return X[row], int(Y[row])


class OwnOrder(Sampler[int]):
    def __iter__(self) -> Iterator[int]:
        return iter(range(10))


@pytest.mark.parametrize(
    ("batch", "samples"),
    [
        ([torch.ones(3, 2)], 3),
        ([torch.ones(3, 2), torch.ones(4)], 3),
        ((torch.ones(5, 2), torch.ones(4)), 5),
        ([torch.tensor(1.0), torch.ones(4, 3)], 4),
        ({"n": 7, "x": torch.ones(6, 2)}, 6),
        ([["a", "b", "c"], torch.ones(2)], 2),
        ([torch.tensor(1.0)], 1),
        ([], 1),
        ("text", 1),
        (torch.ones(8, 1), 8),
    ],
)
def test_the_first_tensor_with_a_dim_says_how_many_samples_there_are(
    batch: Any, samples: int
) -> None:
    assert samples_in(batch) == samples


def test_tensors_are_found_in_all_that_holds_them() -> None:
    one, two, three, four = (torch.ones(n) for n in range(1, 5))
    value = {"a": [one, ("text", two)], "b": Batch(three, "c", four), "n": 5}
    assert [len(tensor) for tensor in tensors_in(value)] == [1, 2, 3, 4]
    assert list(tensors_in("text")) == list(tensors_in(None)) == []


def test_moving_keeps_what_is_there_already_and_the_types() -> None:
    assert moved(X, CPU) is X
    there = moved([X, (Y, "a"), Pair(X, 3), {"y": Y}], META)
    assert type(there) is list and type(there[1]) is tuple and type(there[2]) is Pair
    assert all(tensor.device == META for tensor in tensors_in(there))
    assert (there[1][1], there[2].y, list(there[3])) == ("a", 3, ["y"])
    assert there[0].shape == X.shape


def test_skipping_reads_what_comes_before() -> None:
    read: list[int] = []

    def batches() -> Iterator[int]:
        for number in range(4):
            read.append(number)
            yield number

    found = skipped(batches(), 2)
    assert read == [0, 1] and list(found) == [2, 3]
    assert list(skipped([5, 6], 0)) == [5, 6] and list(skipped([5, 6], 3)) == []


@pytest.mark.parametrize(
    ("size", "drop_last", "lengths"),
    [
        (4, False, [4, 4, 2]),
        (4, True, [4, 4]),
        (5, True, [5, 5]),
        (11, False, [10]),
        (11, True, []),
    ],
)
@pytest.mark.parametrize("shuffle", [True, False])
def test_batches_of_tensors_are_as_long_as_a_loaders(
    size: int, drop_last: bool, lengths: list[int], shuffle: bool
) -> None:
    loading = Loading(shuffle=shuffle, drop_last=drop_last)
    batches = batches_of((X, Y), size, loading)
    assert length_of(batches) == len(lengths)
    torch.manual_seed(4)
    found = list(batches)
    torch.manual_seed(4)
    plain = list(DataLoader(TensorDataset(X, Y), size, shuffle=shuffle, drop_last=drop_last))
    assert [len(x) for x, _ in found] == lengths == [len(x) for x, _ in plain]
    assert all(torch.equal(a, b) for one, two in zip(found, plain, strict=True)
               for a, b in zip(one, two, strict=True))  # fmt: skip
    validated = list(in_order((X, Y), size, loading))  # all of them, as they lie
    assert torch.equal(torch.cat([x for x, _ in validated]), X)


def test_a_dataset_is_loaded_in_training_as_it_says_and_else_in_its_order() -> None:
    loading = Loading(shuffle=False, drop_last=True)
    assert [x.tolist() for x, _ in batches_of(Samples(), 4, loading)] == [
        X[:4].tolist(), X[4:8].tolist(),
    ]  # fmt: skip
    assert [len(x) for x, _ in in_order(Samples(), 4, loading)] == [4, 4, 2]
    torch.manual_seed(1)
    mixed = torch.cat([x for x, _ in batches_of(Samples(), 4)])
    torch.manual_seed(1)
    assert torch.equal(mixed, torch.cat([x for x, _ in DataLoader(Samples(), 4, shuffle=True)]))
    listed = [(x, int(y)) for x, y in zip(X, Y, strict=True)]
    assert torch.equal(torch.cat([x for x, _ in in_order(listed, 4)]), X)


def test_workers_or_objects_take_tensors_by_a_loader() -> None:
    found = batches_of((X, Y), 4, Loading(workers=0, shuffle=False))
    assert isinstance(found, DataLoader) and torch.equal(torch.cat([x for x, _ in found]), X)
    assert isinstance(batches_of((X, Y), 4, given=Given(generator=torch.Generator())), DataLoader)
    assert not isinstance(batches_of((X, Y), 4), DataLoader)


def test_a_function_is_called_for_each_epoch() -> None:
    calls: list[int] = []

    def function() -> list[Tensor]:
        calls.append(1)
        return [X]

    found = batches_of(function, 4)
    assert length_of(found) is None and not calls
    assert [len(list(found)), len(list(found)), len(calls)] == [1, 1, 2]


def test_columns_are_tensors_or_arrays_of_one_length() -> None:
    for data in ((X, Y), [X, Y.numpy()], TensorDataset(X, Y)):
        columns = as_columns(data)
        assert columns is not None and [tuple(each.shape) for each in columns] == [(10, 2), (10,)]
    for data in (X, X.numpy(), (X,)):
        columns = as_columns(data)
        assert columns is not None and [tuple(each.shape) for each in columns] == [(10, 2)]
    for data in ((), [], [X, "text"], "text", {"x": X}, Samples(), 3):
        assert as_columns(data) is None
    with pytest.raises(LabError, match="an array of <U1, which no tensor can hold") as raised:
        as_columns(np.array(["a", "b"]))
    assert raised.value.hint.startswith("Give numbers")


class Keyed(dict):
    pass


@pytest.mark.parametrize(
    ("data", "has"),
    [
        ([(X[0], 1), (X[1], 0)], True),
        ([{"x": X[0], "y": 1}], True),
        ([("a", "b")], True),
        ([(X[0], np.float32(1.0))], True),
        ([(X[0], torch.tensor(1))], True),
        ([(X[0], 1.5)], True),
        ([(X, Y)], False),
        ([{"x": X}], False),
        ([X], False),
        ([], False),
        ("text", False),
        (b"bytes", False),
        ({0: (X[0], 1)}, False),
        (5, False),
    ],
)
def test_samples_have_a_part_that_is_one_number_or_text(data: Any, has: bool) -> None:
    assert has_samples(data) is has


def test_what_has_other_keys_than_numbers_has_no_samples() -> None:
    class Table:
        def __len__(self) -> int:
            return 3

        def __getitem__(self, key: str) -> Any:
            raise KeyError(key)

    assert not has_samples(Table())


def test_only_tensors_in_memory_are_known_to_be_on_a_device() -> None:
    own = batches_of((X, Y), 4)
    assert is_on(own, CPU) and not is_on(own, META) and not is_on(own, None)
    assert not is_on(DataLoader(TensorDataset(X)), CPU)
    assert not is_on(batches_of((X, Y.to(META)), 4), CPU)


@pytest.mark.parametrize(
    ("batches", "surely"),
    [
        (batches_of((X, Y), 4), True),
        (DataLoader(TensorDataset(X), 4), True),
        (DataLoader(TensorDataset(X), 4, shuffle=True), True),
        (DataLoader(TensorDataset(X), 4, sampler=OwnOrder()), False),
        (DataLoader(TensorDataset(X), 4, sampler=WeightedRandomSampler([1.0] * 10, 10)), False),
        (DataLoader(TensorDataset(X), 4, collate_fn=list), False),
        (DataLoader(Samples(), 4), False),
        (DataLoader(TensorDataset(X), None), False),
        ([X], False),
    ],
)
def test_torch_alone_makes_batches_of_tensors_in_a_usual_order(batches: Any, surely: bool) -> None:
    assert repeats_surely(batches) is surely


def test_generators_are_found_in_what_lies_inside() -> None:
    inner, outer, deep, own = (torch.Generator() for _ in range(4))
    dataset = Samples()
    dataset.drawn = deep  # pyright: ignore[reportAttributeAccessIssue]
    part = Subset(dataset, [0, 1])
    part.also = own  # pyright: ignore[reportAttributeAccessIssue]
    loader = DataLoader(part, 2, sampler=RandomSampler(part, generator=inner), generator=outer)
    assert generators_of(loader, loader) == (outer, inner, own, deep)
    assert generators_of((), None, [X]) == ()


@pytest.mark.parametrize("shuffle", [True, False])
def test_the_rows_of_a_rank_are_every_nth_of_the_same_batches(shuffle: bool) -> None:
    batches = batches_of((X, Y), 4, Loading(shuffle=shuffle))
    torch.manual_seed(2)
    whole = list(batches)
    for rank in range(3):
        parts = parts_of(batches, rank, 3)
        assert parts is not None
        torch.manual_seed(2)
        for part, (x, y) in zip(parts, whole, strict=True):
            own = y[rank::3]
            assert (part.rows, part.samples) == (len(own), len(y))
            kept = slice(rank, None, 3) if len(own) else slice(0, 1)
            assert torch.equal(part.batch[0], x[kept]) and torch.equal(part.batch[1], y[kept])
    assert parts_of([X, X], 0, 2) is None
