"""Data sets: what is in them, how they are split, and in which order batches come."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from engine.project import catalogue
from engine.project.document import DataSetup
from engine.training import data


def test_digits_are_scikit_learns_in_another_order() -> None:
    dataset = data.load(DataSetup("digits"))
    x = torch.cat([dataset.x_train, dataset.x_val])
    y = torch.cat([dataset.y_train, dataset.y_val])
    assert (x.dtype, y.dtype) == (torch.float32, torch.int64)
    assert tuple(x.shape) == (1797, 1, 8, 8)
    assert (x.min().item(), x.max().item()) == (0.0, 1.0)

    source = load_digits()
    expected = sorted(zip(source.data.tolist(), source.target.tolist(), strict=True))
    found = sorted(zip((x.flatten(1) * 16).tolist(), y.tolist(), strict=True))
    assert found == expected


@pytest.mark.parametrize("kind", list(catalogue.datasets()))
def test_a_data_set_is_as_the_catalogue_says(kind: str) -> None:
    dataset = data.load(DataSetup(kind))
    words = catalogue.datasets()[kind]
    assert dataset.sample_shape == words.sample_shape == tuple(dataset.x_train.shape[1:])
    assert dataset.classes == words.classes
    assert set(dataset.y_train.tolist()) == set(range(words.classes))


@pytest.mark.parametrize("kind", list(catalogue.datasets()))
def test_the_split_is_disjoint_and_keeps_the_share_of_each_class(kind: str) -> None:
    whole = data.load(DataSetup(kind, validation_fraction=0.0))
    dataset = data.load(DataSetup(kind, validation_fraction=0.25))
    total = len(whole)
    assert len(dataset.y_val) == -(-total // 4)
    assert len(dataset) + len(dataset.y_val) == total
    for label in range(dataset.classes):
        count = (whole.y_train == label).sum().item()
        assert abs((dataset.y_val == label).sum().item() - count / 4) <= 1


def test_the_same_set_up_gives_the_same_points_and_another_seed_others() -> None:
    def points(seed: int) -> torch.Tensor:
        data._load.cache_clear()
        return data.load(DataSetup("spirals", {"seed": seed})).x_train

    assert torch.equal(points(3), points(3))
    assert not torch.equal(points(3), points(4))


def test_spirals_without_noise_lie_on_their_formula() -> None:
    setup = DataSetup("spirals", {"noise": 0.0, "turns": 1.0, "samples": 200}, 0.0)
    dataset = data.load(setup)
    x, y = dataset.x_train[:, 0].double(), dataset.x_train[:, 1].double()
    radius = torch.hypot(x, y)
    angle = 2 * np.pi * radius + np.pi * dataset.y_train
    assert torch.allclose(x, radius * angle.cos(), atol=1e-6)
    assert torch.allclose(y, radius * angle.sin(), atol=1e-6)


def test_spirals_begin_at_the_centre_and_noise_lies_about_them() -> None:
    samples = {"samples": 400, "turns": 1.0, "seed": 2}
    plain = data.load(DataSetup("spirals", {**samples, "noise": 0.0}, 0.0))
    radius = plain.x_train.norm(dim=1)
    assert radius.min() < 0.02 and 0.98 < radius.max() <= 1 and abs(radius.mean() - 0.5) < 0.05
    assert plain.y_train.bincount().tolist() == [200, 200]
    noisy = data.load(DataSetup("spirals", {**samples, "noise": 0.2}, 0.0))
    noise = noisy.x_train - plain.x_train
    assert torch.equal(noisy.y_train, plain.y_train)
    assert abs(noise.mean()) < 0.03 and abs(noise.std() - 0.2) < 0.02


def test_circles_without_noise_have_their_radii() -> None:
    setup = DataSetup("circles", {"noise": 0.0, "factor": 0.3}, 0.0)
    dataset = data.load(setup)
    radius = dataset.x_train.norm(dim=1)
    expected = torch.where(dataset.y_train == 0, 1.0, 0.3)
    assert torch.allclose(radius, expected, atol=1e-6)


def test_batches_of_an_epoch_hold_every_sample_once() -> None:
    dataset = data.load(DataSetup("moons", {"samples": 100}))
    batches = [dataset.train_batch(i, 32, seed=0) for i in range(dataset.batches(32))]
    assert [len(y) for _, y in batches] == [32, 32, 16]
    assert sorted(torch.cat([x for x, _ in batches]).tolist()) == sorted(dataset.x_train.tolist())


def test_a_data_set_moves_whole_to_another_device_and_not_to_its_own() -> None:
    dataset = data.load(DataSetup("moons", {"samples": 100}))
    assert dataset.to(torch.device("cpu")) is dataset
    moved = dataset.to(torch.device("meta"))
    tensors = (moved.x_train, moved.y_train, moved.x_val, moved.y_val)
    assert {t.device.type for t in tensors} == {"meta"} and len(moved) == len(dataset)


def test_the_order_depends_on_seed_and_epoch_alone() -> None:
    torch.manual_seed(0)
    first = data.epoch_order(50, seed=5, epoch=2)
    torch.rand(10)
    assert torch.equal(first, data.epoch_order(50, seed=5, epoch=2))
    assert not torch.equal(first, data.epoch_order(50, seed=5, epoch=3))
    assert not torch.equal(first, data.epoch_order(50, seed=6, epoch=2))
    assert sorted(data.epoch_order(50, seed=-1, epoch=0).tolist()) == list(range(50))


def test_the_order_leaves_the_global_random_numbers_alone() -> None:
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    data.epoch_order(50, seed=5, epoch=2)
    assert torch.equal(torch.rand(3), expected)


def test_a_batch_beyond_the_last_is_refused() -> None:
    dataset = data.load(DataSetup("moons", {"samples": 100}))
    with pytest.raises(IndexError, match="batches 0 to 2"):
        dataset.train_batch(3, 32, seed=0)


@pytest.mark.parametrize(
    ("setup", "words"),
    [
        (DataSetup("mnist"), "no data set 'mnist'"),
        (DataSetup("digits", {"noise": 0.1}), "no parameter 'noise'"),
        (DataSetup("moons", {"samples": "many"}), "samples"),
        (DataSetup("moons", {"noise": -1.0}), "noise"),
        (DataSetup("digits", {}, 1.0), "less than 1"),
        (DataSetup("digits", {}, 0.001), "both sides"),
    ],
)
def test_what_cannot_be_loaded_is_refused_in_words(setup: DataSetup, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        data.load(setup)
