"""Files of weights that are written here byte by byte: what each field does, and its bounds."""

from __future__ import annotations

import json
import pickle
import struct
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.artifacts.contents.artifact import Artifact
from engine.artifacts.opening import open_artifact
from engine.system.errors import LabError
from tests.engine.artifacts.hostile_pickles import saved, tensor_pickle, with_pickle

MAGIC, PROTOCOL = 0x1950A86A20F9469CFC6C, 1001
X = torch.arange(6.0)


def opened(folder: Path, name: str, data: bytes) -> Artifact:
    path = folder / name
    path.write_bytes(data)
    return open_artifact(path)


def refused(folder: Path, name: str, data: bytes) -> str:
    with pytest.raises(LabError) as told:
        opened(folder, name, data)
    return str(told.value)


# -- before torch 1.6 ------------------------------------------------------------------------------


def legacy(
    magic: Any = MAGIC, protocol: Any = PROTOCOL, system: Any = None, keys: Any = None,
    count: int = 6, numbers: bytes = X.numpy().tobytes(),
) -> bytes:  # fmt: skip
    """A file of one tensor."""
    system = {"little_endian": True} if system is None else system
    head = b"".join(pickle.dumps(each, 2) for each in (magic, protocol, system))
    keys = pickle.dumps(["0"] if keys is None else keys, 2)
    return head + tensor_pickle((2, 3), (3, 1), 0, 6) + keys + struct.pack("<q", count) + numbers


def test_a_file_of_an_old_torch_is_read_in_both_byte_orders(tmp_path: Path) -> None:
    for system, order in (({"little_endian": True}, "<f4"), ({"little_endian": False}, ">f4"),
                          ({}, "<f4")):  # fmt: skip
        data = legacy(system=system, numbers=X.numpy().astype(order).tobytes())
        found = opened(tmp_path, "old.pt", data)
        assert torch.equal(found.tensor("a"), X.view(2, 3)), system
    assert found.metadata == {"format": "before torch 1.6"}
    assert found.title == "PyTorch state_dict"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (legacy(magic=MAGIC + 1), "is a pickle that torch.save did not write"),
        (legacy(protocol=1002), "is a pickle that torch.save did not write"),
        (legacy(system=[1]), "cannot be read"),
        (legacy(keys=[0]), "its list of storages is damaged"),
        (legacy(keys=("0",)), "its list of storages is damaged"),
        (legacy(keys=["1"]), "it is cut off"),
        (legacy(keys=[]), "the numbers of storage 0 are missing"),
        (legacy(count=5, numbers=bytes(20)), "the numbers of storage 0 are missing"),
        (legacy(numbers=bytes(23)), "it is cut off"),
        (legacy(count=-1), "it is cut off"),
        (legacy(keys=["0", "0"]), "it is cut off"),
    ],
)
def test_a_file_of_an_old_torch_that_does_not_fit_together(tmp_path, data: bytes, why: str) -> None:
    assert why in refused(tmp_path, "old.pt", data)


# -- since torch 1.6 -------------------------------------------------------------------------------


def test_the_title_says_what_was_saved(tmp_path: Path) -> None:
    ours = {"format": 1, "run": "r", "step": 3, "epoch": 1, "model": {"a": X}, "optimizer": {}}
    for value, title in (
        ({"a": X, "b": X}, "PyTorch state_dict"), ({"a": X, "step": 1}, "PyTorch checkpoint"),
        ({}, "PyTorch checkpoint"), (X, "tensor of PyTorch"), ([X], "PyTorch file"),
        (ours, "checkpoint of Tensor Lab"), (ours | {"more": 1}, "checkpoint of Tensor Lab"),
        ({**ours, "run": X}, "checkpoint of Tensor Lab"),
        ({name: ours[name] for name in list(ours)[1:]}, "PyTorch checkpoint"),
    ):  # fmt: skip
        assert opened(tmp_path, "x.pt", saved(value)).title == title
    found = opened(tmp_path, "x.pt", saved({"a": X}))
    assert found.metadata["version"] == "3" and found.metadata["byteorder"] == "little"


def test_numbers_of_an_archive_in_the_other_byte_order_are_turned_round(tmp_path: Path) -> None:
    for order, code in ((b"big", ">f4"), (b"little\n", "<f4")):
        numbers = X.numpy().astype(code).tobytes()
        data = with_pickle(
            tensor_pickle((6,), (1,), 0, 6),
            **{"archive/data/0": numbers, "archive/byteorder": order},
        )
        assert torch.equal(opened(tmp_path, "x.pt", data).tensor("a"), X)
    short = with_pickle(tensor_pickle((6,), (1,), 0, 6), **{"archive/data/0": bytes(23)})
    assert "the numbers of storage 0 are missing" in refused(tmp_path, "x.pt", short)


# -- safetensors -----------------------------------------------------------------------------------


def safe(header: Any, numbers: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + numbers


def entry(begin: int, end: int, shape: Any = (1,), dtype: Any = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def test_tensors_of_safetensors_lie_where_the_header_says(tmp_path: Path) -> None:
    header = {
        "b": entry(8, 24, (2, 2)), "a": entry(4, 8), "empty": entry(4, 4, (0,)),
        "odd": entry(0, 4, (8,), "F4"), "__metadata__": {"by\x1b": "me", "n": 5},
    }  # fmt: skip
    data = safe(header, X.numpy().tobytes())
    found = opened(tmp_path, "x.safetensors", data)
    assert torch.equal(found.tensor("b"), X[2:].view(2, 2)) and found.tensor("a").tolist() == [1.0]
    base = len(data) - 24
    told = {each.key: (each.offset, each.size_bytes, each.note) for each in found.entries}
    assert told == {
        "b": (base + 8, 16, ""), "a": (base + 4, 4, ""), "empty": (base + 4, 0, ""),
        "odd": (base, 4, "torch has no dtype for F4"),
    }  # fmt: skip
    assert found.metadata == {"by\\x1b": "me", "n": "5"}
    assert opened(tmp_path, "x.safetensors", safe({})).entries == ()
    many = {f"{number}": "" for number in range(500)}
    assert len(opened(tmp_path, "x.safetensors", safe({"__metadata__": many})).metadata) == 500


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"1234567", "its header should take"),
        (safe({}, length=3), "its header should take 3 bytes, and it has 10"),
        (safe(b"[]"), "its header is not a list of tensors"),
        (safe(b"{]"), "its header is not JSON"),
        (safe(b'{"a": 1, "a": 2}'), "its header has one name twice"),
        (safe({"__metadata__": []}), "its metadata are not texts by name"),
        (safe({"__metadata__": {str(n): "" for n in range(501)}}), "its metadata are not texts"),
        (safe({"a": 5}), "the header does not say what a is"),
        (safe({"a": entry(0, 4) | {"data_offsets": [0, 4, 4]}}, bytes(4)), "not say what a is"),
        (safe({"a": entry(-4, 0)}), "the header does not say what a is"),
        (safe({"a": entry(0, 4.0)}, bytes(4)), "the header does not say what a is"),  # type: ignore
        (safe({"a": entry(0, 4, dtype=32)}, bytes(4)), "the header does not say what a is"),
        (safe({"a": entry(0, 4, (2,))}, bytes(4)), "the bytes of a are not those of its shape"),
        (safe({"a": entry(4, 8)}, bytes(8)), "its tensors overlap, or leave a hole"),
        (safe({"a": entry(0, 8, (2,)), "b": entry(4, 8)}, bytes(8)), "its tensors overlap"),
        (safe({"a": entry(4, 0, dtype="F4")}, bytes(4)), "its tensors overlap"),
        (safe({"a": entry(0, 4)}, bytes(5)), "its tensors end at byte"),
        (safe({"a": entry(0, 4)}, bytes(3)), "its tensors end at byte"),
    ],
)
def test_a_header_of_safetensors_that_does_not_fit(tmp_path: Path, data: bytes, why: str) -> None:
    assert why in refused(tmp_path, "x.safetensors", data)


# -- how much of a file is read as its index -------------------------------------------------------


def test_an_index_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    most = 32 * 2**20
    for size, why in ((most, "is not JSON"), (most + 1, "is larger than any index or config")):
        path = tmp_path / "model.safetensors.index.json"
        path.write_bytes(b"\0")
        with path.open("r+b") as file:
            file.truncate(size)
        with pytest.raises(LabError, match=why):
            open_artifact(path)
    path = tmp_path / "x.safetensors"
    for size, why in ((most, "is not JSON"), (most + 1, "more than any index needs")):
        path.write_bytes(size.to_bytes(8, "little"))
        with path.open("r+b") as file:
            file.truncate(size + 8)
        with pytest.raises(LabError, match=why):
            open_artifact(path)
    folder = tmp_path / "dcp"
    folder.mkdir()
    for size, why in ((2**26, "cannot be read"), (2**26 + 1, "is larger than any index")):
        (folder / ".metadata").write_bytes(b"\0")
        with (folder / ".metadata").open("r+b") as file:
            file.truncate(size)
        with pytest.raises(LabError, match=why):
            open_artifact(folder)
