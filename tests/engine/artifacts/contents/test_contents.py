"""Where the numbers of a tensor lie in a file, and what the entries of a pickle say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.artifacts.contents import artifact as artifact_file
from engine.artifacts.contents import entries as entries_file
from engine.artifacts.contents import file_bytes
from engine.artifacts.contents.artifact import (
    Artifact,
    Entry,
    digest,
    file_beside,
    plain,
    shortened,
    signature,
    state_of,
    with_own_keys,
)
from engine.artifacts.contents.descriptions import Global, OtherObject, StorageOf, TensorOf
from engine.artifacts.contents.entries import entries_of
from engine.artifacts.contents.file_bytes import (
    FileBytes,
    byteswapped,
    check_stride,
    checked_shape,
)
from engine.system.errors import LabError

F32 = torch.float32
BIG = digest(hex(2**200).encode())
NINE = digest(repr(list("012345678")).encode())


@pytest.mark.parametrize(
    "shape", [(), (0,), (3, 0, 2**50), [2, 3], (1,) * 64, (2**59,), (2**30, 2**29)]
)
def test_a_shape_that_torch_can_have(shape: Any) -> None:
    assert checked_shape("x", shape) == tuple(shape)


@pytest.mark.parametrize(
    "shape",
    [
        None,
        3,
        (-1,),
        (2.0,),
        (True,),
        ("2",),
        (1,) * 65,
        (2**60,),
        (2**30, 2**30),
        (2**63, 0),
        (0, 2**60),
    ],
)
def test_a_shape_that_torch_cannot_have(shape: Any) -> None:
    with pytest.raises(LabError, match="The shape of x is none"):
        checked_shape("x", shape)


@pytest.mark.parametrize(
    ("shape", "start", "stride", "elements"),
    [
        ((2, 3), 0, (3, 1), 6), ((2, 3), 1, (3, 1), 7), ((), 5, (), 6), ((5,), 0, (0,), 1),
        ((0, 3), 0, (3, 1), 0), ((2, 2), 0, (1, 2), 4), ((3,), 1, (2,), 6),
    ],
)  # fmt: skip
def test_strides_that_stay_in_the_storage(shape, start, stride, elements) -> None:
    assert check_stride("x", shape, start, stride, elements) == stride
    if 0 not in shape:
        with pytest.raises(LabError, match=rf"x reads {elements:,} elements of a storage that has"):
            check_stride("x", shape, start, stride, elements - 1)


@pytest.mark.parametrize(
    ("start", "stride"),
    [
        (0, [1]), (0, (1, 1)), (0, (-1,)), (0, (1.0,)), (0, (True,)), (0, (2**60,)), (-1, (1,)),
        (2**60, (1,)), (1.0, (1,)), (0, None),
    ],
)  # fmt: skip
def test_strides_that_are_none(start: Any, stride: Any) -> None:
    with pytest.raises(LabError, match="The strides of x are none"):
        check_stride("x", (2,), start, stride, 100)


@pytest.mark.parametrize("copied", [0, 24, 1 << 20])
def test_numbers_are_those_of_the_file_copied_or_mapped(tmp_path, monkeypatch, copied: int) -> None:
    monkeypatch.setattr(file_bytes, "COPIED_BYTES", copied)
    path = tmp_path / "numbers"
    x = torch.arange(6.0)
    path.write_bytes(b"head" * 1500 + x.numpy().tobytes())
    whole = FileBytes(path, 6000, 24, F32)
    assert torch.equal(whole.read((2, 3)), x.view(2, 3))
    assert torch.equal(whole.read((2,)), x[:2])
    strided = FileBytes(path, 6000, 24, F32, start=1, stride=(1, 2))
    assert torch.equal(strided.read((2, 2)), x.as_strided((2, 2), (1, 2), 1))
    whole.read((6,)).zero_()
    assert torch.equal(whole.read((6,)), x)  # the file is as it was
    for size, offset in ((28, 6000), (24, 6004)):
        with pytest.raises(LabError, match="shorter than when it was opened"):
            FileBytes(path, offset, size, F32).read((6,))
    path.unlink()
    with pytest.raises(LabError, match="cannot be read") as told:
        whole.read((6,))
    assert told.value.hint.startswith("Was it moved")
    assert FileBytes(path, 0, 0, F32).read((0, 3)).shape == (0, 3)


def test_bytes_of_any_value_are_bools_and_other_byte_orders_are_turned_round(tmp_path) -> None:
    path = tmp_path / "numbers"
    path.write_bytes(bytes([0, 1, 2, 255]))
    assert FileBytes(path, 0, 4, torch.bool).read((4,)).tolist() == [False, True, True, True]
    for dtype in (torch.int16, F32, torch.float64, torch.complex64, torch.complex128):
        x = torch.tensor([1, 2, 300]).to(dtype)
        turned = x.numpy().byteswap().tobytes()
        path.write_bytes(turned)
        assert torch.equal(FileBytes(path, 0, len(turned), dtype, swapped=True).read((3,)), x)
        assert torch.equal(byteswapped(byteswapped(x)), x)


def test_text_that_can_be_printed_and_not_too_much_of_it() -> None:
    assert (plain("abc", 3), plain("abcd", 3)) == ("abc", "ab…")
    assert plain("a\x1b[2J\n\u202eb") == "a\\x1b[2J\n\\u202eb"


def test_numbers_that_are_not_there_are_told() -> None:
    found = Artifact(
        Path("net.pt"), "", "", (Entry("lr", "value"), Entry("w", note="it is sparse"))
    )
    with pytest.raises(LabError, match=r"w of net\.pt has no numbers to read: it is sparse"):
        found.tensor("w")
    for key in ("lr", "gone"):
        with pytest.raises(LabError, match=rf"net\.pt has no tensor {key}"):
            found.tensor(key)


def test_the_tensors_of_a_group_are_those_below_its_name(tmp_path: Path) -> None:
    path = tmp_path / "net.pt"
    path.write_bytes(torch.arange(4.0).numpy().tobytes())
    keys = ("net.w", "net/b", "network.w", "w", "netto")
    entries = [
        Entry(key, shape=(1,), place=FileBytes(path, 4 * number % 16, 4, F32))
        for number, key in enumerate(keys)
    ]
    found = Artifact(path, "", "", (*entries, Entry("net.gone", note="lost"), Entry("lr", "value")))
    assert {key: x.item() for key, x in state_of(found).items()} == dict(
        zip(keys, (0.0, 1.0, 2.0, 3.0, 0.0), strict=True)
    )
    assert {key: x.item() for key, x in state_of(found, "net").items()} == {"w": 0.0, "b": 1.0}
    with pytest.raises(LabError, match=r"net\.pt has no tensors under other that can be loaded"):
        state_of(found, "other")
    with pytest.raises(LabError, match=r"net\.pt has no tensors that can be loaded"):
        state_of(Artifact(path, "", "", (Entry("lr", "value"),)))


def test_each_entry_has_a_key_of_its_own_and_there_is_a_bound(monkeypatch) -> None:
    same = [Entry("a", text=text) for text in "123"]
    found = with_own_keys([*same, Entry("b\x1b"), Entry("x" * 1001)])
    assert [entry.key for entry in found] == ["a", "a #2", "a #3", "b\\x1b", "x" * 999 + "…"]
    assert [entry.text for entry in found[:3]] == ["1", "2", "3"] and found[0] is same[0]
    monkeypatch.setattr(artifact_file, "MAX_ENTRIES", 3)
    assert len(with_own_keys(same)) == 3
    with pytest.raises(LabError, match="more than 3 entries, too many to list"):
        with_own_keys([*same, Entry("b")])


def test_a_file_beside_another_is_in_its_folder(tmp_path: Path) -> None:
    index, inner = tmp_path / "index.json", tmp_path / "folder"
    inner.mkdir()
    (tmp_path / "part").write_bytes(b"12345")
    assert file_beside(index, "part") == tmp_path / "part"
    for name in ("../part", "/part", "folder/part", "..", ""):
        with pytest.raises(LabError, match=r"index\.json was refused: .* outside of its own"):
            file_beside(index, name)
    for name in ("gone", "folder"):
        with pytest.raises(LabError, match=rf"index\.json names {name}, which is not there"):
            file_beside(index, name)
    found = Artifact(index, "", "", parts=(tmp_path / "part", tmp_path / "part"))
    assert found.size_bytes == 10
    before = signature(found.files)
    (tmp_path / "part").write_bytes(b"123")
    assert signature(found.files) != before and signature(found.files)[0][0] == 3


# -- the entries of a pickle ---------------------------------------------------------------------


def located(storage: StorageOf) -> FileBytes:
    """Storage `a` lies at byte 100, `b` at byte 900."""
    offset = {"a": 100, "b": 900}[storage.key]
    return FileBytes(Path("net.pt"), offset, storage.count * storage.dtype.itemsize, storage.dtype)


def tensor(key: str, shape: Any, count: int = 6, **fields: Any) -> TensorOf:
    stride = tuple(torch.empty(shape, device="meta").stride())
    return TensorOf(StorageOf(key, F32, count), F32, shape, **{"stride": stride, **fields})


def told(value: Any) -> list[tuple[str, str, str]]:
    return [(each.key, each.dtype, each.text) for each in entries_of(value, located)]


def test_values_are_told_by_their_keys() -> None:
    value = {
        "epoch": 3, "best": None, "lr": 0.5, "on": True, "z": 1j, "name": "net", 7: b"abc",
        b"raw": [], "betas": (0.9, 0.999), "steps": list(range(9)), "none": {},
        "more": {"a": [{"b": 1}, 2], "deep": OtherObject("own.State", {"c": 5})},
        "kind": Global("torch.float16"), "empty": OtherObject("own.Empty"), "big": 2**200,
        "large": 2**200 - 1, "storage": StorageOf("a", F32, 2),
        "mixed": ["x" * 81, [1, 2], b"ab"],
    }  # fmt: skip
    assert told(value) == [
        ("epoch", "int", "3"), ("best", "None", "None"), ("lr", "float", "0.5"),
        ("on", "bool", "True"), ("z", "complex", "1j"), ("name", "str", "net"),
        ("7", "bytes", f"3 bytes {digest(b'abc')}"), ("raw", "list", "[]"),
        ("betas", "tuple", "(0.9, 0.999)"),
        ("steps", "list", f"[0, 1, 2, 3, 4, 5, 6, 7, … 9 in all {NINE}]"),
        ("none", "dict", "empty"),
        ("more/a/0/b", "int", "1"), ("more/a/1", "int", "2"), ("more/deep/c", "int", "5"),
        ("kind", "torch.float16", "torch.float16"), ("empty", "own.Empty", "own.Empty"),
        ("big", "int", f"a whole number of more than 200 bits {BIG}"),
        ("large", "int", str(2**200 - 1)),
        ("storage", "storage", "a StorageOf"),
        ("mixed/0", "str", "x" * 81), ("mixed/1", "list", "[1, 2]"),
        ("mixed/2", "bytes", f"2 bytes {digest(b'ab')}"),
    ]  # fmt: skip
    assert told({}) == [] and told([]) == [("value", "list", "[]")]
    assert told(5) == [("value", "int", "5")] and told({"": 1}) == [("value", "int", "1")]
    assert told(list(range(8)))[0][2] == "[0, 1, 2, 3, 4, 5, 6, 7]"
    assert told(["x" * 81])[0][2] == f"[“{shortened('x' * 81, 80)}”]"


LONG = [
    list(range(30)), ["x" * 5000], "x" * 5000, b"x" * 100, 2**300, [b"abc"] * 20, ("y" * 100, 1),
]  # fmt: skip


@pytest.mark.parametrize("value", LONG, ids=range(len(LONG)))
def test_a_text_is_another_for_another_value(value: Any) -> None:
    """However long it is: two files are compared by these texts."""
    changed = value + 1 if isinstance(value, int) else (
        [*value[:-1], value[-1] * 2] if isinstance(value, list)
        else (value[0] + "z", 1) if isinstance(value, tuple)
        else value[:-1] + (b"z" if isinstance(value, bytes) else "z")
    )  # fmt: skip
    assert told({"a": value}) == told({"a": value}) != told({"a": changed})
    assert all(len(text) <= artifact_file.MAX_TEXT_CHARS for *_, text in told({"a": value}))


def test_tensors_are_told_with_where_they_lie() -> None:
    inner = {"values": tensor("b", (2,), 2), "indices": tensor("b", (2,), 2)}
    value = {
        "w": tensor("a", (2, 3), is_parameter=True),
        "row": tensor("a", (3,), start=3),
        "b": tensor("b", (2,), 2),
        "wide": tensor("b", (4, 2), 2, stride=(0, 1)),
        "none": tensor("a", (0, 3)),
        "gone": TensorOf(None, F32, (2, 2), note="it is on another machine"),
        "sparse": TensorOf(None, F32, (9,), note="sparse", inner=inner),
    }
    found = list(entries_of(value, located))
    assert [(e.key, e.shape, e.size_bytes, e.offset, e.role) for e in found] == [
        ("w", (2, 3), 24, 100, "parameter"), ("row", (3,), 12, 112, ""),
        ("b", (2,), 8, 900, ""), ("wide", (4, 2), 32, 900, ""),
        ("none", (0, 3), 0, 100, ""), ("gone", (2, 2), 16, None, ""),
        ("sparse", (9,), 0, None, ""), ("sparse/values", (2,), 8, 900, ""),
        ("sparse/indices", (2,), 8, 900, ""),
    ]  # fmt: skip
    assert [e.note for e in found if e.note] == [
        "expanded: 8 bytes stand for all of it", "it is on another machine", "sparse",
    ]  # fmt: skip
    assert found[1].place.start == 3 and found[5].place is None
    assert [each.key for each in entries_of(tensor("a", (2,)), located)] == ["tensor"]


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value}
    return value


def test_deep_and_many_entries_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = entries_file.MAX_DEPTH
    assert told(nested(limit)) == [("/".join("a" * limit), "int", "1")]
    ((key, kind, text),) = told(nested(limit + 1))
    assert (key, kind, text) == ("/".join("a" * limit), "dict", "a dict")
    many: Callable[[int], dict[str, int]] = lambda count: {f"{n:04}": n for n in range(count)}  # noqa: E731
    monkeypatch.setattr(entries_file, "MAX_CHARACTERS", 20 + 10 * 24)
    assert len(told(many(10))) == 10
    with pytest.raises(LabError, match="more entries than can be listed"):
        told(many(11))
