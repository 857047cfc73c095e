"""Weights as folders and in other dtypes, beside torch's and safetensors' own readers."""

from __future__ import annotations

import json
import os
import weakref
from pathlib import Path

import pytest
import safetensors.torch
import torch
from torch import nn
from torch.distributed import checkpoint as dcp

from engine.exporting.folders import new_folder
from engine.exporting.state import cast, own_state
from engine.exporting.weight_folders import save_distributed, save_hugging_face
from engine.exporting.weights import save_state
from engine.system.errors import LabError
from engine.tensors.compare import same_bits
from engine.verifier import weights_readers
from engine.verifier.values import entry
from engine.verifier.weights_readers import INDEX, read


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(7, 4)
        self.head = nn.Linear(4, 7, bias=False)
        self.head.weight = self.embedding.weight
        self.norm = nn.BatchNorm1d(4)


@pytest.fixture
def state() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    return own_state(Tied())


def equal(found: dict[str, torch.Tensor], state: dict[str, torch.Tensor]) -> bool:
    return found.keys() == state.keys() and all(same_bits(found[k], state[k]) for k in state)


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_a_distributed_checkpoint_loads_into_a_model_as_the_lines_say(state, tmp_path) -> None:
    files = save_distributed(state, tmp_path / "net")
    assert [file.name for file in files] == [".metadata", "__0_0.distcp"]
    model = Tied()
    into = {"model": model.state_dict()}
    dcp.load(into, checkpoint_id=str(tmp_path / "net"), no_dist=True)
    model.load_state_dict(into["model"])
    assert equal(own_state(model), state)
    assert equal(dict(read("dcp", str(tmp_path / "net"))), state)


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_a_distributed_checkpoint_is_read_some_tensors_at_a_time(monkeypatch, tmp_path) -> None:
    state = {f"w{n}": torch.full((10,), float(n)) for n in range(7)}
    save_distributed(state, tmp_path / "net")
    monkeypatch.setattr(weights_readers, "AT_ONCE_BYTES", 2 * state["w0"].nbytes)
    found, alive = {}, []
    most = 0
    for key, tensor in read("dcp", str(tmp_path / "net")):
        found[key] = tensor.tolist()
        alive = [each for each in alive if each() is not None] + [weakref.ref(tensor)]
        most = max(most, len(alive))
    assert found == {key: value.tolist() for key, value in state.items()}
    assert most <= 3  # two, and the last one that was looked at


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_a_small_distributed_checkpoint_is_read_at_once(monkeypatch, tmp_path) -> None:
    state = {f"w{n}": torch.full((100_000,), float(n)) for n in range(3)}
    save_distributed(state, tmp_path / "net")
    calls, load = [], dcp.load
    monkeypatch.setattr(
        dcp, "load", lambda state, **how: calls.append([*state]) or load(state, **how)
    )
    assert equal(dict(read("dcp", str(tmp_path / "net"))), state)
    assert calls == [["model.w0", "model.w1", "model.w2"]]


def test_a_folder_of_the_hub_loads_as_the_lines_say(state, tmp_path) -> None:
    save_hugging_face(state, "Tied", tmp_path / "net")
    model = Tied()
    safetensors.torch.load_model(model, tmp_path / "net" / "model.safetensors")
    assert equal(own_state(model), state)
    assert json.loads((tmp_path / "net" / "config.json").read_text()) == {
        "architectures": ["Tied"], "torch_dtype": "float32"
    }  # fmt: skip


def test_a_large_state_is_written_in_parts_with_an_index(state, tmp_path) -> None:
    folder = tmp_path / "net"
    save_hugging_face(state, "Tied", folder, shard_bytes=120)
    index = json.loads((folder / INDEX).read_text())
    names = sorted(path.name for path in folder.glob("*.safetensors"))
    assert names[0] == f"model-00001-of-0000{len(names)}.safetensors" and len(names) > 1
    assert set(index["weight_map"].values()) == set(names)
    assert index["metadata"]["total_size"] == 7 * 4 * 4 + 4 * 4 * 4 + 8
    parts = {name: safetensors.torch.load_file(folder / name) for name in names}
    assert all(key in parts[name] for key, name in index["weight_map"].items())
    assert equal(dict(read("hf", str(folder))), state)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_a_cast_is_that_of_torch_and_its_error_the_rounding(state, dtype) -> None:
    wanted = getattr(torch, dtype)
    made = cast(state, dtype)
    expected = Tied()
    expected.load_state_dict(state)
    assert equal(made.state, own_state(expected.to(wanted)))
    assert made.state["head.weight"] is made.state["embedding.weight"]
    floats = [key for key in state if state[key].is_floating_point()]
    apart = [(state[key].double() - made.state[key].double()).abs() for key in floats]
    sizes = [state[key].double().abs() for key in floats]
    absolute = max(each.max().item() for each in apart)
    relative = max(
        (each / size)[each > 0].max().item()
        for each, size in zip(apart, sizes, strict=True)
        if each.any()
    ) if absolute else 0.0  # fmt: skip
    assert made.difference.absolute == absolute
    assert made.difference.relative == pytest.approx(relative)
    assert (absolute == 0) == (dtype == "float64") and made.overflown == 0


def test_numbers_that_are_too_large_for_a_dtype_are_counted() -> None:
    made = cast({"w": torch.tensor([1e5, -1e6, 1.0, float("inf")])}, "float16")
    assert made.overflown == 2 and made.difference.absolute == float("inf")


def test_a_tied_tensor_is_written_once_and_read_under_both_names(state, tmp_path) -> None:
    path = tmp_path / "net.safetensors"
    save_state(state, path, "safetensors")
    assert "head.weight" not in safetensors.torch.load_file(path)
    assert equal(dict(read("safetensors", str(path))), state)
    model = Tied()
    safetensors.torch.load_model(model, path)
    assert equal(own_state(model), state)


def test_what_is_read_is_told_by_its_bits() -> None:
    one = entry(torch.tensor([0.0, 1.0]))
    assert one == entry(torch.tensor([0.0, 1.0])) and one.shape == (2,) and one.dtype == "float32"
    assert one != entry(torch.tensor([-0.0, 1.0]))
    assert one != entry(torch.tensor([0.0, 1.0], dtype=torch.float64))


# -- folders that are written whole ------------------------------------------------------------


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*")}


def test_an_earlier_export_is_replaced_and_files_of_others_are_not(tmp_path) -> None:
    for text in ("old", "new"):
        with new_folder(tmp_path / "net", ("*.bin",)) as folder:
            (folder / f"{text}.bin").write_text(text)
    assert names(tmp_path) == {"net", "new.bin"}
    (tmp_path / "net" / "mine.txt").write_text("mine")
    with (
        pytest.raises(LabError, match=r"has other files: mine\.txt"),
        new_folder(tmp_path / "net", ("*.bin",)),
    ):
        pass
    assert names(tmp_path) == {"net", "new.bin", "mine.txt"}


def test_a_folder_that_was_not_finished_leaves_the_old_one(tmp_path) -> None:
    with new_folder(tmp_path / "net", ("*.bin",)) as folder:
        (folder / "old.bin").write_text("old")
    with pytest.raises(KeyboardInterrupt), new_folder(tmp_path / "net", ("*.bin",)) as folder:
        (folder / "new.bin").write_text("new")
        raise KeyboardInterrupt
    assert names(tmp_path) == {"net", "old.bin"}


def test_a_disk_that_refuses_is_told_and_the_old_folder_stays(tmp_path, monkeypatch) -> None:
    with new_folder(tmp_path / "net", ("*.bin",)) as folder:
        (folder / "old.bin").write_text("old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with (
        pytest.raises(LabError, match="No space left on device"),
        new_folder(tmp_path / "net", ("*.bin",)) as folder,
    ):
        (folder / "new.bin").write_text("new")
    assert names(tmp_path) == {"net", "old.bin"}


def test_places_where_no_folder_can_be_are_told(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    for path, words in ((tmp_path / "no" / "net", "does not exist"), (tmp_path / "file", "a file")):
        with pytest.raises(LabError, match=words), new_folder(path, ()):
            pass
