"""Files of tensors, against what torch, safetensors and NumPy themselves load."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import safetensors.torch
import torch
import torch.distributed.checkpoint as dcp
from torch import Tensor, nn
from torch.distributed.checkpoint.filesystem import _StorageInfo
from torch.distributed.checkpoint.metadata import ChunkStorageMetadata, MetadataIndex

from engine.artifacts.contents import file_bytes
from engine.artifacts.contents.artifact import Artifact
from engine.artifacts.contents.shared_memory import Memory, memory_of
from engine.artifacts.opening import open_artifact
from engine.artifacts.state import ArtifactState
from engine.system.errors import LabError
from engine.tensors.compare import same_bits
from tests.engine.artifacts.networks import net, odd_state

pytestmark = pytest.mark.filterwarnings(
    "ignore:torch.distributed is disabled:UserWarning", "ignore:.*quant:UserWarning",
    "ignore:.*quant:DeprecationWarning",
)  # fmt: skip


def assert_holds(artifact: Artifact, state: dict[str, Tensor]) -> None:
    """The tensors of a file are exactly these: index and numbers."""
    assert {entry.key for entry in artifact.tensors} == set(state)
    for entry in artifact.tensors:
        tensor = state[entry.key]
        assert entry.shape == tuple(tensor.shape), entry.key
        assert f"torch.{entry.dtype}" == str(tensor.dtype), entry.key
        assert entry.size_bytes == tensor.numel() * tensor.element_size(), entry.key
        assert same_bits(artifact.tensor(entry.key), tensor), entry.key


@pytest.mark.parametrize("as_zip", [True, False], ids=["zip", "before 1.6"])
def test_a_state_dict_of_torch(as_zip: bool, tmp_path: Path) -> None:
    path = tmp_path / "state.pt"
    state = odd_state()
    if not as_zip:
        del state["unsigned"], state["float8"]  # this format does not have these dtypes
    torch.save(state, path, _use_new_zipfile_serialization=as_zip)
    artifact = open_artifact(path)
    assert artifact.title == "PyTorch state_dict"
    assert_holds(artifact, torch.load(path, weights_only=True))
    by_key = {entry.key: entry for entry in artifact.entries}
    memory = memory_of(artifact.entries)
    assert memory["row"] == Memory("", 6, 24) and memory["shared"] == Memory("row", 18, 72)
    assert by_key["parameter"].role == "parameter"
    whole = path.read_bytes()
    plain = by_key["plain.weight"]
    assert plain.offset is not None
    told = whole[plain.offset : plain.offset + plain.size_bytes]
    assert told == odd_state()["plain.weight"].numpy().tobytes()


def test_large_tensors_are_mapped_and_read_the_same(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(file_bytes, "COPIED_BYTES", 8)
    path = tmp_path / "state.pt"
    torch.save(odd_state(), path)
    before = path.read_bytes()
    artifact = open_artifact(path)
    assert_holds(artifact, torch.load(path, weights_only=True))
    artifact.tensor("plain.weight").zero_()
    assert path.read_bytes() == before


def test_a_nested_checkpoint_with_values(tmp_path: Path) -> None:
    model = net()
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    path = tmp_path / "checkpoint.pt"
    saved = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "epoch": 3,
        "notes": ["a", 1.5, None],
        "big": 1 << 400,
        "history": [{"loss": torch.tensor(0.5)}],
    }
    torch.save(saved, path)
    artifact = open_artifact(path)
    expected = {f"model/{key}": value for key, value in model.state_dict().items()}
    for number, state in optimizer.state_dict()["state"].items():
        expected |= {f"optimizer/state/{number}/{name}": value for name, value in state.items()}
    assert_holds(artifact, expected | {"history/0/loss": torch.tensor(0.5)})
    values = {entry.key: entry.text for entry in artifact.entries if entry.kind == "value"}
    assert values["epoch"] == "3"
    assert values["notes"] == "[“a”, 1.5, None]"
    assert values["optimizer/param_groups/0/lr"] == "0.001"
    assert values["big"].startswith("a whole number of more than 200 bits #")


def test_tensors_without_numbers_say_why(tmp_path: Path) -> None:
    sparse = torch.eye(3).to_sparse()
    path = tmp_path / "odd.pt"
    torch.save(
        {
            "sparse": sparse,
            "rows": torch.eye(3).to_sparse_csr(),
            "meta": torch.empty(2, 3, device="meta"),
            "expanded": torch.ones(1).expand(1000, 1000),
            "quantized": torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8),
        },
        path,
    )
    artifact = open_artifact(path)
    by_key = {entry.key: entry for entry in artifact.entries}
    assert by_key["sparse"].shape == (3, 3) and "sparse_coo" in by_key["sparse"].note
    assert torch.equal(artifact.tensor("sparse/values"), sparse.coalesce().values())
    assert torch.equal(artifact.tensor("rows/col_indices"), torch.tensor([0, 1, 2]))
    assert "meta" in by_key["meta"].note and "quantized" in by_key["quantized"].note
    assert by_key["expanded"].note == "expanded: 4 bytes stand for all of it"
    assert artifact.tensor("expanded").sum() == 1_000_000
    with pytest.raises(LabError, match="has no numbers to read: it is on the meta device"):
        artifact.tensor("meta")


def test_the_integers_of_a_quantized_tensor_are_read_with_what_they_stand_for(
    tmp_path: Path,
) -> None:
    each = torch.quantize_per_tensor(torch.arange(6.0).view(2, 3), 0.5, 3, torch.quint8)
    scales, zeros = torch.tensor([0.1, 0.2], dtype=torch.float64), torch.tensor([0, 1])
    rows = torch.quantize_per_channel(torch.ones(2, 2), scales, zeros, 0, torch.qint8)
    torch.save({"each": each, "rows": rows, "t": each.t()}, tmp_path / "q.pt")
    artifact = open_artifact(tmp_path / "q.pt")
    notes = {entry.key: entry.note for entry in artifact.entries}
    assert notes["each"] == (
        "it is quantized, per_tensor_affine: its numbers are (int_repr - 3) * 0.5"
    )
    assert notes["rows"].endswith("(int_repr - zero_points) * scales along dim 0")
    for key, tensor in (("each", each), ("rows", rows), ("t", each.t())):
        assert torch.equal(artifact.tensor(f"{key}/int_repr"), tensor.int_repr())
    assert torch.equal((artifact.tensor("each/int_repr") - 3.0) * 0.5, each.dequantize())
    integers = artifact.tensor("rows/int_repr").double()
    found = (integers - artifact.tensor("rows/zero_points")[:, None]) * scales[:, None]
    torch.testing.assert_close(found.float(), rows.dequantize())
    assert torch.equal(artifact.tensor("rows/scales"), scales)
    memory = memory_of(artifact.entries)
    assert sum(each.added_bytes for each in memory.values()) == 6 + 4 + 2 * 8 + 2 * 8


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_the_parts_of_a_jagged_tensor_are_read(tmp_path: Path) -> None:
    rows = [torch.randn(2, 3), torch.randn(0, 3), torch.randn(4, 3)]
    jagged = torch.nested.nested_tensor(rows, layout=torch.jagged)
    torch.save({"x": jagged}, tmp_path / "n.pt")
    artifact = open_artifact(tmp_path / "n.pt")
    told = {entry.key: entry for entry in artifact.entries}
    assert list(told) == ["x", "x/offsets"]
    assert told["x"].note.startswith("jagged: its parts one after the other")
    starts = artifact.tensor("x/offsets").tolist()
    assert starts == [0, 2, 2, 6]
    for row, start, end in zip(rows, starts, starts[1:], strict=False):
        assert torch.equal(artifact.tensor("x")[start:end], row)


def test_safetensors(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    state = {key: t.detach().contiguous().clone() for key, t in odd_state().items()}
    safetensors.torch.save_file(state, path, metadata={"format": "pt", "author": "me"})
    artifact = open_artifact(path)
    assert_holds(artifact, safetensors.torch.load_file(path))
    assert artifact.metadata == {"format": "pt", "author": "me"}


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f8", ">i2", "<c8", ">c16", "|b1", "<u4", "<f2"])
def test_an_array_of_numpy_in_any_order(
    dtype: str, order: Literal["C", "F"], tmp_path: Path
) -> None:
    x = np.asarray(np.arange(24).reshape(2, 3, 4) % 5, dtype=dtype, order=order)
    path = tmp_path / "x.npy"
    np.save(path, x)
    artifact = open_artifact(path)
    loaded = np.load(path, allow_pickle=False)
    native = loaded.astype(loaded.dtype.newbyteorder("="))
    assert_holds(artifact, {"x": torch.from_numpy(native)})
    assert ("big-endian" in artifact.entries[0].note) == (dtype[0] == ">")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_an_archive_of_arrays(save, tmp_path: Path) -> None:
    path = tmp_path / "several.npz"
    save(path, a=np.arange(6.0).reshape(2, 3), b=np.array(3, dtype=">i4"), words=np.array(["x"]))
    artifact = open_artifact(path)
    assert torch.equal(artifact.tensor("a"), torch.arange(6.0, dtype=torch.float64).view(2, 3))
    assert artifact.tensor("b").item() == 3
    words = next(entry for entry in artifact.entries if entry.key == "words")
    assert words.place is None and words.note == "torch has no dtype for <U1"


def test_an_archive_of_one_array(tmp_path: Path) -> None:
    path = tmp_path / "one.npz"
    np.savez(path, a=np.arange(6.0))
    assert_holds(open_artifact(path), {"a": torch.arange(6.0, dtype=torch.float64)})
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("run.txt", "no array")
    with pytest.raises(LabError) as told:
        open_artifact(path)
    assert str(told.value) == "one.npz is a zip archive without tensors of torch or NumPy."


def test_an_array_of_another_size_than_its_header_says_is_told(tmp_path: Path) -> None:
    path = tmp_path / "several.npz"
    file = io.BytesIO()
    np.save(file, np.arange(6.0))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", file.getvalue()[:-8])
    with pytest.raises(LabError) as told:
        open_artifact(path)
    assert str(told.value) == (
        "several.npz cannot be read: a.npy has another size than its header says."
    )


def test_a_folder_of_distributed_checkpoint(tmp_path: Path) -> None:
    state = net().state_dict()
    dcp.save({"model": state, "step": 5}, checkpoint_id=tmp_path / "dcp")
    artifact = open_artifact(tmp_path / "dcp")
    assert_holds(artifact, {f"model.{key}": value for key, value in state.items()})
    assert [entry.key for entry in artifact.entries if entry.kind == "value"] == ["step"]


class _ByName(pickle.Pickler):
    """Members of an enum as some releases of Python 3.11 pickle them."""

    def reducer_override(self, value: object) -> Any:
        return (getattr, (type(value), value.name)) if isinstance(value, Enum) else NotImplemented


def test_a_folder_that_another_python_wrote(tmp_path: Path) -> None:
    dcp.save({"a": torch.ones(2)}, checkpoint_id=tmp_path)
    index = io.BytesIO()
    _ByName(index).dump(dcp.FileSystemReader(tmp_path).read_metadata())
    assert b"getattr" in index.getvalue()
    (tmp_path / ".metadata").write_bytes(index.getvalue())
    assert_holds(open_artifact(tmp_path), {"a": torch.ones(2)})


def test_pieces_of_several_ranks_are_put_together(tmp_path: Path) -> None:
    """The index of two ranks, each with half of the rows, as FSDP writes it."""
    folder = tmp_path / "dcp"
    whole = torch.arange(24.0).view(6, 4)
    dcp.save({"w": whole[:3].clone()}, checkpoint_id=folder)
    first = folder / "__0_0.distcp"
    dcp.save({"w": whole[3:].clone()}, checkpoint_id=tmp_path / "other")
    (folder / "__1_0.distcp").write_bytes((tmp_path / "other" / "__0_0.distcp").read_bytes())
    metadata = dcp.FileSystemReader(folder).read_metadata()
    chunks = [ChunkStorageMetadata(torch.Size([at, 0]), torch.Size([3, 4])) for at in (0, 3)]
    told = metadata.state_dict_metadata["w"]
    told.size, told.chunks = torch.Size([6, 4]), chunks
    length = first.stat().st_size
    metadata.storage_data = {
        MetadataIndex("w", torch.Size([0, 0])): _StorageInfo("__0_0.distcp", 0, length),
        MetadataIndex("w", torch.Size([3, 0])): _StorageInfo("__1_0.distcp", 0, length),
    }
    (folder / ".metadata").write_bytes(pickle.dumps(metadata))
    artifact = open_artifact(folder)
    assert_holds(artifact, {"w": whole})
    assert artifact.entries[0].note == "in 2 pieces"


def shards(folder: Path, state: dict[str, Tensor]) -> Path:
    """A folder as transformers writes it: two files and an index."""
    folder.mkdir()
    keys = list(state)
    halves = {"model-00001.safetensors": keys[:3], "model-00002.safetensors": keys[3:]}
    for name, own in halves.items():
        safetensors.torch.save_file({key: state[key] for key in own}, folder / name)
    index = {"weight_map": {key: name for name, own in halves.items() for key in own}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "config.json").write_text('{"model_type": "toy", "layers": 2}')
    return folder


def test_a_hugging_face_folder_with_an_index(tmp_path: Path) -> None:
    state = net().state_dict()
    folder = shards(tmp_path / "hf", state)
    artifact = open_artifact(folder)
    assert_holds(artifact, state)
    assert artifact.metadata == {"model_type": "toy", "layers": "2"}
    assert {entry.file for entry in artifact.entries} == {
        "model-00001.safetensors",
        "model-00002.safetensors",
    }
    index = folder / "model.safetensors.index.json"
    assert_holds(open_artifact(index), state)
    assert set(artifact.files) == {index, *folder.glob("*.safetensors")}
    assert artifact.size_bytes == sum(path.stat().st_size for path in artifact.files)


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin"])
def test_a_hugging_face_folder_with_one_file(name: str, tmp_path: Path) -> None:
    state = net().state_dict()
    (tmp_path / "config.json").write_text("{}")
    if name.endswith("bin"):
        torch.save(state, tmp_path / name)
    else:
        safetensors.torch.save_file(state, tmp_path / name)
    assert_holds(open_artifact(tmp_path), state)


def test_a_whole_module_is_refused_by_the_names_it_asks_for(tmp_path: Path) -> None:
    path = tmp_path / "module.pt"
    torch.save(nn.Sequential(nn.Linear(1, 1)), path)
    with pytest.raises(LabError) as refused:
        open_artifact(path)
    asked = "torch.nn.modules.container.Sequential, torch.nn.modules.linear.Linear"
    assert f"its pickle asks for {asked}" in str(refused.value)
    assert "torch.save(model.state_dict(), path)" in refused.value.hint


def test_a_file_that_is_written_again_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "state.pt"
    torch.save({"a": torch.ones(2)}, path)
    state = ArtifactState()
    first = state.tensor(str(path), "a")
    assert state.tensor(str(path), "a") is first
    torch.save({"a": torch.zeros(300)}, path)
    assert torch.equal(state.tensor(str(path), "a"), torch.zeros(300))
    path.unlink()
    with pytest.raises(LabError, match="cannot be read any more"):
        state.tensor(str(path), "a")
