"""Data that cannot be used: each input with the words that it gets. None of it takes memory for
what only its header promises, and none of it runs code."""

from __future__ import annotations

import errno
import io
import os
import pickle
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from struct import pack
from typing import NoReturn

import numpy as np
import pytest
from PIL import Image

from engine.datasets import load
from engine.datasets.samples import DataProblem
from engine.project.document import Column, DataSetup
from tests.engine.datasets.files import cifar, idx, images, load_dataset, loaded, mnist, write

Make = Callable[[Path], Path]


def csv(text: str | bytes, packed: bool = False) -> Make:
    return lambda folder: write(folder / "a.csv", text, packed)


def npz(**arrays: object) -> Make:
    def make(folder: Path) -> Path:
        np.savez(folder / "a.npz", **arrays)  # pyright: ignore[reportArgumentType]
        return folder / "a.npz"

    return make


def npy(data: bytes) -> Make:
    return lambda folder: write(folder / "a.npy", data)


def saved(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def header(shape: str, dtype: str = "<f8") -> bytes:
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + pack("<H", len(text)) + text


def zipped(name: str, data: bytes) -> Make:
    def make(folder: Path) -> Path:
        with zipfile.ZipFile(folder / "a.npz", "w") as archive:
            archive.writestr(name, data)
        return folder / "a.npz"

    return make


def pair(images: bytes, labels: bytes | None, packed: bool = False) -> Make:
    def make(folder: Path) -> Path:
        if labels is not None:
            write(folder / "x-labels", labels, packed)
        return write(folder / "x-images", images, packed)

    return make


def folder_of(files: dict[str, bytes]) -> Make:
    def make(folder: Path) -> Path:
        images(folder)
        for name, data in files.items():
            write(folder / name, data)
        return folder

    return make


def huge_png() -> bytes:
    buffer = io.BytesIO()
    Image.new("1", (9000, 9000)).save(buffer, "PNG")
    return buffer.getvalue()


def deep_png() -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(np.zeros((4, 4), np.uint16)).save(buffer, "PNG")
    return buffer.getvalue()


def png() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (40, 40), "red").save(buffer, "PNG")
    return buffer.getvalue()


def no_batches(folder: Path) -> Path:
    write(folder / "data_batch_1", pickle.dumps({}))
    return folder


def one_class(folder: Path) -> Path:
    write(folder / "cat" / "1.png", png())
    return folder


def other_class(folder: Path) -> Path:
    images(folder / "train")
    write(folder / "val" / "cow" / "1.png", png())
    write(folder / "val" / "cat" / "1.png", png())
    return folder


def fifo(folder: Path) -> Path:
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


def wrong_test(folder: Path) -> Path:
    mnist(folder, packed=False)
    write(folder / "t10k-images-idx3-ubyte", idx(np.zeros((4, 7, 7), np.uint8)))
    return folder


X, Y = np.zeros((4, 2)), np.array([0, 1, 0, 1])
NAN = np.array([[0, 1], [2, np.nan], [4, 5], [6, 7]])
IMAGES, LABELS = idx(np.zeros((3, 2, 2), np.uint8)), idx(np.array([0, 1, 1], np.uint8))
RECORD, _ = cifar([[3], [77]])
MALFORMED: dict[str, tuple[str, Make, str, dict]] = {
    "nothing there": ("csv", lambda f: f / "no.csv", "There is no file", {}),
    "a folder as a file": ("csv", lambda f: f, "is not a file", {}),
    "a pipe": ("csv", fifo, "is not a file", {}),
    "NUL in the path": ("csv", lambda f: Path("a\0b"), "(cannot be read|no file)", {}),
    "a name that no file can have": ("csv", lambda f: f / ("a" * 999), "aa cannot be read: ", {}),
    "empty": ("csv", csv(""), "a.csv is empty", {}),
    "only a header": ("csv", csv("x,y\n"), "no rows below its header", {}),
    "one column": ("csv", csv("x\n1\n"), "one column only: “x”", {}),
    "wrong separator": ("csv", csv("x;y\n1;2\n"), "one column only: “x;y”", {"separator": "comma"}),
    "too short a row": ("csv", csv("x,y\n1,a\n2\n"), "Row 3 has 1 cell; there are 2", {}),
    "too long a row": ("csv", csv("x,y\n1,a,5\n2,b\n"), "Row 2 has 3 cells; there are 2", {}),
    "an open quote": ("csv", csv('x,y\n"1,a\n2,b\n'), "a.csv, row 2: unexpected end", {}),
    "NUL in a row": ("csv", csv("x,y\n1,a\n\0,b\n"), "not text: character 8 is NUL", {}),
    "not UTF-8": ("csv", csv(b"x,y\n1,a\n\xff,b\n"), r"line 3: byte 8 \(0xff\) is not utf-8", {}),
    "gzip cut off": (
        "csv",
        lambda f: write(f / "a.csv", write(f / "b", "x,y\n" * 99, True).read_bytes()[:-12]),
        "a.csv is cut off: its gzip",
        {},
    ),
    "gzip damaged": ("csv", csv(b"\x1f\x8b\x08\0\0\0\0\0\0\x03" + b"\xff" * 30), "is damaged", {}),
    "two names": ("csv", csv("x,x,y\n1,2,a\n"), "two columns are named “x”", {}),
    "no name": ("csv", csv("x,,y\n1,2,a\n"), "column 2 has no name", {}),
    "a missing value": ("csv", csv("x,y\n1,a\n,b\n"), "Row 3, column “x”: the value is mis", {}),
    "a missing target": (
        "csv",
        csv("x,y\n1,a\n2,?\n3,b\n"),
        "Row 3, column “y”: the value is missing",
        {"missing": "mean"},
    ),
    "infinite": ("csv", csv("x,y\n1,a\n-inf,b\n" * 1 + "2,a\n" * 9), "Row 3.*“-inf” is not", {}),
    "a word among numbers": (
        "csv",
        csv("x,y\n" + "1,a\n2,b\n" * 8 + "abc,a\n"),
        "Row 18, column “x”: “abc” is not a finite number",
        {},
    ),
    "too many texts": (
        "csv",
        csv("n,y\n" + "".join(f"name {i},a\n" for i in range(257))),
        "Column “n” has 257 different texts",
        {},
    ),
    "one value of the target": ("csv", csv("x,y\n1,a\n2,a\n"), "one value only: a", {}),
    "beyond float32": ("csv", csv("x,y\n1e300,a\n2,b\n"), "too large for float32", {}),
    "a target beyond float32": (
        "csv", csv("x,y\n1,1e39\n2,0.5\n"), "too large for float32", {},
    ),
    "labels that are one as float64": (
        "csv", csv("x,y\n1,9007199254740992\n2,9007199254740993\n"), "“y”.*not told apart", {},
    ),
    "no values": ("csv", csv("x,z,y\n1,,a\n2,,b\n"), "“z”.*no value", {"missing": "mean"}),
    "no array of this name": ("numpy", npz(a=X, y=Y), "no array x", {}),
    "other lengths": ("numpy", npz(x=X, y=Y[:3]), "x has 4 samples, .*y has 3 targets", {}),
    "no samples": ("numpy", npz(x=X[:0], y=Y[:0]), "has no samples", {}),
    "NaN in samples": ("numpy", npz(x=NAN, y=Y), "x, sample 1: element 1 is nan", {}),
    "NaN in targets": ("numpy", npz(x=X, y=NAN), "y, sample 1: element 1 is nan", {}),
    "complex": ("numpy", npz(x=X + 1j, y=Y), "x holds complex128", {}),
    "a single number": ("numpy", npz(x=3.0, y=Y), "is a single number", {}),
    "labels of two dimensions": ("numpy", npz(x=X, y=np.eye(4, dtype=int)), r"labels are \(N,", {}),
    "faults only": ("numpy", npz(x=X * np.nan, y=Y), "no sample without", {"faults": "skip"}),
    "targets of three dimensions": ("numpy", npz(x=X, y=X[:, None]), r"y has shape \(4, 1, 2", {}),
    "texts as numbers": (
        "numpy",
        npz(x=X, y=np.array(list("abab"))),
        "holds texts",
        {"target": "numbers"},
    ),
    "samples beyond float32": ("numpy", npz(x=X + 1e39, y=Y), "sample 0: .*too large for f", {}),
    "targets beyond float32": ("numpy", npz(x=X, y=Y * 1e39), "y, sample 1: .*1e\\+39, too", {}),
    "one class": ("numpy", npz(x=X, y=Y * 0), "a.npz have one value only: 0", {}),
    "samples of nothing": ("numpy", npz(x=X[:, :0], y=Y), r"sample of a.npz has shape \(0,\)", {}),
    "targets of nothing": ("numpy", npz(x=X, y=X[:, :0]), r"target of a.npz has shape \(0,\)", {}),
    "targets that lie elsewhere": (
        "numpy", lambda f: write(f / "a.npy", saved(X)), "../y.npy is not the name", {"y": "../y"},
    ),
    "pickled objects": (
        "numpy",
        zipped("x.npy", saved(np.array([{}, []], object))),
        "holds pickled objects",
        {},
    ),
    "a pickled .npy": ("numpy", npy(pickle.dumps([1, 2])), "a.npy is not an .npy file", {}),
    "objects in an .npy": ("numpy", npy(saved(np.array([None]))), "holds pickled objects", {}),
    "more promised than there is": ("numpy", npy(header("(9, 9)") + b"\0" * 8), "ends early", {}),
    "terabytes promised": ("numpy", npy(header("(99999999, 9999)")), "ends early: 7,999", {}),
    "a gigabyte promised": ("numpy", npy(header("(99999999, 2)")), "ends early", {}),
    "a negative shape": ("numpy", npy(header("(-3, 2)")), "the shape", {}),
    "a header of code": ("numpy", npy(header("__import__('os').getcwd()")), "not an .npy", {}),
    "a damaged archive": ("numpy", lambda f: write(f / "a.npz", b"PK\x03\x04" + b"\0" * 40),
                          "a.npz is damaged", {}),
    "no targets": ("numpy", npy(saved(np.zeros(5))), "its targets are not beside it", {}),
    "not IDX": ("idx", pair(b"\x89PNG....", LABELS), "begins with 89 50 4e 47", {}),
    "IDX cut off": ("idx", pair(IMAGES[:-1], LABELS), "ends early: 12 bytes", {}),
    "IDX promises gigabytes": (
        "idx", pair(b"\0\0\x08\x03" + pack(">3I", 500_000, 60, 60), LABELS), "ends early", {},
    ),
    "IDX promises terabytes": (
        "idx", pair(b"\0\0\x08\x03" + pack(">3I", 2**32 - 1, 99, 99), LABELS), "ends early", {},
    ),
    "packed IDX promises terabytes": (
        "idx", pair(b"\0\0\x08\x03" + pack(">3I", 2**32 - 1, 9, 9), LABELS, True), "is packed", {},
    ),
    "IDX goes on": ("idx", pair(IMAGES + b"\0", LABELS), "goes on after the 12 bytes", {}),
    "IDX, gzip cut off": (
        "idx",
        lambda f: write(f / "x-images", pair(IMAGES, LABELS, True)(f).read_bytes()[:-9]),
        "is cut off",
        {},
    ),
    "IDX of 40 dims": (
        "idx", pair(b"\0\0\x08\x28" + pack(">40I", *[1] * 40) + b"\0", LABELS), "1 to 32", {},
    ),
    "NaN in IDX": (
        "idx", pair(idx(NAN, 0x0E), idx(Y.astype(np.uint8))), "x-images, sample 1: .*1 is nan", {},
    ),
    "doubles of IDX beyond float32": (
        "idx", pair(idx(X + 1e39, 0x0E), idx(Y.astype(np.uint8))), "too large for float32", {},
    ),
    "IDX with faults only": (
        "idx",
        pair(idx(X * np.nan, 0x0E), idx(Y.astype(np.uint8))),
        "no sample without",
        {"faults": "skip"},
    ),
    "IDX of one class": ("idx", pair(IMAGES, idx(np.zeros(3, np.uint8))), "one value only: 0", {}),
    "labels that lie elsewhere": (
        "idx", pair(IMAGES, LABELS), "/x is not the name of a file", {"labels": "/x"},
    ),
    "other number of labels": ("idx", pair(IMAGES, LABELS[:7] + b"\2\1\1"), "3 samples.*2", {}),
    "no labels": ("idx", pair(IMAGES, None), "labels of x-images are not beside it", {}),
    "images as labels": ("idx", pair(IMAGES, IMAGES), r"x-labels has no labels.*\(3, 2, 2\)", {}),
    "labels as images": ("idx", pair(LABELS, LABELS), "x-images has no samples", {}),
    "a folder without IDX": ("idx", lambda f: f, "no two IDX files", {}),
    "a test part of other images": ("idx", wrong_test, r"shape \(7, 7\).*\(5, 4\)", {}),
    "a label that CIFAR lacks": (
        "cifar", lambda f: write(f / "a.bin", RECORD), "a.bin, record 2: label 77", {},
    ),
    "CIFAR cut off": (
        "cifar", lambda f: write(f / "a.bin", RECORD[:-7]), "cut off after 3,066", {},
    ),
    "CIFAR cut off where a pickle would end": (
        "cifar", lambda f: write(f / "a.bin", RECORD[:-8] + b"."), "cut off after 3,066", {},
    ),
    "CIFAR's pickles": ("cifar", no_batches, "Python version, which is pickled", {}),
    "a pickle for CIFAR": (
        "cifar", lambda f: write(f / "data_batch_1", pickle.dumps({})), "is a pickle", {},
    ),
    "no records": ("cifar", lambda f: write(f / "a.bin", b""), "has no records", {}),
    "one folder": ("images", one_class, "1 folder in it", {}),
    "a class without an image": (
        "images", lambda f: (images(f), (f / "cow").mkdir(), f)[2], "cow has no image", {},
    ),
    "no image": ("images", folder_of({"cat/9.txt": b"hello"}), "cat/9.txt is not an image", {}),
    "an image cut off": ("images", folder_of({"dog/9.png": png()[:60]}), "dog/9.png is a dam", {}),
    "an image of 81 million pixels": (
        "images", folder_of({"cat/9.png": huge_png()}), "cat/9.png has 9,000 × 9,000 pixels", {},
    ),
    "an image of 16 bits": (
        "images", folder_of({"cat/9.png": deep_png()}), "cat/9.png has more than 8 bits", {},
    ),
    "three sizes": ("images", folder_of({}), "give height and width", {"size": (3, 4, 4)}),
    "a class that is not trained": ("images", other_class, "val/cow is a class that train", {}),
    "too short a text": ("text", lambda f: write(f / "a", "abc"), "3 characters; one sample", {}),
    "a text of one character": ("text", lambda f: write(f / "a", "a" * 99), "value only: a", {}),
    "a binary as text": ("text", lambda f: write(f / "a", b"ab\0" * 99), "character 2 is NUL", {}),
    "another encoding": ("text", lambda f: write(f / "a", b"\xe4" * 99), "byte 0.*not utf-8", {}),
}  # fmt: skip


@pytest.mark.parametrize("what", MALFORMED)
def test_what_is_malformed_is_refused_by_name(what: str, tmp_path: Path) -> None:
    kind, make, words, params = MALFORMED[what]
    path = make(tmp_path)
    if not tracemalloc.is_tracing():
        tracemalloc.start()
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    try:
        with pytest.raises(DataProblem, match=f"(?s){words}") as refused:
            loaded(kind, path, **params)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert str(refused.value)[-1] in ".!"
    assert peak - before < 60 * 2**20


@pytest.mark.parametrize(
    ("what", "samples", "told"),
    [
        ("too short a row", 1, "Row 3 has 1 cell"),
        ("a word among numbers", 16, "Row 18, column “x”"),
        ("NaN in samples", 3, "sample 1"),
        ("NaN in IDX", 3, "x-images, sample 1"),
        ("a class without an image", 6, "cow has no image"),
        ("a label that CIFAR lacks", 1, "record 2"),
        ("an image cut off", 6, "dog/9.png"),
    ],
)
def test_what_is_malformed_is_skipped_if_the_user_says_so(
    what: str, samples: int, told: str, tmp_path: Path
) -> None:
    kind, make, _, params = MALFORMED[what]
    if what == "too short a row":
        make = csv("x,y\n1,a\n2\n3,b\n")
        samples = 2
    data = loaded(kind, make(tmp_path), faults="skip", **params)
    (line,) = data.skipped
    assert len(data) == samples and told in line


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"z": Column("ignore")}, "no column “z”"),
        ({"x": Column("target"), "y": Column("target")}, "two targets: “x” and “y”"),
        ({"x": Column("ignore"), "y": Column("ignore")}, "every column is ignored"),
        ({"x": Column("ignore")}, "no feature"),
    ],
)
def test_roles_that_do_not_fit_the_table_are_told(
    columns: dict[str, Column], words: str, tmp_path: Path
) -> None:
    path = csv("x,y\n1,a\n2,b\n")(tmp_path)
    with pytest.raises(DataProblem, match=words):
        load_dataset(DataSetup("csv", path=str(path), columns=columns))


def test_a_column_may_have_256_texts(tmp_path: Path) -> None:
    texts = "".join(f"name {i},{'ab'[i % 2]}\n" for i in range(256))
    assert loaded("csv", csv("n,y\n" + texts)(tmp_path)).sample_shape == (256,)


def test_a_disk_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path, **_: object) -> NoReturn:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setitem(load._READERS, "csv", fail)
    with pytest.raises(DataProblem, match=r"a.csv cannot be read: Input/output error."):
        loaded("csv", csv("x,y\n1,a\n")(tmp_path))


def test_a_kind_without_its_file_asks_for_it() -> None:
    with pytest.raises(DataProblem, match="CSV table: nothing is chosen yet"):
        load_dataset(DataSetup("csv"))
