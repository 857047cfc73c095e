"""Data files against plain pandas, scikit-learn, numpy, struct and Pillow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import torch
from PIL import Image
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import StandardScaler

from engine.datasets.load import load_dataset
from engine.datasets.samples import DataProblem
from engine.project.document import Column, DataSetup
from tests.engine.datasets.files import cifar, idx, images, loaded, mnist, pixels, write

CSV = """\
age,town,score,passed
31,Bern,1.5,yes
25,Wien,2.5,no
40,Bern,,yes
,Ulm,0.5,no
22,,3.0,no
35,Wien,1.0,yes
"""


def same(found: torch.Tensor, expected: np.ndarray) -> bool:
    return torch.equal(found, torch.from_numpy(np.ascontiguousarray(expected)))


# -- tables ----------------------------------------------------------------------------------------


def test_a_table_is_pandas_with_one_hot_texts(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", CSV)
    data = loaded("csv", path, missing="drop")
    frame = pandas.read_csv(path).dropna()
    expected: Any = pandas.get_dummies(frame[["age", "town", "score"]])[
        ["age", "town_Bern", "town_Wien", "score"]
    ]
    assert same(data.x_train, expected.to_numpy(np.float32))
    assert data.y_train.tolist() == (frame["passed"] == "yes").astype(int).tolist()
    assert data.classes == ("no", "yes")
    assert [text.partition(":")[0] for text in data.skipped] == [
        "Row 5, column “age”",
        "Row 6, column “town”",
        "Row 4, column “score”",
    ]


FILLS = [("mean", "mean"), ("most frequent", "most_frequent")]


@pytest.mark.parametrize(("how", "strategy"), FILLS)
def test_gaps_are_filled_from_the_training_rows_alone(
    tmp_path: Path, how: str, strategy: str
) -> None:
    values = np.round(np.random.default_rng(1).normal(size=(60, 3)), 1)
    values[::7, 0] = np.nan
    values[3::5, 2] = np.nan
    frame = pandas.DataFrame(values, columns=["a", "b", "c"])
    frame["y"] = np.arange(60) % 2
    frame.to_csv(tmp_path / "gaps.csv", index=False)
    params: dict = {"missing": how, "standardise": "features"}
    setup = DataSetup("csv", params, 0.25, path=str(tmp_path / "gaps.csv"))
    data = load_dataset(setup)
    frame["row"] = np.arange(60)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    columns = {"row": Column("target", "number")}
    rows = load_dataset(
        DataSetup("csv", {"missing": how, "standardise": "nothing"}, 0.25, 0, False,
                  str(tmp_path / "rows.csv"), columns)
    )  # fmt: skip
    assert len(rows.y_val) == len(data.y_val) == 15
    train = [int(row) for row in _train_rows(setup, 60)]
    val = [row for row in range(60) if row not in train]
    imputer = SimpleImputer(strategy=strategy).fit(values[train])
    scaler: Any = StandardScaler().fit(imputer.transform(values[train]))
    expected = scaler.transform(imputer.transform(values))
    assert np.allclose(np.sort(data.x_train, 0), np.sort(expected[train], 0), atol=1e-5)
    assert np.allclose(np.sort(data.x_val, 0), np.sort(expected[val], 0), atol=1e-5)


def _train_rows(setup: DataSetup, count: int) -> Any:
    from sklearn.model_selection import train_test_split

    labels = np.arange(count) % 2
    size = setup.validation_fraction
    return train_test_split(np.arange(count), test_size=size, stratify=labels, random_state=0)[0]


def test_roles_and_types_are_the_users(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "id,grade,x,y\n1,1,0.5,9\n2,2,1.5,8\n3,1,2.5,7\n")
    columns = {
        "id": Column("ignore"),
        "grade": Column(type="category"),
        "x": Column("target"),
    }
    setup = DataSetup("csv", {"standardise": "nothing"}, 0.0, path=str(path), columns=columns)
    data = load_dataset(setup)
    assert data.columns == ("grade = 1", "grade = 2", "y")
    assert data.x_train.tolist() == [[1, 0, 9], [0, 1, 8], [1, 0, 7]]
    assert (data.y_train.tolist(), data.targets) == ([[0.5], [1.5], [2.5]], ("x",))


@pytest.mark.parametrize("separator", ["auto", "semicolon"])
def test_a_table_without_a_header_in_another_encoding(tmp_path: Path, separator: str) -> None:
    path = write(tmp_path / "a.csv", "1;2,5;grün\r\n3;4,5;rot\r\n".encode("latin-1"), packed=True)
    data = loaded("csv", path, header=False, encoding="latin-1", separator=separator)
    assert data.classes == ("grün", "rot")
    assert data.columns == ("0", "1 = 2,5", "1 = 4,5")


def test_quoted_cells_and_blank_lines_keep_the_numbers_of_rows(tmp_path: Path) -> None:
    text = 'a,b,y\n1,"two\nlines, ""quoted""",0\n\n2,x,1\n3,4\n4,x,0\n'
    data = loaded("csv", write(tmp_path / "a.csv", text), faults="skip")
    assert data.columns == ("a", 'b = two\nlines, "quoted"', "b = x")
    assert data.x_train.tolist() == [[1, 1, 0], [2, 0, 1], [4, 0, 1]]
    assert data.skipped == ("Row 5 has 2 cells; there are 3 columns.",)


@pytest.mark.parametrize("end", ["\r", "\n\r", "\r\n"])
def test_rows_end_as_on_any_system(tmp_path: Path, end: str) -> None:
    text = f'a,b,y{end}1,2,0{end},"p\rq",1{end}{end}5,6,0{end}'
    data = loaded("csv", write(tmp_path / "a.csv", text), missing="most frequent")
    assert data.columns == ("a", "b = 2", "b = 6", "b = p\rq")
    assert data.x_train.tolist() == [[1, 1, 0, 0], [1, 0, 0, 1], [5, 0, 1, 0]]


def test_whole_numbers_are_classes_only_if_they_are_few(tmp_path: Path) -> None:
    few = loaded("csv", write(tmp_path / "a.csv", "x,y\n" + "1,5\n2,7\n" * 10))
    assert few.classes == ("5", "7")
    rows = "".join(f"{i},{i}\n" for i in range(30))
    many = loaded("csv", write(tmp_path / "b.csv", "x,y\n" + rows))
    assert many.classes == () and many.y_train.flatten().tolist() == list(range(30))


def test_the_largest_numbers_of_float32_are_taken(tmp_path: Path) -> None:
    most = float(np.finfo(np.float32).max)
    rows = f"x,y\n{most!r},a\n-{most!r},b\n"
    assert loaded("csv", write(tmp_path / "a.csv", rows)).x_train.tolist() == [[most], [-most]]
    above = f"x,y\n{float(np.nextafter(most, np.inf))!r},a\n1,b\n"
    with pytest.raises(DataProblem, match="too large for float32"):
        loaded("csv", write(tmp_path / "b.csv", above))


def test_a_file_that_changes_is_read_again(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "x,y\n1,a\n2,b\n")
    first = loaded("csv", path)
    assert loaded("csv", path) is first
    write(path, "x,y\n1,a\n2,b\n33,b\n")
    assert loaded("csv", path).x_train.tolist() == [[1], [2], [33]]


# -- arrays ----------------------------------------------------------------------------------------


def test_an_npz_has_samples_and_targets(tmp_path: Path) -> None:
    x, y = np.random.default_rng(0).normal(size=(6, 2, 3)), np.array([3, 5, 3, 5, 5, 3])
    np.savez_compressed(tmp_path / "a.npz", x=np.asfortranarray(x), labels=y)
    data = loaded("numpy", tmp_path / "a.npz", y="labels")
    assert same(data.x_train, x.astype(np.float32))
    assert data.y_train.tolist() == [0, 1, 0, 1, 1, 0] and data.classes == ("3", "5")
    np.savez(tmp_path / "b.npz", x=[1.5, 2.5, 3.5, 4.5], y=[0, 1, 0, 1])
    data = loaded("numpy", tmp_path / "b.npz")
    assert same(data.x_train, np.array([[1.5], [2.5], [3.5], [4.5]], np.float32))
    with pytest.raises(DataProblem, match="no array y") as refused:
        loaded("numpy", tmp_path / "a.npz")
    assert refused.value.hint == "Its arrays are: x, labels."


def test_an_npy_has_its_targets_beside_it_or_in_its_last_column(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(5, 4)).astype(">f8")
    np.save(tmp_path / "a.npy", values)
    data = loaded("numpy", tmp_path / "a.npy")
    assert same(data.x_train, values[:, :3].astype(np.float32))
    assert same(data.y_train, values[:, 3:].astype(np.float32)) and data.classes == ()
    np.save(tmp_path / "y.npy", np.array(["b", "a", "b", "a", "a"]))
    data = loaded("numpy", tmp_path / "a.npy")
    assert data.sample_shape == (4,) and data.classes == ("a", "b")


def test_pixels_become_images_from_0_to_1(tmp_path: Path) -> None:
    x = pixels(4, 5, 5)
    np.savez(tmp_path / "a.npz", x=x, y=np.arange(4) % 2)
    assert same(loaded("numpy", tmp_path / "a.npz").x_train, (x / np.float32(255))[:, None])


# -- images ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("packed", [True, False])
def test_mnist_has_its_own_test_part(tmp_path: Path, packed: bool) -> None:
    x, y, x_test, y_test = mnist(tmp_path, packed)
    data = loaded("idx", tmp_path, validation=0.5)
    assert same(data.x_train, (x / np.float32(255))[:, None])
    assert same(data.x_val, (x_test / np.float32(255))[:, None])
    assert (data.y_train.tolist(), data.y_val.tolist()) == (y.tolist(), y_test.tolist())
    assert data.classes == ("0", "1", "2") and data.sample_shape == (1, 5, 4)
    split = loaded("idx", tmp_path, validation=0.5, own_test=False)
    assert (len(split), len(split.y_val)) == (6, 6)


def test_one_idx_file_finds_its_labels(tmp_path: Path) -> None:
    x, y, *_ = mnist(tmp_path)
    data = loaded("idx", tmp_path / "train-images-idx3-ubyte.gz")
    assert (
        same(data.x_train, (x / np.float32(255))[:, None]) and data.y_train.tolist() == y.tolist()
    )
    write(tmp_path / "l", idx(np.array([7] * 6 + [8] * 6, np.int32), 0x0C))
    data = loaded("idx", tmp_path / "train-images-idx3-ubyte.gz", labels="l")
    assert data.classes == ("7", "8")


CODES = [(9, "i1"), (11, "i2"), (12, "i4"), (13, "f4"), (14, "f8")]


@pytest.mark.parametrize(("code", "dtype"), CODES)
def test_numbers_of_an_idx_file_keep_their_bytes(tmp_path: Path, code: int, dtype: str) -> None:
    values = np.array([[1, -2], [3, 4], [-5, 6]], dtype)
    write(tmp_path / "x-images", idx(values, code))
    write(tmp_path / "x-labels", idx(np.array([0, 1, 0], np.uint8)))
    assert loaded("idx", tmp_path / "x-images").x_train.tolist() == values.tolist()


def test_cifar_10_is_its_bytes(tmp_path: Path) -> None:
    data, x = cifar([[3], [9], [0]])
    test, x_test = cifar([[1]])
    write(tmp_path / "data_batch_1.bin", data, packed=True)
    write(tmp_path / "test_batch.bin", test)
    write(tmp_path / "batches.meta.txt", "\n".join("abcdefghij"))
    found = loaded("cifar", tmp_path, validation=0.2)
    assert same(found.x_train, x / np.float32(255)) and found.y_train.tolist() == [3, 9, 0]
    assert same(found.x_val, x_test / np.float32(255)) and found.classes == tuple("abcdefghij")


@pytest.mark.parametrize(("version", "labels"), [("fine", [99, 5]), ("coarse", [19, 0])])
def test_cifar_100_has_two_labels(tmp_path: Path, version: str, labels: list[int]) -> None:
    data, _ = cifar([[19, 99], [0, 5]])
    write(tmp_path / "train.bin", data)
    found = loaded("cifar", tmp_path / "train.bin", version=f"CIFAR-100 {version}")
    assert found.y_train.tolist() == labels


@pytest.mark.parametrize(("colour", "mode"), [("RGB", "RGB"), ("grey", "L")])
def test_a_folder_of_images_is_pillows_pixels(tmp_path: Path, colour: str, mode: str) -> None:
    images(tmp_path, "RGB")
    data = loaded("images", tmp_path, size=(4, 6), colour=colour)
    assert data.classes == ("cat", "dog") and data.y_train.tolist() == [0, 0, 0, 1, 1, 1]
    with Image.open(tmp_path / "dog" / "2.png") as image:
        expected = np.asarray(image.convert(mode), np.float32) / 255
    expected = expected.transpose(2, 0, 1) if mode == "RGB" else expected[None]
    assert same(data.x_train[5], expected)
    small = loaded("images", tmp_path, size=(3, 2), colour=colour)
    assert small.sample_shape == (len(mode), 3, 2)


def test_train_and_val_folders_are_the_two_parts(tmp_path: Path) -> None:
    images(tmp_path / "train", "L")
    images(tmp_path / "val", "L")
    data = loaded("images", tmp_path, validation=0.5, colour="grey", size=(4, 6))
    assert (len(data), len(data.y_val)) == (6, 6)


def test_images_that_cannot_be_read_are_skipped_by_name(tmp_path: Path) -> None:
    images(tmp_path, "L")
    write(tmp_path / "cat" / "9.png", b"no image")
    write(tmp_path / "cat" / ".DS_Store", b"")
    data = loaded("images", tmp_path, faults="skip", size=(4, 6))
    assert len(data) == 6 and data.skipped == ("cat/9.png is not an image that can be read.",)


# -- text ------------------------------------------------------------------------------------------


def test_text_is_ids_with_the_next_character_as_target(tmp_path: Path) -> None:
    text = "abc äbc☃\nabcab"
    data = loaded("text", write(tmp_path / "a.txt", text), length=3)
    assert data.classes == tuple(sorted(set(text)))
    assert data.x_train.dtype == data.y_train.dtype == torch.int64
    joined = "".join(data.classes[i] for i in data.x_train.flatten().tolist())
    assert joined == text[:12]
    assert "".join(data.classes[i] for i in data.y_train.flatten().tolist()) == text[1:13]
    assert data.x_train.shape == (4, 3)
