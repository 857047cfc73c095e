"""Transforms of training batches, and how batches are taken, beside plain torch."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F
from torch.utils.data import WeightedRandomSampler

from engine.datasets import transforms
from engine.datasets.dataset import balanced_order, epoch_order
from engine.datasets.load import load_dataset
from engine.datasets.samples import DataProblem
from engine.datasets.stored.rows import channel_figures
from engine.project.document import DataSetup, Loading, Transform, replace

DIGITS = DataSetup("digits")
IMAGES = torch.arange(5 * 2 * 3 * 4, dtype=torch.float32).view(5, 2, 3, 4)


def generator(seed: int = 7) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(
    ("flip", "dim"), [(transforms.random_horizontal_flip, 2), (transforms.random_vertical_flip, 1)]
)
def test_a_flip_mirrors_the_chosen_samples_only(flip, dim: int) -> None:
    chosen = torch.rand(5, generator=generator()) < 0.5
    assert 0 < chosen.sum() < 5
    found = flip(IMAGES, generator(), p=0.5)
    for image, mirrored, before in zip(found, chosen, IMAGES, strict=True):
        assert torch.equal(image, before.flip(dim) if mirrored else before)
    assert torch.equal(flip(IMAGES, generator(), p=0.0), IMAGES)
    assert torch.equal(flip(IMAGES, generator(), p=1.0), IMAGES.flip(dim + 1))


def test_a_crop_shifts_each_sample_by_its_own_step_and_fills_with_zeros() -> None:
    corners = torch.randint(5, (2, 5), generator=generator()).tolist()
    found = transforms.random_crop(IMAGES, generator(), padding=2)
    for i, (row, column) in enumerate(zip(*corners, strict=True)):
        padded = F.pad(IMAGES[i], [2, 2, 2, 2])
        assert torch.equal(found[i], padded[:, row : row + 3, column : column + 4])
    assert len(set(zip(*corners, strict=True))) > 1
    assert torch.equal(transforms.random_crop(IMAGES, generator(), padding=0), IMAGES)


def test_noise_is_added_with_its_deviation() -> None:
    noise = torch.randn(IMAGES.shape, generator=generator())
    found = transforms.gaussian_noise(IMAGES, generator(), sigma=0.25)
    assert torch.equal(found, IMAGES + 0.25 * noise)


@pytest.mark.parametrize("setup", [DIGITS, DataSetup("iris", {"standardise": "nothing"})])
def test_normalize_takes_its_statistics_from_the_training_part(setup: DataSetup) -> None:
    plain = load_dataset(setup)
    done = load_dataset(replace(setup, transforms=(Transform("Normalize"),)))
    x = plain.x_train.double().transpose(0, 1).flatten(1)  # (C, all others)
    mean, deviation = x.mean(1), x.std(1, correction=0)
    shape = (1, -1) + (1,) * (plain.x_train.ndim - 2)
    for part in ("x_train", "x_val"):
        expected = (getattr(plain, part).double() - mean.view(shape)) / deviation.view(shape)
        assert torch.allclose(getattr(done, part), expected.float(), atol=1e-6)
        assert getattr(done, part).dtype == torch.float32


def test_a_channel_that_is_constant_is_not_divided() -> None:
    training = torch.stack([torch.full((4,), 7.0), torch.arange(4.0)], 1)
    found = transforms.normalized(torch.tensor([[9.0, 1.5]]), *channel_figures(training))
    assert found.tolist() == [[2.0, 0.0]]


def test_a_batch_is_transformed_in_order_and_the_same_each_time() -> None:
    chain = (Transform("RandomCrop", {"padding": 2}), Transform("GaussianNoise", {"sigma": 0.1}))
    plain, data = load_dataset(DIGITS), load_dataset(replace(DIGITS, transforms=chain))
    x, y = data.train_batch(1, 32, seed=4, epoch=2)
    before, labels = plain.train_batch(1, 32, seed=4, epoch=2)
    assert torch.equal(y, labels)
    drawn = transforms.generator_of(4, 2, 1)
    expected = transforms.random_crop(before, drawn, padding=2)
    assert torch.equal(x, transforms.gaussian_noise(expected, drawn, sigma=0.1))
    assert torch.equal(x, data.train_batch(1, 32, seed=4, epoch=2)[0])
    others = [data.train_batch(*at, seed=s, epoch=e)[0] for at, s, e in
              [((2, 32), 4, 2), ((1, 32), 4, 3), ((1, 32), 5, 2)]]  # fmt: skip
    assert not any(torch.equal(x, other) for other in others)
    assert torch.equal(data.x_val, plain.x_val)


def test_a_set_with_transforms_shares_the_samples_with_the_one_without() -> None:
    data = load_dataset(replace(DIGITS, transforms=(Transform("GaussianNoise"),)))
    assert data.x_train.data_ptr() == load_dataset(DIGITS).x_train.data_ptr()


@pytest.mark.parametrize(
    ("setup", "words"),
    [
        (replace(DIGITS, transforms=(Transform("Rotate"),)), "no transform 'Rotate'"),
        (DataSetup("iris", transforms=(Transform("RandomCrop"),)), r"images \(C, H, W\).*\(4,\)"),
        (replace(DIGITS, transforms=(Transform("RandomCrop", {"padding": -1}),)), "padding"),
        (replace(DIGITS, transforms=(Transform("RandomCrop", {"size": 4}),)),
         "RandomCrop has no parameter 'size'"),
        (DataSetup("diabetes", loading=Loading(balanced=True)), "targets that are classes"),
    ],
)  # fmt: skip
def test_what_a_data_set_cannot_have_is_told(setup: DataSetup, words: str) -> None:
    with pytest.raises(DataProblem, match=words):
        load_dataset(setup)


def test_ids_of_characters_have_no_noise(tmp_path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("to be or not to be, " * 20)
    setup = DataSetup("text", {"length": 8}, path=str(path))
    assert not load_dataset(setup).x_train.is_floating_point()
    with pytest.raises(DataProblem, match="ids of characters"):
        load_dataset(replace(setup, transforms=(Transform("GaussianNoise"),)))
    with pytest.raises(DataProblem, match="one a sample"):
        load_dataset(replace(setup, loading=Loading(balanced=True)))


def test_balanced_rows_are_those_of_a_weighted_sampler() -> None:
    labels = torch.tensor([0] * 90 + [2] * 10)
    rows = balanced_order(labels, seed=1, epoch=0)
    weights = [1 / 90] * 90 + [1 / 10] * 10
    drawn = transforms.generator_of(1, 0)
    assert rows.tolist() == list(WeightedRandomSampler(weights, 100, generator=drawn))
    assert 30 < labels[rows].count_nonzero() < 70
    assert not torch.equal(rows, balanced_order(labels, seed=1, epoch=1))


def test_the_rows_of_an_epoch_follow_the_loading() -> None:
    def order(**loading) -> torch.Tensor:
        return load_dataset(replace(DIGITS, loading=Loading(**loading))).order(3, 1)

    labels = load_dataset(DIGITS).y_train
    assert torch.equal(order(), epoch_order(len(labels), 3, 1))
    assert torch.equal(order(shuffle=False), torch.arange(len(labels)))
    assert torch.equal(order(balanced=True), balanced_order(labels, 3, 1))


def test_a_last_batch_that_is_smaller_is_dropped() -> None:
    whole = load_dataset(DIGITS)
    data = load_dataset(replace(DIGITS, loading=Loading(drop_last=True)))
    assert len(data) % 100 and whole.batches(100) == data.batches(100) + 1
    assert data.batches(len(data)) == 1 and data.batches(len(data) + 1) == 0
    with pytest.raises(IndexError, match="not one whole batch"):
        data.train_batch(0, len(data) + 1, seed=0)
