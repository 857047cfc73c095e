"""Descriptions of pickles: the values are those that Python and torch read, and what is more than
weights, or no pickle, is told by its name."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections import Counter, OrderedDict
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from engine.artifacts.contents.archive import Archive
from engine.artifacts.contents.constructors import CALLS
from engine.artifacts.contents.descriptions import (
    Global,
    NotAPickle,
    OtherObject,
    StorageOf,
    TensorOf,
)
from engine.artifacts.contents.pickles import (
    MEMORY_FORMAT,
    MoreThanWeights,
    read_first,
    read_pickle,
    refusal,
)
from tests.engine.artifacts.hostile_pickles import saved, torch_pickle


def described(value: Any) -> Any:
    """The description of what torch.save writes of a value."""
    with zipfile.ZipFile(io.BytesIO(saved(value))) as archive:
        return read_pickle(archive.read("archive/data.pkl"))


def stored(pid: Any) -> bytes:
    """A pickle of one object with this persistent id."""

    class Pickler(pickle.Pickler):
        def persistent_id(self, obj: Any) -> Any:
            return pid if obj == "the object" else None

    buffer = io.BytesIO()
    Pickler(buffer, protocol=2).dump("the object")
    return buffer.getvalue()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_plain_values_are_those_of_python(protocol: int) -> None:
    value = {
        "numbers": [0, -1, 300, 2**70, 1.5, True, False, None, 2 - 3j],
        "texts": ("é", "", b"\x00\xff", ()),
        3: {"in": [{}, [], [1]], None: 1, 2.5: "half"},
    }
    found = read_pickle(pickle.dumps(value, protocol))
    assert found == value and type(found["numbers"][5]) is bool
    assert read_pickle(pickle.dumps(bytearray(b"abc"), protocol)) == b"abc"
    assert sorted(read_pickle(pickle.dumps({3, 1}, protocol))) == [1, 3]
    assert sorted(read_pickle(pickle.dumps(Counter("aab"), protocol)).items()) == [
        ("a", 2),
        ("b", 1),
    ]
    if protocol >= 4:  # there is an operation for it since then
        assert sorted(read_pickle(pickle.dumps(frozenset("ab"), protocol))) == ["a", "b"]
    ordered = OrderedDict([("b", 1), ("a", [2])])
    assert list(read_pickle(pickle.dumps(ordered, protocol)).items()) == list(ordered.items())


def test_a_key_that_is_a_tuple_is_described_and_the_next_pickle_is_read_where_it_begins() -> None:
    (key,) = read_pickle(pickle.dumps({(1, 2): 3}))
    assert isinstance(key, OtherObject) and key.name == "a key"
    file = io.BytesIO(pickle.dumps([1]) + pickle.dumps("two"))
    assert read_first(file) == [1] and read_first(file) == "two"


def test_dtypes_sizes_devices_and_layouts_of_torch() -> None:
    found = described(
        [torch.float16, torch.Size([2, 3]), torch.device("cuda", 1), torch.device("cpu")]
    )
    assert found == [
        Global("torch.float16", torch.float16), (2, 3), Global("cuda:1"), Global("cpu"),
    ]  # fmt: skip


def test_tensors_are_described_with_their_storages() -> None:
    x = torch.arange(12.0).view(3, 4)
    plain, part, parameter = described([x, x[1:, ::2], nn.Parameter(x)])
    assert plain == TensorOf(plain.storage, torch.float32, (3, 4), 0, (4, 1))
    assert (plain.storage.dtype, plain.storage.count) == (torch.float32, 12)
    assert part == TensorOf(plain.storage, torch.float32, (2, 2), 4, (4, 2))
    assert parameter == TensorOf(plain.storage, torch.float32, (3, 4), 0, (4, 1), is_parameter=True)
    assert described(torch.ones(3, dtype=torch.uint16)).dtype == torch.uint16
    meta = described(torch.empty(2, 3, dtype=torch.int8, device="meta"))
    assert (meta.storage, meta.dtype, meta.shape) == (None, torch.int8, (2, 3))
    named = torch.ones(2)
    named.own = 5  # type: ignore[attr-defined]  # pickled as a tensor with a state
    assert described(named).shape == (2,)
    state = nn.Parameter(torch.ones(2))
    state.own = 5  # type: ignore[attr-defined]
    assert described(state).is_parameter


@pytest.mark.filterwarnings("ignore:Sparse .* tensor support is in beta state")
@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "bsr", "bsc"])
def test_the_parts_of_a_sparse_tensor(layout: str) -> None:
    x = torch.eye(4)[:, :2].double()
    sparse = {
        "coo": x.to_sparse, "csr": x.to_sparse_csr, "csc": x.to_sparse_csc,
        "bsr": lambda: x.to_sparse_bsr((2, 2)), "bsc": lambda: x.to_sparse_bsc((2, 2)),
    }[layout]()  # fmt: skip
    found = described(sparse)
    assert (found.shape, found.dtype, found.storage) == ((4, 2), torch.float64, None)
    assert found.note.startswith(f"layout sparse_{layout}: ")
    for name, part in found.inner.items():
        own = getattr(sparse.coalesce() if layout == "coo" else sparse, name)()
        assert (part.shape, part.dtype) == (tuple(own.shape), own.dtype), name
    assert len(found.inner) == (2 if layout == "coo" else 3)


def test_a_nested_tensor_a_subclass_and_a_quantized_tensor_without_integers() -> None:
    flat = TensorOf(StorageOf("0", torch.float32, 5), torch.float32, (5,), 0, (1,))
    nested = CALLS["torch._utils._rebuild_nested_tensor"](flat, None, None, None)
    assert nested.storage == flat.storage and nested.note.startswith("nested: ")
    dtype = Global("torch.int8", torch.int8)
    own = CALLS["torch._utils._rebuild_wrapper_subclass"](Global("X"), dtype, (2,), (1,), 0)
    assert (own.dtype, own.shape, own.note) == (torch.int8, (2,), "it is of a subclass of Tensor")
    four = StorageOf("0", torch.quint4x2, 4)
    quantized = CALLS["torch._utils._rebuild_qtensor"](four, 0, (4,), (1,), (), False)
    assert (quantized.storage, quantized.note) == (None, "it is quantized")
    assert not quantized.inner
    jagged = CALLS["torch.nested._internal.nested_tensor._rebuild_njt"](
        {"values": flat, "offsets": flat, "lengths": None}
    )
    assert list(jagged.inner) == ["offsets"] and jagged.shape == (5,)
    for state in (None, {"values": 3}):
        with pytest.raises(NotAPickle, match="jagged"):
            CALLS["torch.nested._internal.nested_tensor._rebuild_njt"](state)
    with pytest.raises(NotAPickle, match="a tensor of no storage"):
        CALLS["torch._utils._rebuild_tensor_v2"]("0", 0, (1,), (1,), False, {})
    for wrong in ("float32", Global("torch.device")):
        with pytest.raises(NotAPickle, match="a dtype is expected"):
            CALLS["torch._utils._rebuild_meta_tensor_no_storage"](wrong, (1,), (1,), False)
    assert CALLS["torch.nn.parameter.Parameter"]().name == "Parameter"


@pytest.mark.parametrize("count", [0, 5, 2**60 - 1])
def test_a_storage_by_its_id(count: int) -> None:
    for more in ((), (None,)):
        found = read_pickle(stored(("storage", torch.FloatStorage, "7", "cpu", count, *more)))
        assert found == StorageOf("7", torch.float32, count)
    bytes_ = read_pickle(stored(("storage", torch.UntypedStorage, "7", "cpu", count)))
    assert bytes_ == StorageOf("7", torch.uint8, count)


@pytest.mark.parametrize(
    ("pid", "why"),
    [
        (7, "a persistent id that is not a storage"),
        (("storage", torch.FloatStorage, "0", "cpu"), "a persistent id that is not a storage"),
        (("module", torch.FloatStorage, "0", "cpu", 1), "a persistent id that is not a storage"),
        (("storage", "float", "0", "cpu", 1), "a storage of no dtype"),
        (("storage", torch.Size, "0", "cpu", 1), "a storage of no dtype"),
        (("storage", torch.FloatStorage, 0, "cpu", 1), "a storage of no size"),
        (("storage", torch.FloatStorage, "0", "cpu", -1), "a storage of no size"),
        (("storage", torch.FloatStorage, "0", "cpu", 2**60), "a storage of no size"),
        (("storage", torch.FloatStorage, "0", "cpu", True), "a storage of no size"),
        (("storage", torch.FloatStorage, "0", "cpu", 1.0), "a storage of no size"),
        (("storage", torch.FloatStorage, "0", "cpu", 1, ("1", 0, 1)), "a view of another"),
    ],
)
def test_an_id_that_is_of_no_storage(pid: Any, why: str) -> None:
    with pytest.raises(NotAPickle, match=why):
        read_pickle(stored(pid))


def names(*modules: str) -> bytes:
    """A list of these globals."""
    inner = b"".join(f"c{module}\nrun\n".encode() for module in modules)
    return torch_pickle(b"](" + inner + b"e")


def test_what_is_more_than_weights_is_told_by_its_names() -> None:
    with pytest.raises(MoreThanWeights) as found:
        read_pickle(names("b", "a", "b", "__builtin__", "é"))
    assert found.value.names == ["b.run", "a.run", "builtins.run", "\\xe9.run"]
    assert str(refusal("net.pt", found.value)).startswith(
        "net.pt was refused: its pickle asks for b.run, a.run, builtins.run, \\xe9.run, which is"
    )
    for count, end in ((5, "m4.run, which"), (6, "m4.run and 1 more, which")):
        with pytest.raises(MoreThanWeights) as found:
            read_pickle(names(*(f"m{number}" for number in range(count))))
        assert end in str(refusal("net.pt", found.value))
    with pytest.raises(MoreThanWeights) as found:
        read_pickle(names("m" * 300))
    assert found.value.names == ["m" * 200]
    with pytest.raises(MoreThanWeights, match=r"own\.run"):
        read_pickle(names("own")[:-2])  # cut off after it
    for harmless in (
        b"cos\nsystem\n)R",
        b"cos\nsystem\n)\x81}(K\x01K\x02u]b",
        b"cos\nsystem\n)R(K\x01e",
    ):
        with pytest.raises(MoreThanWeights, match=r"os\.system"):
            read_pickle(torch_pickle(harmless))


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"K", "it is cut off"), (b"a", "it is cut off"), (b"X\1\0\0\0\xff", "cannot be decoded"),
        (b"\xfd", "an operation that there is none of"), (b"h\x07", "a value that it has not kept"),
        (b"K\1K\2K\3s", "items for what is not a dict"), (b"K\1(K\2K\3u", "not a dict"),
        (b"}K\1a", "items for what is not a list"), (b"}(K\1e", "items for what is not a list"),
        (b"K\1)R", "a call of what is not a function"), (b"ctorch\nSize\nK\1R", "not a function"),
        (b"ctorch\nfloat32\n)R", r"a call of torch\.float32"),
        (b"K\1)\x81", "an object of no class"), (b"ctorch\nSize\nK\1\x81", "an object of no class"),
        (b"\x82\1", "a class by its number"), (b"\x83\1\0", "a class by its number"),
        (b"\x84\1\0\0\0", "a class by its number"),
        (b"ctorch\nSize\n(K\1K\2tR", "its operations do not fit together"),
        (b"cbuiltins\nbytearray\nK\5\x85R", "an array of bytes by its length"),
    ],
)  # fmt: skip
def test_bytes_that_are_no_pickle_are_told_in_words(body: bytes, why: str) -> None:
    with pytest.raises(NotAPickle, match=why):
        read_pickle(torch_pickle(body))


def of_ours(name: str) -> bool:
    return name.startswith("own.") or name == MEMORY_FORMAT


def test_objects_of_known_classes_are_described_with_what_they_hold() -> None:
    body = b"cown\nNet\n)\x81}X\1\0\0\0aK\5sb"  # made without arguments, then its state
    made = read_pickle(torch_pickle(body), of_ours)
    assert (made.name, made.state) == ("own.Net", {"a": 5})
    for body, state in (
        (b"cown\nNet\nK\1K\2\x86\x81", (1, 2)), (b"cown\nNet\nK\1K\2\x86R", (1, 2)),
        (b"cown\nNet\n)\x81", None), (b"cown\nNet\n)}\x92", None),
        (b"(cown\nNet\nK\1o", None), (b"(K\1iown\nNet\n", None),
    ):  # fmt: skip
        made = read_pickle(torch_pickle(body), of_ours)
        assert isinstance(made, OtherObject)
        assert (made.name, made.state) == ("own.Net", state), body
    ordered = b"ccollections\nOrderedDict\n)\x81"
    assert read_pickle(torch_pickle(ordered)) == {}
    enum = MEMORY_FORMAT.rpartition(".")
    get = f"cbuiltins\ngetattr\n(c{enum[0]}\n{enum[2]}\nX".encode() + b"\1\0\0\0atR"
    member = read_pickle(torch_pickle(get), of_ours)
    assert (member.name, member.state) == (MEMORY_FORMAT, ("a",))
    for wrong in (get.replace(b"X\1\0\0\0a", b"K\1"), get.replace(enum[2].encode(), b"_Other")):
        with pytest.raises(MoreThanWeights):
            read_pickle(torch_pickle(wrong), of_ours)


def test_the_numbers_of_a_described_tensor_are_those_that_torch_saved(tmp_path: Path) -> None:
    x: Tensor = torch.arange(6.0)
    path = tmp_path / "x.pt"
    torch.save([x, x[2:4]], path)
    archive = Archive(path)
    whole, part = read_pickle(archive.read(archive.inner()["data.pkl"], 1000))
    start = archive.start_of(archive.inner()[f"data/{whole.storage.key}"])
    flat = torch.frombuffer(bytearray(path.read_bytes()[start : start + 24]), dtype=whole.dtype)
    assert torch.equal(flat.as_strided(part.shape, part.stride, part.start), x[2:4])
