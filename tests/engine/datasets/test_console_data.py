"""Data of the console as a data set: of each form, with the words for what cannot be used."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from engine.datasets.console_values import values_of
from engine.datasets.dataset import Dataset as Loaded
from engine.datasets.load import load_dataset
from engine.datasets.samples import DataProblem
from engine.project.document import DataSetup

generator = torch.Generator().manual_seed(0)
X = torch.randn(20, 3, generator=generator)
LABELS = torch.arange(20) % 2 + 5
NUMBERS = torch.randn(20, generator=generator)


class Pairs(Dataset):
    def __len__(self) -> int:
        return 20

    def __getitem__(self, row: int) -> tuple[Tensor, int]:
        return X[row], int(LABELS[row])


class Stream(IterableDataset):
    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        return iter(zip(X, LABELS, strict=True))


class Sequences(Dataset):
    """Ids of different lengths, and the class of each sequence."""

    rows = (torch.tensor([1, 2]), torch.tensor([3]), torch.tensor([4, 5, 6]), torch.tensor([7, 8]))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, row: int) -> tuple[Tensor, Tensor]:
        return self.rows[row], torch.tensor(row % 2)


class Unsized(Dataset):
    def __getitem__(self, row: int) -> Tensor:
        return X[row]


class Broken(Pairs):
    def __getitem__(self, row: int) -> tuple[Tensor, int]:
        raise OSError("the disk is gone")


def loaded(data: object, stamp: object = None, **params) -> Loaded:
    setup = DataSetup("console", params, validation_fraction=0.0, path="data")
    with values_of(lambda _: data, lambda: stamp or object()):
        return load_dataset(setup)


@pytest.mark.parametrize(
    "data",
    [
        (X, LABELS),
        [X, LABELS[:, None]],
        TensorDataset(X, LABELS),
        Pairs(),
        Stream(),
        DataLoader(Pairs(), 6, shuffle=True),
        DataLoader(Stream(), 6),
        lambda: [(X[:7], LABELS[:7]), (X[7:], LABELS[7:])],
        lambda: (X, LABELS),
    ],
)
def test_each_form_of_data_gives_the_same_samples(data: object) -> None:
    found = loaded(data)
    assert torch.equal(found.x_train, X)
    assert torch.equal(found.y_train, LABELS - 5)
    assert found.classes == ("5", "6")


def test_floats_are_numbers_and_integers_classes_unless_it_is_said_otherwise() -> None:
    numbers = loaded((X, NUMBERS))
    assert torch.equal(numbers.y_train, NUMBERS[:, None]) and not numbers.classes
    assert torch.equal(loaded((X, LABELS), target="numbers").y_train, LABELS[:, None].float())
    whole = loaded((X, LABELS.float()), target="classes")
    assert torch.equal(whole.y_train, LABELS - 5)
    halves = loaded((X, LABELS.double() / 4), target="classes")
    assert torch.equal(halves.y_train, LABELS - 5) and halves.classes == ("1.25", "1.5")
    pixels = torch.randint(256, (20, 1, 4, 4), dtype=torch.uint8, generator=generator)
    assert torch.equal(loaded((pixels, LABELS)).x_train, pixels.float() / 255)
    ids = loaded((torch.arange(40).view(20, 2), LABELS)).x_train
    assert ids.dtype == torch.int64 and ids.tolist()[1] == [2, 3]


@pytest.mark.parametrize("side", ["right", "left"])
def test_samples_of_different_lengths_are_padded(side: str) -> None:
    found = loaded(Sequences(), padding=side, padding_value=9.0).x_train.tolist()
    right = [[1, 2, 9], [3, 9, 9], [4, 5, 6], [7, 8, 9]]
    left = [[9, 1, 2], [9, 9, 3], [4, 5, 6], [9, 7, 8]]
    assert found == (right if side == "right" else left)


def test_the_data_is_read_once_until_a_cell_has_run_and_draws_nothing() -> None:
    read = []

    class Counted(Pairs):
        def __getitem__(self, row: int) -> tuple[Tensor, int]:
            read.append(row)
            return X[row] + torch.randn(3), 0 if row % 2 else 1

    data = Counted()
    state = torch.random.get_rng_state()
    first = loaded(data, "cell 1").x_train
    assert loaded(data, "cell 1").x_train is first and len(read) == 20
    again = loaded(data, "cell 2").x_train
    assert torch.equal(first, again) and len(read) == 40
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (X, "one tensor: it has no targets"),
        ((X, LABELS, LABELS), "has 3 tensors"),
        ((X, LABELS[:5]), "dim 0 counts the samples"),
        ((X, torch.randn(20, 2, 2)), "targets are labels (N,) or numbers (N, T)"),
        ((X.index_fill(0, torch.tensor([3]), torch.nan), LABELS), "x, sample 3: it has a number"),
        ((X, NUMBERS.index_fill(0, torch.tensor([4]), torch.inf)), "y, sample 4: it has a number"),
        (
            (X, NUMBERS.double() * 1e39),
            "y, sample 0: it has a number that is not finite as float32",
        ),
        ((X, LABELS * 0), "The targets of data have one value only: 0"),
        ((X[:, :0], LABELS), "A sample of data has shape (0,)"),
        ((X[:0], LABELS[:0]), "has no sample"),
        ((X.to(torch.complex64), LABELS), "dense tensors of real numbers"),
        (Unsized(), "without a length"),
        (Broken(), "OSError: the disk is gone"),
        (Sequences(), "different shapes: (1,), (2,), (3,)"),
        ([X, LABELS, "x"], "A sample or batch is a Tensor, not a pair"),
        ([(X, LABELS), (X, NUMBERS[:, None])], "targets of data have different shapes"),
        ([{"x": X}], "A sample or batch is a dict, not a pair"),
        ([], "has no sample"),
        (7, "data is of type int: it has no samples"),
        ("text", "data is of type str"),
        (None, "data is of type NoneType"),
    ],
)
def test_what_cannot_be_used_is_told(data: object, words: str) -> None:
    with pytest.raises(DataProblem) as told:
        loaded(data)
    assert words in f"{told.value} {told.value.hint}"


def test_padding_needs_samples_that_differ_in_their_length_only() -> None:
    class Images(Sequences):
        rows = (torch.zeros(2, 3), torch.zeros(2, 4))  # pyright: ignore[reportAssignmentType]

    with pytest.raises(DataProblem, match="Only dim 0"):
        loaded(Images(), padding="right")


def test_without_a_console_or_a_name_the_data_says_so() -> None:
    with pytest.raises(DataProblem, match="no console here"):
        load_dataset(DataSetup("console", path="data"))
    with pytest.raises(DataProblem, match="nothing is named yet"):
        load_dataset(DataSetup("console"))
