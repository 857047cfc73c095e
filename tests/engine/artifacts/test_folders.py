"""Which reader a file or folder gets, what is told of it, and the words of refusals."""

from __future__ import annotations

import json
import pickle
import tarfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.filesystem import _StorageInfo
from torch.distributed.checkpoint.metadata import ChunkStorageMetadata, MetadataIndex

from engine.artifacts import opening
from engine.artifacts.contents.artifact import MAX_METADATA
from engine.artifacts.opening import READS, open_artifact
from engine.artifacts.weights import dcp_folder, hugging_face, run_folder
from engine.system.errors import LabError
from tests.engine.artifacts.hostile_folders import dcp_index, dcp_of

ONES = {"a": torch.ones(2)}
AGAIN = "Copy the whole folder again: .metadata and all .distcp files."


def refused(path: Path) -> tuple[str, str]:
    with pytest.raises(LabError) as raised:
        open_artifact(path)
    return str(raised.value), raised.value.hint


# -- which reader ----------------------------------------------------------------------------------


def test_what_a_file_holds_decides_and_not_its_name(tmp_path: Path) -> None:
    torch.save(ONES, tmp_path / "a.onnx")
    torch.save(ONES, tmp_path / "b.txt", _use_new_zipfile_serialization=False)
    safetensors.torch.save_file(ONES, tmp_path / "c.pt")
    np.save(tmp_path / "d.npy", np.ones(2))
    (tmp_path / "d.npy").rename(tmp_path / "d.safetensors")
    np.savez(tmp_path / "e.npz", a=np.ones(2))
    (tmp_path / "e.npz").rename(tmp_path / "e.pt")
    found = {path.name: open_artifact(path) for path in sorted(tmp_path.iterdir())}
    assert {name: (each.kind, each.title) for name, each in found.items()} == {
        "a.onnx": ("torch", "PyTorch state_dict"),
        "b.txt": ("torch", "PyTorch state_dict"),
        "c.pt": ("safetensors", "safetensors file"),
        "d.safetensors": ("numpy", "NumPy array"),
        "e.pt": ("numpy", "archive of NumPy arrays"),
    }


def test_a_link_is_followed_to_its_file(tmp_path: Path) -> None:
    torch.save(ONES, tmp_path / "a.pt")
    (tmp_path / "link").symlink_to(tmp_path / "a.pt")
    assert torch.equal(open_artifact(tmp_path / "link").tensor("a"), torch.ones(2))


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("a.pt", b"x" * 20, "torch.save did not write it, or it is damaged"),
        ("a.CKPT", b"x" * 20, "torch.save did not write it, or it is damaged"),
        ("a.txt", b"x" * 20, "it does not hold tensors or a program in a form that is known here"),
    ],
)
def test_a_file_of_no_kind_is_refused(tmp_path: Path, name: str, data: bytes, why: str) -> None:
    (tmp_path / name).write_bytes(data)
    assert refused(tmp_path / name) == (
        f"{name} was not opened: {why}.", f"What can be opened: {READS}.",
    )  # fmt: skip


def test_a_tar_an_empty_file_and_one_that_is_not_there_are_told(tmp_path: Path) -> None:
    (tmp_path / "empty.pt").touch()
    with tarfile.open(tmp_path / "old.pt", "w") as archive:
        archive.add(tmp_path / "empty.pt", "x")
    assert refused(tmp_path / "old.pt")[0] == (
        "old.pt was not opened: it is a tar archive: torch wrote such files before 0.1.10."
    )
    assert refused(tmp_path / "empty.pt") == ("empty.pt is empty.", "Copy or download it again.")
    gone = tmp_path / "gone.pt"
    assert refused(gone) == (f"There is no file {gone}.", "Was it moved?")


def test_an_archive_without_tensors_is_told(tmp_path: Path) -> None:
    import zipfile

    for name, members in (("none.zip", {}), ("text.zip", {"a.txt": b"x"}), (
        "mixed.zip", {"a.npy": b"x", "b.txt": b"x"}
    )):  # fmt: skip
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            for member, data in members.items():
                archive.writestr(member, data)
        if members:
            assert refused(tmp_path / name) == (
                f"{name} is a zip archive without tensors of torch or NumPy.",
                f"What can be opened: {READS}.",
            )


def test_what_goes_wrong_while_a_file_is_read_is_told_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.pt").write_bytes(b"x")
    for error, said in (
        (OSError(5, "Input/output error"), ("a.pt cannot be read: Input/output error.", "")),
        (OSError("no more"), ("a.pt cannot be read: no more.", "")),
        (
            KeyError("x"),
            (
                "a.pt cannot be read: what is in it does not fit together.",
                "It may be damaged or cut off: copy or download it again.",
            ),
        ),
    ):

        def fail(path: Path, error: Exception = error) -> Any:
            raise error

        monkeypatch.setattr(opening, "_file", fail)
        assert refused(tmp_path / "a.pt") == said


def test_a_folder_of_no_kind_is_told(tmp_path: Path) -> None:
    words, hint = refused(tmp_path)
    assert words == f"{tmp_path.name} is a folder of no kind that is known."
    assert hint.startswith("Folders with config.json and weights") and ".metadata" in hint


# -- Hugging Face ----------------------------------------------------------------------------------


def test_the_config_of_a_folder_is_told_in_text(tmp_path: Path) -> None:
    safetensors.torch.save_file(ONES, tmp_path / "model.safetensors", {"format": "pt"})
    config = {"name": "toy", "sizes": [1, 2], "tied": True}
    (tmp_path / "config.json").write_text(json.dumps(config))
    found = open_artifact(tmp_path)
    assert (found.kind, found.title) == ("hugging face", "Hugging Face folder")
    assert found.metadata == {"format": "pt", "name": "toy", "sizes": "[1, 2]", "tied": "true"}
    assert [entry.file for entry in found.entries] == ["model.safetensors"]
    many = {f"n{number}": number for number in range(MAX_METADATA)}
    (tmp_path / "config.json").write_text(json.dumps(many))
    assert len(open_artifact(tmp_path).metadata) == MAX_METADATA // 2 + 1
    (tmp_path / "config.json").unlink()
    assert open_artifact(tmp_path).metadata == {"format": "pt"}


def test_safetensors_are_read_before_a_pickle_beside_them(tmp_path: Path) -> None:
    torch.save({"b": torch.ones(1)}, tmp_path / "pytorch_model.bin")
    assert [entry.key for entry in open_artifact(tmp_path).entries] == ["b"]
    safetensors.torch.save_file(ONES, tmp_path / "model.safetensors")
    assert [entry.key for entry in open_artifact(tmp_path).entries] == ["a"]


def test_a_folder_without_weights_says_which_are_wanted(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    assert refused(tmp_path) == (
        f"{tmp_path.name} has a config.json, and no weights.",
        "Download model.safetensors or pytorch_model.bin into it.",
    )


def index_of(folder: Path, weight_map: Any) -> Path:
    path = folder / "model.safetensors.index.json"
    path.write_text(json.dumps({"weight_map": weight_map}))
    return path


def test_the_weights_of_an_index_come_in_its_order_with_their_files(tmp_path: Path) -> None:
    safetensors.torch.save_file({"a": torch.ones(2), "c": torch.ones(3)}, tmp_path / "1.st",
                                {"who": "one"})  # fmt: skip
    safetensors.torch.save_file({"b": torch.zeros(1)}, tmp_path / "2.st", {"when": "now"})
    for name in ("1", "2"):
        (tmp_path / f"{name}.st").rename(tmp_path / f"{name}.safetensors")
    index = index_of(tmp_path, {"c": "1.safetensors", "b": "2.safetensors", "a": "1.safetensors"})
    found = open_artifact(index)
    assert [(entry.key, entry.file) for entry in found.entries] == [
        ("c", "1.safetensors"), ("b", "2.safetensors"), ("a", "1.safetensors"),
    ]  # fmt: skip
    assert (found.kind, found.title) == ("sharded", "weights in 2 files")
    assert found.metadata == {"who": "one", "when": "now"}
    assert found.files == (index, tmp_path / "1.safetensors", tmp_path / "2.safetensors")


@pytest.mark.parametrize("weight_map", [None, [], {"a": 1}, "a"])
def test_an_index_without_files_is_told(tmp_path: Path, weight_map: Any) -> None:
    assert refused(index_of(tmp_path, weight_map))[0] == (
        "model.safetensors.index.json does not say which file has which weight."
    )


def test_an_index_that_does_not_fit_its_files_is_told(tmp_path: Path, monkeypatch) -> None:
    safetensors.torch.save_file(ONES, tmp_path / "1.safetensors")
    index = index_of(tmp_path, {"a": "1.safetensors", "b": "1.safetensors"})
    assert refused(index) == (
        "1.safetensors does not have b, which model.safetensors.index.json says is there.",
        "The folder may have files of two models: download it again.",
    )
    safetensors.torch.save_file({"b": torch.ones(1)}, tmp_path / "2.safetensors")
    index = index_of(tmp_path, {"a": "1.safetensors", "b": "2.safetensors"})
    monkeypatch.setattr(hugging_face, "MAX_SHARDS", 2)
    assert len(open_artifact(index).entries) == 2
    monkeypatch.setattr(hugging_face, "MAX_SHARDS", 1)
    assert refused(index)[0] == "model.safetensors.index.json names more than 1 files."


@pytest.mark.parametrize(
    ("text", "words"),
    [("{", "is not JSON: it may be damaged."), ("[1]", "is not a list of names and values.")],
)
def test_an_index_that_is_none_is_told(tmp_path: Path, text: str, words: str, monkeypatch) -> None:
    index = index_of(tmp_path, {})
    index.write_text(text)
    assert refused(index)[0] == f"{index.name} {words}"
    monkeypatch.setattr(hugging_face, "MAX_JSON_BYTES", len(text) - 1)
    assert refused(index)[0] == f"{index.name} is larger than any index or config."


# -- torch.distributed.checkpoint ------------------------------------------------------------------


def saved(folder: Path, **state: Any) -> Path:
    dcp.save(state or {"a": torch.arange(2.0)}, checkpoint_id=folder / "dcp")
    return folder / "dcp"


def changed(folder: Path, change: Any) -> Path:
    """A checkpoint of `a` whose index `change` has changed."""
    path = saved(folder)
    metadata: Any = dcp.FileSystemReader(path).read_metadata()
    change(metadata)
    (path / ".metadata").write_bytes(pickle.dumps(metadata))
    return path


pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is disabled:UserWarning")


def test_what_is_told_of_a_checkpoint_of_ranks(tmp_path: Path) -> None:
    path = saved(tmp_path, a=torch.arange(6, dtype=torch.int16).view(2, 3), note="text")
    found = open_artifact(path)
    assert (found.kind, found.title) == ("dcp", "folder of torch.distributed.checkpoint")
    assert found.metadata == {"files": "__0_0.distcp"}
    assert found.files == (path / ".metadata", path / "__0_0.distcp")
    a, note = sorted(found.entries, key=lambda entry: entry.key)
    assert (a.shape, a.dtype, a.size_bytes, a.file, a.note) == (
        (2, 3), "int16", 12, "__0_0.distcp", "",
    )  # fmt: skip
    assert (note.kind, note.dtype, note.text) == ("value", "bytes", "an object")
    assert note.note == "its pickle is not read"
    assert found.tensor("a").tolist() == [[0, 1, 2], [3, 4, 5]]


def boxes(metadata: Any, *found: tuple[int, int]) -> None:
    told = metadata.state_dict_metadata["a"]
    told.chunks = [ChunkStorageMetadata(torch.Size([a]), torch.Size([n])) for a, n in found]


def place(metadata: Any, **fields: Any) -> None:
    (key,) = metadata.storage_data
    old = metadata.storage_data[key]
    now = {"relative_path": old.relative_path, "offset": old.offset, "length": old.length}
    metadata.storage_data[key] = _StorageInfo(**{**now, **fields})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda m: boxes(m, (1, 2)), "A piece of a lies outside of the tensor."),
        (lambda m: boxes(m, (0, 1)), "a lacks some of its pieces."),
        (lambda m: m.storage_data.clear(), ".metadata does not say where a is."),
        (lambda m: place(m, relative_path="gone"), "dcp lacks gone."),
        (lambda m: place(m, offset=-1), "__0_0.distcp does not have a where .metadata says."),
        (lambda m: place(m, length=-1), "__0_0.distcp does not have a where .metadata says."),
        (lambda m: place(m, offset=1), "__0_0.distcp does not have a where .metadata says."),
    ],
)
def test_an_index_that_does_not_fit_the_pieces_is_told(
    tmp_path: Path, change: Any, words: str
) -> None:
    assert refused(changed(tmp_path, change)) == (words, AGAIN)


@pytest.mark.parametrize("name", ["../a", "/a", "a/b", "", ".", ".."])
def test_a_piece_outside_of_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    words, _ = refused(changed(tmp_path, lambda m: place(m, relative_path=name)))
    assert words == f"dcp was refused: its index names {name}, outside of it."


def test_a_piece_that_is_another_tensor_is_told_when_it_is_read(tmp_path: Path) -> None:
    def longer(metadata: Any) -> None:
        metadata.state_dict_metadata["a"].size = torch.Size([1])
        boxes(metadata, (0, 1))

    found = open_artifact(changed(tmp_path, longer))
    with pytest.raises(LabError) as raised:
        found.tensor("a")
    words = "A piece of a in __0_0.distcp is not what .metadata says."
    assert (str(raised.value), raised.value.hint) == (words, AGAIN)


def test_a_piece_of_the_whole_at_another_place_is_put_there(tmp_path: Path) -> None:
    def twice(metadata: Any) -> None:
        told = metadata.state_dict_metadata["a"]
        told.size = torch.Size([4])
        boxes(metadata, (0, 2), (2, 2))
        (old,) = metadata.storage_data.values()
        metadata.storage_data = {
            MetadataIndex("a", torch.Size([at])): old for at in (0, 2)
        }  # fmt: skip

    found = open_artifact(changed(tmp_path, twice))
    assert found.tensor("a").tolist() == [0, 1, 0, 1]
    assert found.entries[0].note == "in 2 pieces"


def test_an_index_that_is_too_large_or_none_is_told(tmp_path: Path, monkeypatch) -> None:
    path = saved(tmp_path)
    size = (path / ".metadata").stat().st_size
    monkeypatch.setattr(dcp_folder, "MAX_PICKLE_BYTES", size)
    assert open_artifact(path).entries
    monkeypatch.setattr(dcp_folder, "MAX_PICKLE_BYTES", size - 1)
    assert refused(path)[0] == ".metadata of dcp is larger than any index."
    monkeypatch.undo()
    other = dcp_of(lambda folder: {"a": 1})(tmp_path)
    words, hint = refused(other)
    assert words == ".metadata of dcp cannot be read: an object of the index has no fields."
    assert hint == AGAIN
    index = dcp_index("__0_0.distcp")
    index.state_dict_metadata["a"].properties = 3
    assert refused(dcp_of(lambda folder: index, b"x" * 100)(tmp_path)) == (
        ".metadata of dcp cannot be read: a tensor of the index has no dtype.", AGAIN,
    )  # fmt: skip


# -- runs ------------------------------------------------------------------------------------------


def row(**fields: Any) -> Any:
    told: dict[str, Any] = {
        "id": "r1", "title": "net", "state": "running", "began_s": 0.0, "ended_s": 0.0, "step": 0,
        "loss": None, "epoch": None, "epochs": 0, "origin": "", "note": "", "error": "",
        "problem": "",
    }  # fmt: skip
    return SimpleNamespace(**told | fields)


def test_of_a_run_only_what_is_known_is_told(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(run_folder, "row_of", lambda folder: row())
    found = run_folder.open_run(tmp_path, open_artifact)
    assert found.metadata == {
        "run": "r1", "subject": "net", "state": "running", "checkpoints": "none",
    }  # fmt: skip
    assert (found.kind, found.title, found.files) == ("run", "folder of a run", (tmp_path,))
    began_s = time.mktime((2026, 5, 4, 3, 2, 1, 0, 0, -1))
    whole = row(
        began_s=began_s, ended_s=began_s + 60, step=12345, loss=0.123456789,
        epoch=SimpleNamespace(epoch=2), epochs=1000, origin="r0", note="good", error="E",
        problem="P",
    )  # fmt: skip
    monkeypatch.setattr(run_folder, "row_of", lambda folder: whole)
    (tmp_path / "checkpoints").mkdir()
    for number in (1, 2):
        torch.save({"a": torch.tensor([number])}, tmp_path / f"checkpoints/step-0000000{number}.pt")
    (tmp_path / "b.json").touch()
    (tmp_path / "a.json").touch()
    found = run_folder.open_run(tmp_path, open_artifact)
    assert found.metadata == {
        "run": "r1", "subject": "net", "state": "running", "began": "2026-05-04 03:02:01",
        "ended": "2026-05-04 03:03:01", "step": "12,345", "loss": "0.123457", "epoch": "2",
        "epochs": "1,000", "went on from": "r0", "note": "good", "error": "E", "problem": "P",
        "checkpoints": "step-00000002.pt, step-00000001.pt",
    }  # fmt: skip
    newest = "step-00000002.pt"
    assert found.title == f"folder of a run, with the tensors of {newest}"
    assert [entry.file for entry in found.entries] == [f"checkpoints/{newest}"]
    assert found.tensor("a").tolist() == [2]
    assert found.files == (
        tmp_path / "a.json", tmp_path / "b.json", tmp_path / "checkpoints" / newest,
    )  # fmt: skip
