"""A file that is not a project is named for what it is, with what can be done."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from engine.project import files
from engine.project.document import Project


def python(path: Path) -> None:
    path.write_text("import torch\n")


def notebook(path: Path) -> None:
    path.write_text('{"cells": [], "nbformat": 4}')


def weights(path: Path) -> None:
    torch.save({"a": torch.ones(2)}, path)


def old_weights(path: Path) -> None:
    torch.save({"a": torch.ones(2)}, path, _use_new_zipfile_serialization=False)


def program(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("net/models/model.json", "{}")
        archive.writestr("net/archive_format", "pt2")


def safetensors(path: Path) -> None:
    save_file({"a": torch.ones(2)}, path)


def array(path: Path) -> None:
    np.save(path, np.ones(2))


def arrays(path: Path) -> None:
    np.savez(path, a=np.ones(2))


def picture(path: Path) -> None:
    path.write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\2\0\0\0\2\b\2\0\0\0")


def table(path: Path) -> None:
    path.write_text("1,2\n3,4\n")


def onnx(path: Path) -> None:
    path.write_bytes(b"\x08\x0a\x12\x07pytorch")


@pytest.mark.parametrize(
    ("write", "name", "kind", "advice"),
    [
        (python, "net.py", "python", "Open it in the console"),
        (notebook, "net.ipynb", "notebook", "--to script"),
        (program, "net.pt2", "model", "tensorlab inspect net.pt2"),
        (weights, "net.pt", "weights", "tensorlab inspect net.pt"),
        (weights, "net", "weights", "tensorlab inspect net`"),
        (old_weights, "net.pth", "weights", "tensorlab inspect net.pth"),
        (safetensors, "net.safetensors", "safetensors", "tensorlab inspect net.safetensors"),
        (array, "x.npy", "array", "tensorlab inspect x.npy"),
        (arrays, "x.npz", "array", "tensorlab inspect x.npz"),
        (picture, "x.png", "picture", 'Image.open("x.png")'),
        (picture, "x.jpg", "picture", 'Image.open("x.jpg")'),
        (table, "x.csv", "table", 'np.genfromtxt("x.csv", delimiter=",")'),
        (onnx, "net.onnx", "onnx", "tensorlab inspect net.onnx"),
    ],
)
def test_it_is_named_with_what_can_be_done(tmp_path, write, name, kind, advice):
    write(tmp_path / name)
    with pytest.raises(files.OtherFile) as problem:
        files.load(tmp_path / name)
    assert problem.value.kind == kind
    assert "not a project" in str(problem.value)
    assert advice in str(problem.value)


def test_a_large_file_of_weights_is_named_too(tmp_path, monkeypatch):
    monkeypatch.setattr("engine.project.limits.MAX_FILE_BYTES", 100)
    weights(tmp_path / "net.pt")
    with pytest.raises(files.OtherFile, match="weights or a checkpoint"):
        files.load(tmp_path / "net.pt")


def test_the_advice_works(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table(tmp_path / "x.csv")
    with pytest.raises(files.OtherFile) as problem:
        files.load(tmp_path / "x.csv")
    names = {"torch": torch, "np": np}
    exec(str(problem.value).split("Tensors: ")[1], names)
    assert isinstance(names["x"], torch.Tensor)


def test_a_project_is_one_whatever_its_name(tmp_path):
    for name in ("net.py", "net.csv", "net.pt"):
        files.save(Project(name="net"), tmp_path / name)
        assert files.load(tmp_path / name).name == "net"


def test_another_archive_is_only_no_project(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.txt", "a")
    with pytest.raises(files.FileProblem) as problem:
        files.load(tmp_path / "a.zip")
    assert not isinstance(problem.value, files.OtherFile)
