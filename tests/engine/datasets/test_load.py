"""Data sets: what is in them, how they are split, and in which order batches come."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from engine.datasets import load as module
from engine.datasets import points
from engine.datasets.dataset import epoch_order
from engine.datasets.facts import facts_of
from engine.datasets.load import load_dataset
from engine.datasets.samples import DataProblem, Samples
from engine.datasets.split import split
from engine.project import catalogue
from engine.project.document import DataSetup

BUNDLED = [key for key, kind in catalogue.datasets().items() if not kind.source]


def test_digits_are_scikit_learns_in_another_order() -> None:
    dataset = load_dataset(DataSetup("digits"))
    x = torch.cat([dataset.x_train, dataset.x_val])
    y = torch.cat([dataset.y_train, dataset.y_val])
    assert (x.dtype, y.dtype) == (torch.float32, torch.int64)
    assert tuple(x.shape) == (1797, 1, 8, 8)
    assert (x.min().item(), x.max().item()) == (0.0, 1.0)

    import sklearn.datasets  # inside of tests: it loads for two seconds

    source = sklearn.datasets.load_digits()
    expected = sorted(zip(source.data.tolist(), source.target.tolist(), strict=True))
    found = sorted(zip((x.flatten(1) * 16).tolist(), y.tolist(), strict=True))
    assert found == expected


@pytest.mark.parametrize("count", [2, 7, 100, 501])
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_moons_and_circles_are_scikit_learns(count: int, noise: float) -> None:
    import sklearn.datasets

    moons = sklearn.datasets.make_moons(count, noise=noise, random_state=3)
    circles = sklearn.datasets.make_circles(count, noise=noise, factor=0.4, random_state=3)
    for found, (x, y) in (
        (points.moons(count, noise, seed=3), moons),
        (points.circles(count, noise, seed=3, factor=0.4), circles),
    ):
        assert (found.x.dtype, found.y.dtype) == (np.float32, np.int64)
        assert isinstance(found.x, np.ndarray)
        assert np.array_equal(found.x, x.astype(np.float32))
        assert np.array_equal(found.y, y)


@pytest.mark.parametrize("fraction", [0.01, 0.1, 0.25, 0.33, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("counts", [(50, 50), (2, 3), (7, 11, 40), (1, 9), (5, 5, 5, 6)])
@pytest.mark.parametrize("stratified", [True, False])
def test_splits_are_scikit_learns(
    fraction: float, counts: tuple[int, ...], stratified: bool
) -> None:
    from sklearn.model_selection import train_test_split

    y = np.random.default_rng(0).permutation(np.repeat(np.arange(len(counts)), counts))
    samples = Samples(np.zeros((len(y), 1), np.float32), y, ())
    rows, labels = np.arange(len(y)), y if stratified else None
    for seed in range(5):
        try:
            expected = train_test_split(
                rows, test_size=fraction, stratify=labels, random_state=seed
            )
        except ValueError:
            with pytest.raises(DataProblem, match="samples on both sides"):
                split(samples, fraction, seed, stratified)
        else:
            found = [part.tolist() for part in split(samples, fraction, seed, stratified)]
            assert found == [part.tolist() for part in expected]


@pytest.mark.parametrize("kind", BUNDLED)
def test_a_data_set_is_as_the_catalogue_says(kind: str) -> None:
    dataset = load_dataset(DataSetup(kind))
    words = catalogue.datasets()[kind]
    assert dataset.sample_shape == words.sample_shape == tuple(dataset.x_train.shape[1:])
    assert len(dataset.classes) == words.classes
    if words.classes:
        assert dataset.y_train.dtype == torch.int64
        assert set(dataset.y_train.tolist()) == set(range(words.classes))
    else:
        assert (dataset.y_train.dtype, dataset.y_train.shape[1:]) == (torch.float32, (1,))


@pytest.mark.parametrize("kind", BUNDLED)
def test_the_split_is_disjoint_and_keeps_the_share_of_each_class(kind: str) -> None:
    whole = load_dataset(DataSetup(kind, validation_fraction=0.0))
    dataset = load_dataset(DataSetup(kind, validation_fraction=0.25))
    total = len(whole)
    assert len(dataset.y_val) == -(-total // 4)
    assert len(dataset) + len(dataset.y_val) == total
    for label in range(len(dataset.classes)):
        count = (whole.y_train == label).sum().item()
        assert abs((dataset.y_val == label).sum().item() - count / 4) <= 1


def test_the_same_set_up_gives_the_same_points_and_another_seed_others() -> None:
    def points(seed: int) -> torch.Tensor:
        module._decoded_data.cache_clear()
        return load_dataset(DataSetup("spirals", {"seed": seed})).x_train

    assert torch.equal(points(3), points(3))
    assert not torch.equal(points(3), points(4))


def test_spirals_without_noise_lie_on_their_formula() -> None:
    setup = DataSetup("spirals", {"noise": 0.0, "turns": 1.0, "samples": 200}, 0.0)
    dataset = load_dataset(setup)
    x, y = dataset.x_train[:, 0].double(), dataset.x_train[:, 1].double()
    radius = torch.hypot(x, y)
    angle = 2 * np.pi * radius + np.pi * dataset.y_train
    assert torch.allclose(x, radius * angle.cos(), atol=1e-6)
    assert torch.allclose(y, radius * angle.sin(), atol=1e-6)


def test_spirals_begin_at_the_centre_and_noise_lies_about_them() -> None:
    samples = {"samples": 400, "turns": 1.0, "seed": 2}
    plain = load_dataset(DataSetup("spirals", {**samples, "noise": 0.0}, 0.0))
    radius = plain.x_train.norm(dim=1)
    assert radius.min() < 0.02 and 0.98 < radius.max() <= 1 and abs(radius.mean() - 0.5) < 0.05
    assert plain.y_train.bincount().tolist() == [200, 200]
    noisy = load_dataset(DataSetup("spirals", {**samples, "noise": 0.2}, 0.0))
    noise = noisy.x_train - plain.x_train
    assert torch.equal(noisy.y_train, plain.y_train)
    assert abs(noise.mean()) < 0.03 and abs(noise.std() - 0.2) < 0.02


def test_circles_without_noise_have_their_radii() -> None:
    setup = DataSetup("circles", {"noise": 0.0, "factor": 0.3}, 0.0)
    dataset = load_dataset(setup)
    radius = dataset.x_train.norm(dim=1)
    expected = torch.where(dataset.y_train == 0, 1.0, 0.3)
    assert torch.allclose(radius, expected, atol=1e-6)


def test_batches_of_an_epoch_hold_every_sample_once() -> None:
    dataset = load_dataset(DataSetup("moons", {"samples": 100}))
    batches = [dataset.train_batch(i, 32, seed=0) for i in range(dataset.batches(32))]
    assert [len(y) for _, y in batches] == [32, 32, 16]
    assert sorted(torch.cat([x for x, _ in batches]).tolist()) == sorted(dataset.x_train.tolist())


def test_a_data_set_moves_whole_to_another_device_and_not_to_its_own() -> None:
    dataset = load_dataset(DataSetup("moons", {"samples": 100}))
    assert dataset.to(torch.device("cpu")) is dataset
    moved = dataset.to(torch.device("meta"))
    tensors = (moved.x_train, moved.y_train, moved.x_val, moved.y_val)
    assert {t.device.type for t in tensors} == {"meta"} and len(moved) == len(dataset)


def test_the_order_depends_on_seed_and_epoch_alone() -> None:
    torch.manual_seed(0)
    first = epoch_order(50, seed=5, epoch=2)
    torch.rand(10)
    assert torch.equal(first, epoch_order(50, seed=5, epoch=2))
    assert not torch.equal(first, epoch_order(50, seed=5, epoch=3))
    assert not torch.equal(first, epoch_order(50, seed=6, epoch=2))
    assert sorted(epoch_order(50, seed=-1, epoch=0).tolist()) == list(range(50))


def test_the_order_leaves_the_global_random_numbers_alone() -> None:
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    epoch_order(50, seed=5, epoch=2)
    assert torch.equal(torch.rand(3), expected)


def test_a_batch_beyond_the_last_is_refused() -> None:
    dataset = load_dataset(DataSetup("moons", {"samples": 100}))
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
    with pytest.raises(DataProblem, match=words):
        load_dataset(setup)


def pairs(x: Any, y: Any) -> list:
    """Samples with their targets, in an order of their own."""
    return sorted(zip(x.tolist(), y.tolist(), strict=True))


@pytest.mark.parametrize("kind", ["iris", "wine", "breast_cancer", "diabetes"])
def test_a_table_is_scikit_learns_standardised_by_its_training_samples(kind: str) -> None:
    import sklearn.datasets

    source = getattr(sklearn.datasets, f"load_{kind}")()
    plain = load_dataset(DataSetup(kind, {"standardise": "nothing"}))
    assert plain.columns == tuple(source.feature_names)
    names = [] if kind == "diabetes" else list(source.target_names)
    assert list(plain.classes) == names
    x, y = torch.cat([plain.x_train, plain.x_val]), torch.cat([plain.y_train, plain.y_val])
    assert pairs(x, y.flatten()) == pairs(np.float32(source.data), source.target)

    dataset = load_dataset(DataSetup(kind))
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(plain.x_train.numpy())
    for found, part in ((dataset.x_train, plain.x_train), (dataset.x_val, plain.x_val)):
        assert np.allclose(found.numpy(), scaler.transform(part.numpy()), atol=1e-5)


def test_a_target_is_standardised_by_its_training_samples() -> None:
    plain = load_dataset(DataSetup("diabetes", {"standardise": "features"}))
    dataset = load_dataset(DataSetup("diabetes", {"standardise": "features and target"}))
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(plain.y_train.numpy())
    assert np.allclose(dataset.y_val.numpy(), scaler.transform(plain.y_val.numpy()), atol=1e-5)
    assert dataset.target_scale.tolist() == pytest.approx([plain.y_train.std(correction=0).item()])
    assert plain.target_scale.tolist() == [1.0]


def test_a_seed_splits_in_another_way_and_a_split_need_not_be_stratified() -> None:
    def labels(**fields: Any) -> torch.Tensor:
        return load_dataset(DataSetup("iris", validation_fraction=0.2, **fields)).y_val

    assert labels().bincount().tolist() == labels(split_seed=1).bincount().tolist() == [10] * 3
    assert not torch.equal(labels(), labels(split_seed=1))
    assert labels(stratified=False).bincount().tolist() != [10] * 3


def test_what_is_not_split_by_classes_is_split_at_random() -> None:
    dataset = load_dataset(DataSetup("diabetes", validation_fraction=0.25))
    assert (len(dataset), len(dataset.y_val)) == (331, 111)


POINTS = tuple((i / 10 - 1, 1 - i / 10, i % 3) for i in range(20))


def test_painted_points_are_samples_with_their_classes() -> None:
    dataset = load_dataset(DataSetup("painted", validation_fraction=0.0, points=POINTS))
    assert dataset.x_train.tolist() == torch.tensor([point[:2] for point in POINTS]).tolist()
    assert dataset.y_train.tolist() == [point[2] for point in POINTS]
    assert (dataset.classes, dataset.columns) == (("0", "1", "2"), ("x", "y"))
    facts = facts_of(DataSetup("painted", points=POINTS))
    assert (facts.sample_shape, facts.classes) == ((2,), 3)
    moved = (*POINTS[:-1], (0.0, 0.0, 0))
    setup = DataSetup("painted", validation_fraction=0.0, points=moved)
    assert load_dataset(setup).x_train[-1].tolist() == [0.0, 0.0]


def test_painted_numbers_are_y_over_x() -> None:
    setup = DataSetup("painted", {"target": "numbers"}, 0.0, points=POINTS)
    dataset = load_dataset(setup)
    assert dataset.x_train.shape == dataset.y_train.shape == (20, 1)
    assert torch.equal(dataset.x_train[:, 0], torch.tensor([point[0] for point in POINTS]))
    assert torch.equal(dataset.y_train[:, 0], torch.tensor([point[1] for point in POINTS]))
    assert not dataset.classes and dataset.targets == ("y",)


def test_without_points_the_data_says_what_to_do() -> None:
    with pytest.raises(DataProblem, match="No points are painted yet"):
        load_dataset(DataSetup("painted"))
    one = tuple(point for point in POINTS if point[2] == 1) + POINTS[:1]
    with pytest.raises(DataProblem, match="every class needs samples"):
        load_dataset(DataSetup("painted", points=one))
