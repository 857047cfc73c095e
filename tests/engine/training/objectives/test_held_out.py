"""A share of the user's own data for validation, against scikit-learn's split."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.model_selection import train_test_split
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from engine.project.document import DataSetup, replace
from engine.system.errors import LabError
from engine.training.objectives.code_data import CodeData
from engine.training.objectives.held_out import rows_of

X, LABELS = torch.arange(60.0).view(30, 2), torch.arange(30) % 5 // 2
NUMBERS = X.sum(1)
NAME = "Name a Dataset or tensors"
SETUP = DataSetup(hold_out=True, validation_fraction=0.3, split_seed=4)


class Samples(Dataset):
    """Says its classes without a sample being read."""

    targets = LABELS.tolist()
    read = 0

    def __len__(self) -> int:
        return 30

    def __getitem__(self, row: int) -> tuple[Tensor, int]:
        self.read += 1
        return X[row], int(LABELS[row])


class Unknown(Samples):
    targets: Any = None


class Endless(Dataset):
    def __getitem__(self, row: int) -> Tensor:
        return X[row % 30]


class Stream(IterableDataset):
    def __iter__(self) -> Any:
        return iter(X)


@pytest.mark.parametrize(
    ("data", "has_classes"),
    [
        ((X, LABELS), True),
        ((X, LABELS[:, None]), True),
        ([X.numpy(), LABELS.numpy()], True),
        (TensorDataset(X, LABELS), True),
        (Samples(), True),
        ([(x, int(y)) for x, y in zip(X, LABELS, strict=True)], True),
        ((X, NUMBERS), False),
        (X, False),
        (Unknown(), False),
        ([{"x": x, "n": 1} for x in X], False),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("stratified", [True, False])
def test_the_rows_are_those_of_scikit_learn(data: Any, has_classes: bool, stratified: bool) -> None:
    classes = LABELS.numpy() if has_classes and stratified else None
    wanted = train_test_split(np.arange(30), test_size=0.3, random_state=4, stratify=classes)
    rows = rows_of(data, replace(SETUP, stratified=stratified))
    assert [part.tolist() for part in rows] == [part.tolist() for part in wanted]
    if isinstance(data, Samples):
        assert data.read == 0


def first_parts(batches: Any) -> list[float]:
    """The first number of each sample."""
    return [float(x[0]) for batch in batches for x in batch[0]]


@pytest.mark.parametrize("data", [(X, LABELS), Samples()], ids=["tensors", "Dataset"])
def test_the_batches_are_of_both_parts(data: Any) -> None:
    found = CodeData(data, None, 4, share=SETUP)
    rows = rows_of(data, SETUP)
    assert first_parts(found.validation_batches()) == (2.0 * rows.validation).tolist()
    assert sorted(first_parts(found.batches(0, 0))) == sorted((2.0 * rows.training).tolist())
    assert (found.validation_samples, found.batches_per_epoch) == (9, 6)


def test_data_that_is_named_for_validation_goes_first() -> None:
    found = CodeData((X, LABELS), (X[:2], LABELS[:2]), 4, share=SETUP)
    assert (found.rows, found.validation_samples, found.batches_per_epoch) == (None, 2, 8)


@pytest.mark.parametrize(
    ("data", "words", "hint"),
    [
        (DataLoader(TensorDataset(X, LABELS)), "No share of a DataLoader can be held out", NAME),
        (lambda: iter([X]), "No share of a function", NAME),
        (Stream(), "No share of a Stream", NAME),
        (Endless(), "No share of a Endless", NAME),
        ([X[:4], X[:5]], "different numbers of samples", "Dim 0 counts"),
        ((X[:3], torch.tensor([0, 1, 2])), "every class needs samples", ""),
    ],
)
def test_what_cannot_be_split_is_refused(data: Any, words: str, hint: str) -> None:
    with pytest.raises(LabError, match=words) as raised:
        rows_of(data, SETUP)
    assert raised.value.hint.startswith(hint)
