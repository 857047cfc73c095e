"""Which bytes of a file tensors have in common: against sets of addresses, byte by byte."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from engine.artifacts.contents import shared_memory
from engine.artifacts.contents.artifact import Entry
from engine.artifacts.contents.file_bytes import FileBytes
from engine.artifacts.contents.shared_memory import Memory, memory_of
from engine.artifacts.opening import open_artifact
from tests.examples import examples

FILE = Path("weights")
DTYPES = (torch.uint8, torch.float16, torch.float32, torch.complex128)
Shape = tuple[int, ...]


def view(
    key: str, shape: Shape, start: int = 0, stride: Shape | None = None,
    dtype: torch.dtype = torch.float32, offset: int = 0, size: int = 4096,
) -> Entry:  # fmt: skip
    place = FileBytes(FILE, offset, size, dtype, start, stride)
    return Entry(key, shape=shape, size_bytes=torch.Size(shape).numel() * dtype.itemsize,
                 place=place)  # fmt: skip


def addresses(offset: int, shape: Shape, stride: Shape, item: int) -> set[int]:
    """The bytes that a tensor has, one by one."""
    found = set()
    for index in itertools.product(*map(range, shape)):
        at = offset + item * sum(i * step for i, step in zip(index, stride, strict=True))
        found.update(range(at, at + item))
    return found


def expected(tensors: dict[str, tuple[set[int], int]]) -> dict[str, Memory]:
    """For the addresses of each tensor, and the bytes of its elements."""
    found, earlier = {}, {}
    for key, (own, item) in tensors.items():
        new = own - earlier.keys()
        shares = min((earlier[at] for at in own & earlier.keys()), key=list(tensors).index,
                     default="")  # fmt: skip
        found[key] = Memory(shares, -(-len(new) // item), len(new))
        earlier.update(dict.fromkeys(new, key))
    return found


@st.composite
def views(draw) -> list[Entry]:
    entries = []
    for number in range(draw(st.integers(1, 6))):
        dtype = draw(st.sampled_from(DTYPES))
        shape = tuple(draw(st.lists(st.integers(0, 4), max_size=3)))
        stride = draw(st.none() | st.tuples(*[st.integers(0, 9)] * len(shape)))
        start = draw(st.integers(0, 12))
        offset = draw(st.sampled_from((0, 16, 40, 41)))
        entries.append(view(f"k{number}", shape, start, stride, dtype, offset))
    return entries


@settings(max_examples=examples(400), deadline=None)
@given(views())
def test_any_views_of_a_file(entries: list[Entry]) -> None:
    told = {}
    for entry in entries:
        place = entry.place
        assert isinstance(place, FileBytes)
        item = place.dtype.itemsize
        stride = torch.empty(entry.shape, device="meta").stride()
        stride = stride if place.stride is None else place.stride
        own = addresses(place.offset + place.start * item, entry.shape, stride, item)
        told[entry.key] = own, item
    assert memory_of(entries) == expected(told)


@settings(max_examples=examples(100), deadline=None)
@given(views())
def test_with_no_time_for_all_cells_the_union_is_that_of_whole_spans(entries: list[Entry]) -> None:
    """Nothing is told as exact that is not."""
    exact = memory_of(entries)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared_memory, "MAX_CELLS", 0)
        found = memory_of(entries)
    for key, memory in found.items():
        assert not memory.is_exact or memory == exact[key]
        assert memory.added_bytes <= next(e.size_bytes for e in entries if e.key == key)
        assert not exact[key].shares or memory.shares


def test_many_views_of_one_storage_are_counted_in_little_time(monkeypatch) -> None:
    """A flat buffer of all weights beside them, of sizes that have no common divisor, takes no
    more cells than views; were there many more, they would be counted in larger cells."""
    starts = [n * (n + 1) // 2 for n in range(1000)]
    rows = [view(f"w{n}", (n + 1,), start, size=2**40) for n, start in enumerate(starts)]
    flat = view("flat", (2**34,), size=2**40)
    found = memory_of([flat, *rows])
    assert found["flat"] == Memory("", 2**34, 2**36)
    assert all(found[row.key] == Memory("flat", 0, 0) for row in rows)
    found = memory_of([*rows, flat])
    assert all(found[r.key] == Memory("", r.shape[0], r.size_bytes) for r in rows)
    left = 2**34 - sum(row.shape[0] for row in rows)
    assert found["flat"] == Memory("w0", left, 4 * left)
    monkeypatch.setattr(shared_memory, "MAX_VISITS", 1001 * 20)
    nested = [view(f"n{n}", (2000 - n,), n, size=2**20) for n in range(1000)]
    assert not any(each.is_exact for each in memory_of(nested).values())


def lstm() -> nn.LSTM:
    """Its weights are views of one storage, as cuDNN wants them."""
    found = nn.LSTM(6, 4, 2)
    flat = torch.cat([p.detach().flatten() for p in found.parameters()])
    at = 0
    for p in found.parameters():
        p.data = flat[at : at + p.numel()].view_as(p)
        at += p.numel()
    return found


def tensors_with_views() -> dict[str, Tensor]:
    torch.manual_seed(0)
    base, tied = torch.randn(8, 6), torch.randn(5, 3)
    return {
        **lstm().state_dict(),
        "rows": base[::2], "others": base[1::2], "column": base[:, 1], "all": base,
        "tied": tied, "transposed": tied.t(), "expanded": torch.ones(1).expand(100, 3),
        "rows expanded": base[0].expand(4, 6), "empty": base[:0], "scalar": base[7, 5],
        "windows": torch.arange(10.0).unfold(0, 4, 1), "parameter": nn.Parameter(base[2:5]),
    }  # fmt: skip


def expected_of(tensors: dict[str, Tensor]) -> dict[str, Memory]:
    """From the addresses that torch gives the tensors it has loaded."""
    return expected(
        {
            key: (
                addresses(t.data_ptr(), tuple(t.shape), t.stride(), t.element_size()),
                t.element_size(),
            )
            for key, t in tensors.items()
        }
    )


@pytest.mark.parametrize("as_zip", [True, False], ids=["zip", "before 1.6"])
def test_views_in_a_file_of_torch(as_zip: bool, tmp_path: Path) -> None:
    path = tmp_path / "views.pt"
    torch.save(tensors_with_views(), path, _use_new_zipfile_serialization=as_zip)
    assert memory_of(open_artifact(path).entries) == expected_of(torch.load(path))


def test_the_weights_of_an_lstm_share_nothing(tmp_path: Path) -> None:
    path = tmp_path / "lstm.pt"
    model = lstm()
    torch.save(model.state_dict(), path)
    found = memory_of(open_artifact(path).entries)
    count = sum(p.numel() for p in model.parameters())
    assert sum(each.added_elements for each in found.values()) == count
    assert not any(each.shares for each in found.values())


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.whole = nn.Parameter(torch.randn(4, 4))
        self.turned = nn.Parameter(self.whole.detach().t())
        self.register_buffer("part", self.whole.detach()[:2])

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.whole + x @ self.turned + self.part.sum()


@pytest.mark.filterwarnings("ignore:`torch.jit.*is deprecated")
def test_views_in_programs(tmp_path: Path) -> None:
    path = tmp_path / "tied.ts"
    torch.jit.script(Tied()).save(path)
    loaded = torch.jit.load(path).state_dict()
    assert memory_of(open_artifact(path).entries) == expected_of(loaded)
    path = tmp_path / "tied.pt2"
    torch.export.save(torch.export.export(Tied(), (torch.ones(1, 4),)), path)
    artifact = open_artifact(path)
    loaded = torch.export.load(path).state_dict
    for key in loaded:
        assert torch.equal(artifact.tensor(key), loaded[key]), key
    assert sum(each.added_bytes for each in memory_of(artifact.entries).values()) == 64
