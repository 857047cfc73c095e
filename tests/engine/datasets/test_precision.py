"""Large numbers keep their digits until they are standardised, against scikit-learn in float64;
whole numbers that float32 does not tell apart are classes of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.preprocessing import StandardScaler

from engine.datasets import load, source
from engine.datasets.console_values import values_of
from engine.datasets.dataset import Dataset
from engine.datasets.load import load_dataset
from engine.datasets.stored import rows
from engine.datasets.stored.rows import channel_figures
from engine.exporting.train_script import data_of
from engine.project.document import Column, DataSetup, ParamValue, Transform, replace
from tests.engine.datasets.files import idx, write

TIMES = 1_700_000_000 + np.arange(100)
"""Seconds since 1970, of which float32 tells one or two apart."""
LABELS = np.arange(100) % 2


def table(folder: Path, x: list, y: list) -> Path:
    lines = (f"{first},{second}\n" for first, second in zip(x, y, strict=True))
    return write(folder / "a.csv", "".join(("t,y\n", *lines)))


def csv(path: Path, validation: float = 0.0, **params: ParamValue) -> Dataset:
    return load_dataset(DataSetup("csv", params, validation, path=str(path)))


def standardised(values: np.ndarray) -> torch.Tensor:
    """What scikit-learn makes of values (N,) in float64, as float32 (N, 1)."""
    wide = values.astype(np.float64)[:, None]
    return torch.from_numpy(StandardScaler().fit_transform(wide)).float()


# -- tables ----------------------------------------------------------------------------------------


def test_features_and_targets_are_standardised_before_they_are_rounded(tmp_path: Path) -> None:
    targets = 5e9 - np.sqrt(np.arange(100))
    data = csv(table(tmp_path, TIMES.tolist(), targets.tolist()))
    assert data.x_train.dtype == data.y_train.dtype == torch.float32
    assert torch.allclose(data.x_train, standardised(TIMES), atol=1e-6)
    assert torch.allclose(data.y_train, standardised(targets), atol=1e-6)
    assert len(data.x_train.unique()) == len(data.y_train.unique()) == 100
    assert data.target_scale.dtype == torch.float64
    assert data.target_scale.item() == pytest.approx(targets.std(), rel=1e-9)


def test_the_training_script_trains_on_the_same_numbers(tmp_path: Path) -> None:
    data = csv(table(tmp_path, TIMES.tolist(), TIMES.tolist()), 0.2)
    for name, values in data_of(data).items():
        assert torch.equal(values, getattr(data, name)), name
        assert len(values.unique()) == len(values)


def test_validation_samples_are_standardised_by_the_training_samples(tmp_path: Path) -> None:
    data = csv(table(tmp_path, TIMES.tolist(), (TIMES * 2).tolist()), 0.2)
    assert torch.allclose(data.x_val, data.y_val, atol=1e-6)
    both = torch.cat([data.x_train, data.x_val]).double()
    order = both.flatten().argsort()
    assert torch.allclose(both[order].diff(dim=0), both[order].diff(dim=0).mean(), rtol=1e-4)


@pytest.mark.parametrize("how", ["mean", "most frequent"])
def test_a_missing_large_number_is_filled_exactly(tmp_path: Path, how: str) -> None:
    known = [*TIMES[:6].tolist(), int(TIMES[2])]
    fill = np.mean(known) if how == "mean" else known[2]
    path = table(tmp_path, [*known, ""], list(range(8)))
    data = csv(path, missing=how, standardise="features")
    expected = standardised(np.array([*known, fill]))
    assert torch.allclose(data.x_train, expected, atol=1e-6)


@pytest.mark.parametrize("number", [0.1, 1e9 + 0.1, -1e-30])
def test_a_constant_column_is_zero(tmp_path: Path, number: float) -> None:
    """Its sum in float64 is rounded: the rest must not be taken for a deviation."""
    data = csv(table(tmp_path, [number] * 1000, list(range(1000))))
    assert not data.x_train.any()


def test_small_numbers_are_standardised_too(tmp_path: Path) -> None:
    """float32 has none of them."""
    values = np.arange(30) * 1e-50
    data = csv(table(tmp_path, values.tolist(), list(range(30))))
    assert torch.allclose(data.x_train, standardised(np.arange(30)), atol=1e-6)


# -- arrays ----------------------------------------------------------------------------------------


def npy(values: np.ndarray) -> Callable[[Path], DataSetup]:
    def made(folder: Path) -> DataSetup:
        np.save(folder / "a.npy", np.stack([values, values[::-1]], 1))
        np.save(folder / "y.npy", LABELS.astype(np.uint8))
        return DataSetup("numpy", {}, 0.0, path=str(folder / "a.npy"))

    return made


def of_idx(values: np.ndarray, code: int) -> Callable[[Path], DataSetup]:
    def made(folder: Path) -> DataSetup:
        write(folder / "x-labels", idx(LABELS.astype(np.uint8)))
        path = write(folder / "x-images", idx(np.stack([values, values[::-1]], 1), code))
        return DataSetup("idx", {}, 0.0, path=str(path))

    return made


HALF = (60_000 + 32 * np.arange(100)).astype(np.float16)
ARRAYS = {
    "int64": (TIMES, npy(TIMES)),
    "int32": (TIMES, npy(TIMES.astype(np.int32))),
    "uint64": (TIMES, npy(TIMES.astype(np.uint64))),
    "float64": (TIMES + 0.5, npy(TIMES + 0.5)),
    "the other byte order": (TIMES, npy(TIMES.astype(">f8"))),
    "float16": (HALF, npy(HALF)),
    "int32 of IDX": (TIMES, of_idx(TIMES.astype(np.int32), 0x0C)),
    "float64 of IDX": (TIMES, of_idx(TIMES.astype(np.float64), 0x0E)),
}


@pytest.mark.parametrize("is_stored", [False, True], ids=["in memory", "in its file"])
@pytest.mark.parametrize("kind", ARRAYS)
def test_arrays_are_normalized_before_they_are_rounded(
    kind: str, is_stored: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values, make = ARRAYS[kind]
    setup = make(tmp_path)
    load._read.cache_clear()
    if is_stored:
        monkeypatch.setattr(source, "MAX_BYTES", 500)
        monkeypatch.setattr(rows, "CHUNK_BYTES", 64)
    data = load_dataset(replace(setup, transforms=(Transform("Normalize"),)))
    assert data.is_stored == is_stored
    x = data.x_train[:]
    expected = torch.cat([standardised(values), standardised(values[::-1])], 1)
    assert x.dtype == torch.float32 and torch.allclose(x, expected, atol=1e-6)
    assert len(x[:, 0].unique()) == len(np.unique(values))


def test_a_channel_of_constant_doubles_has_no_deviation() -> None:
    mean, deviation = channel_figures(torch.full((1000, 1, 3, 3), 0.1, dtype=torch.float64))
    assert (mean.item(), deviation.item()) == (0.1, 0.0)


def test_tensors_of_the_console_are_normalized_before_they_are_rounded() -> None:
    x, y = torch.from_numpy(TIMES).double()[:, None], torch.from_numpy(TIMES).double()
    setup = DataSetup("console", {}, 0.0, path="data", transforms=(Transform("Normalize"),))
    with values_of(lambda name: (x, y), object):
        data = load_dataset(setup)
    assert torch.allclose(data.x_train, standardised(TIMES), atol=1e-6)
    assert torch.equal(data.y_train, y[:, None].float())


# -- classes ---------------------------------------------------------------------------------------

ABOVE = [2**24, 2**24 + 1]
LARGE = [2**60, 2**60 + 1]


def labels_of(setup: DataSetup) -> tuple[tuple[str, ...], list[int]]:
    data = load_dataset(setup)
    return data.classes, data.y_train[:4].tolist()


@pytest.mark.parametrize("kind", ["auto", "category"])
def test_classes_of_a_table_that_float32_would_merge(tmp_path: Path, kind: str) -> None:
    path = table(tmp_path, list(range(8)), ABOVE * 4)
    columns = {"y": Column("target", kind)}  # pyright: ignore[reportArgumentType]
    setup = DataSetup("csv", {}, 0.0, path=str(path), columns=columns)
    assert labels_of(setup) == (tuple(map(str, ABOVE)), [0, 1, 0, 1])


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.float64])
def test_classes_of_an_array_that_float32_would_merge(tmp_path: Path, dtype: type) -> None:
    values = ABOVE if dtype == np.float64 else LARGE
    np.savez(tmp_path / "a.npz", x=np.eye(8), y=np.array(values * 4, dtype))
    setup = DataSetup("numpy", {"target": "classes"}, 0.0, path=str(tmp_path / "a.npz"))
    names = tuple(map(str, np.array(values, dtype).tolist()))
    assert labels_of(setup) == (names, [0, 1, 0, 1])


def test_classes_of_the_last_column_that_float32_would_merge(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.stack([np.arange(8), np.array(LARGE * 4)], 1))
    setup = DataSetup("numpy", {}, 0.0, path=str(tmp_path / "a.npy"))
    assert labels_of(setup) == (tuple(map(str, LARGE)), [0, 1, 0, 1])


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint64, torch.float64])
def test_classes_of_the_console_that_float32_would_merge(dtype: torch.dtype) -> None:
    values = ABOVE if dtype == torch.float64 else LARGE
    data = torch.eye(8), torch.tensor(values * 4, dtype=dtype)
    with values_of(lambda name: data, object):
        found = labels_of(DataSetup("console", {"target": "classes"}, 0.0, path="data"))
    assert found == (tuple(map(str, values)), [0, 1, 0, 1])
