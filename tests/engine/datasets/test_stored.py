"""Samples that would take too much memory: they stay in their files, and train as those in memory
do, bit for bit."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from msgspec.structs import astuple
from torch import Tensor

from engine.datasets import load, source
from engine.datasets.dataset import Dataset
from engine.datasets.load import load_dataset
from engine.datasets.samples import DataProblem
from engine.datasets.stored import rows
from engine.datasets.stored.rows import StoredRows
from engine.handlers.datasets import describe_data
from engine.lab import Lab
from engine.project.document import DataSetup, Transform, replace
from engine.protocol import DataSnapshot, DescribeDataCommand
from tests.engine.datasets.files import idx, images, mnist, pixels, write

RNG = np.random.default_rng(1)
FLOATS = RNG.normal(size=(30, 3, 4)).astype(np.float32)
TABLE = RNG.normal(size=(30, 5))
LABELS = np.arange(30) % 3


def npz(folder: Path, **arrays: np.ndarray) -> Path:
    np.savez(folder / "a.npz", **arrays)  # pyright: ignore[reportArgumentType]
    return folder / "a.npz"


def npy(folder: Path, x: np.ndarray, y: np.ndarray | None = None) -> Path:
    np.save(folder / "a.npy", x)
    if y is not None:
        np.save(folder / "y.npy", y)
    return folder / "a.npy"


def pair(folder: Path, x: np.ndarray, code: int) -> Path:
    write(folder / "x-labels", idx((LABELS % 3).astype(np.uint8)))
    return write(folder / "x-images", idx(x, code))


def whole_mnist(folder: Path) -> Path:
    mnist(folder, packed=False)
    return folder


def with_validation(folder: Path) -> Path:
    images(folder / "train")
    images(folder / "val")
    return folder


SOURCES: dict[str, tuple[str, Callable[[Path], Path], dict]] = {
    "floats of an .npz": ("numpy", lambda f: npz(f, x=FLOATS, y=LABELS), {}),
    "doubles of an .npz": ("numpy", lambda f: npz(f, x=TABLE, y=TABLE[:, :2]), {}),
    "images of an .npz": ("numpy", lambda f: npz(f, x=pixels(30, 4, 3), y=LABELS), {}),
    "colours of an .npz": ("numpy", lambda f: npz(f, x=pixels(30, 3, 4, 5), y=LABELS), {}),
    "an .npy with targets beside": ("numpy", lambda f: npy(f, FLOATS, LABELS), {}),
    "an .npy with its last column": ("numpy", lambda f: npy(f, TABLE), {"target": "numbers"}),
    "column by column": ("numpy", lambda f: npy(f, np.asfortranarray(TABLE), LABELS), {}),
    "the other byte order": ("numpy", lambda f: npy(f, FLOATS.astype(">f4"), LABELS), {}),
    "MNIST": ("idx", whole_mnist, {}),
    "IDX of doubles": ("idx", lambda f: pair(f, TABLE, 0x0E), {}),
    "images": ("images", lambda f: (images(f), f)[1], {"size": (5, 4)}),
    "grey images with a part of their own": ("images", with_validation, {"colour": "grey"}),
}


@pytest.fixture(params=SOURCES)
def setup(request: pytest.FixtureRequest, tmp_path: Path) -> DataSetup:
    kind, make, params = SOURCES[request.param]
    return DataSetup(kind, params, 0.2, path=str(make(tmp_path)))


def both(setup: DataSetup, patch: pytest.MonkeyPatch) -> tuple[Dataset, Dataset]:
    """The data set in memory, and in its files."""
    load._read.cache_clear()
    in_memory = load_dataset(setup)
    leave_in_files(patch)
    in_files = load_dataset(setup)
    assert in_files.is_stored and not in_memory.is_stored
    return in_memory, in_files


def leave_in_files(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(source, "MAX_BYTES", 500)
    patch.setattr(rows, "CHUNK_BYTES", 200)
    patch.setattr(source, "CHUNK_BYTES", 200)
    load._read.cache_clear()
    load._prepared.cache_clear()


def test_each_batch_is_the_one_that_is_had_in_memory(
    setup: DataSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, files = both(setup, monkeypatch)
    for name in ("y_train", "y_val", "classes", "targets", "sample_shape", "target_scale"):
        one, other = getattr(memory, name), getattr(files, name)
        assert torch.equal(one, other) if isinstance(one, Tensor) else one == other
    assert torch.equal(files.x_train[:], memory.x_train[:])
    assert torch.equal(files.x_val[:], memory.x_val[:])
    for epoch in range(2):
        for index in range(memory.batches(4)):
            for one, other in zip(
                memory.train_batch(index, 4, 5, epoch), files.train_batch(index, 4, 5, epoch),
                strict=True,
            ):  # fmt: skip
                assert torch.equal(one, other)


def test_the_rows_are_used_as_a_tensor_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory, files = both(
        DataSetup("numpy", path=str(npz(tmp_path, x=FLOATS, y=LABELS))), monkeypatch
    )
    x, rows = memory.x_train, files.x_train
    assert isinstance(x, Tensor) and isinstance(rows, StoredRows)
    assert (rows.shape, rows.ndim, rows.nbytes, rows.size(0)) == (x.shape, 3, x.nbytes, len(x))
    assert rows.dtype == x.dtype and rows.device == x.device and rows.is_floating_point()
    assert torch.equal(rows[3], x[3]) and torch.equal(rows[-1], x[-1])
    assert torch.equal(rows[2:7], x[2:7]) and rows[:0].shape == x[:0].shape
    some = torch.tensor([4, 0, 4])
    assert torch.equal(rows[some], x[some])
    assert torch.equal(rows.index_select(0, some), x[some])
    assert [len(part) for part in rows.split(10)] == [10, 10, 4]
    assert len(list(rows.chunks())) > 3 and torch.equal(torch.cat(list(rows.chunks())), x)
    assert torch.equal(pickle.loads(pickle.dumps(rows))[:], x)  # for a worker
    assert len(pickle.dumps(rows)) < 2000


def test_normalize_and_the_report_have_the_same_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = 3 + 2 * TABLE
    table[:, 1] = 7
    setup = DataSetup("numpy", path=str(npz(tmp_path, x=table, y=LABELS)))
    scaled = replace(setup, transforms=(Transform("Normalize"),))
    expected, told = load_dataset(scaled), described(setup)
    leave_in_files(monkeypatch)
    found, told_of_files = load_dataset(scaled), described(setup)
    assert found.is_stored
    assert torch.allclose(found.x_train[:], expected.x_train[:], atol=1e-6)
    assert torch.allclose(found.x_val[:], expected.x_val[:], atol=1e-6)
    assert told_of_files.rows == told.rows and len(told.columns) == 5
    assert told_of_files.stored and not told.stored
    for column, other in zip(told.columns, told_of_files.columns, strict=True):
        assert astuple(other)[1:] == pytest.approx(astuple(column)[1:])


def described(setup: DataSetup) -> DataSnapshot:
    (told,) = describe_data(Lab(emit=lambda snapshot: None), DescribeDataCommand(data=setup))
    return told


@pytest.mark.parametrize("faults", ["refuse", "skip"])
def test_a_number_that_is_not_finite_is_named_or_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, faults: str
) -> None:
    x = TABLE.copy()
    x[7, 1], x[29, 4] = np.nan, np.inf
    setup = DataSetup("numpy", {"faults": faults}, path=str(npz(tmp_path, x=x, y=LABELS)))
    if faults == "refuse":
        leave_in_files(monkeypatch)
        with pytest.raises(DataProblem, match="x, sample 7: element 1 is nan"):
            load_dataset(setup)
        return
    memory, files = both(setup, monkeypatch)
    assert files.skipped == memory.skipped and len(files.skipped) == 2
    assert torch.equal(files.x_train[:], memory.x_train[:])


def test_an_image_that_cannot_be_read_is_skipped_and_one_that_is_gone_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images(tmp_path)
    write(tmp_path / "dog" / "9.png", b"\x89PNG")
    setup = DataSetup("images", {"size": (4, 6), "faults": "skip"}, 0.0, path=str(tmp_path))
    memory, files = both(setup, monkeypatch)
    assert files.skipped == memory.skipped and "dog/9.png" in files.skipped[0]
    assert torch.equal(files.x_train[:], memory.x_train[:])
    (tmp_path / "cat" / "1.png").unlink()
    with pytest.raises(DataProblem, match=r"cat/1\.png is not a file"):
        files.x_train[:]


def packed_npy(folder: Path) -> Path:
    path = npy(folder, FLOATS, LABELS)
    return write(path, path.read_bytes(), packed=True)


def compressed(folder: Path) -> Path:
    np.savez_compressed(folder / "a.npz", x=FLOATS, y=LABELS)
    return folder / "a.npz"


def damaged(folder: Path) -> Path:
    path = npz(folder, x=FLOATS, y=LABELS)
    data = bytearray(path.read_bytes())
    data[300] ^= 1
    return write(path, bytes(data))


def cut_off(folder: Path) -> Path:
    path = npy(folder, FLOATS, LABELS)
    return write(path, path.read_bytes()[:-8])


def packed_mnist(folder: Path) -> Path:
    mnist(folder)
    return folder


@pytest.mark.parametrize(
    ("kind", "make", "words"),
    [
        ("numpy", packed_npy, "a.npy is packed, and too large to be read whole"),
        ("numpy", compressed, "a.npz, x is packed"),
        ("numpy", damaged, "a.npz is damaged: Bad CRC-32"),
        ("numpy", cut_off, "ends early: 1,440 bytes are promised, and 1,432 follow"),
        ("numpy", lambda f: npz(f, x=TABLE[:, 0], y=np.repeat(TABLE, 9, 1)), "too many targets"),
        ("idx", packed_mnist, "train-images-idx3-ubyte.gz is packed"),
        ("idx", lambda f: write(pair(f, TABLE, 0x0E), idx(TABLE, 0x0E)[:-1]), "ends early: 1,200"),
    ],
)
def test_what_cannot_be_read_row_by_row_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, make, words: str
) -> None:
    path = make(tmp_path)
    leave_in_files(monkeypatch)
    with pytest.raises(DataProblem, match=words):
        load_dataset(DataSetup(kind, path=str(path)))
