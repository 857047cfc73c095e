"""Values that torch has put off, or keeps in another form: against what torch.load gives."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from engine.artifacts.comparing import compare
from engine.artifacts.contents import file_bytes
from engine.artifacts.contents.artifact import state_of
from engine.artifacts.opening import open_artifact
from engine.artifacts.tensors import TensorsOf
from engine.protocol import (
    ArtifactDifference,
    Snapshot,
    StatisticsCommand,
    StatisticsSnapshot,
)
from engine.server.session import Session
from engine.system.errors import LabError
from engine.tensors.compare import same_bits
from tests.examples import examples

pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")

COMPLEX = (torch.complex32, torch.complex64, torch.complex128)
OTHERS = (
    torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int8, torch.uint8,
    torch.int64, torch.bool, torch.uint16, torch.float8_e4m3fn, torch.float8_e5m2,
)  # fmt: skip
UNTYPED = (torch.complex32, *OTHERS[-3:])
"""The format before 1.6 does not have these, and torch.load leaves their bytes in the order of the
machine that wrote them."""
OF_COMPLEX: dict[str, Callable[[Tensor], Tensor]] = {
    "conj": torch.conj, "imag of conj": lambda t: t.conj().imag, "real": lambda t: t.real,
    "neg": torch._neg_view, "neg of conj": lambda t: torch._neg_view(t.conj()),
}  # fmt: skip
OF_ALL: dict[str, Callable[[Tensor], Tensor]] = {
    "whole": lambda t: t, "transposed": lambda t: t.t(), "rows": lambda t: t[1::2],
    "parameter": lambda t: nn.Parameter(t, requires_grad=False),
    "expanded": lambda t: t[:1].expand(3, -1), "none": lambda t: t[:0],
}  # fmt: skip


def resolved(t: Tensor) -> Tensor:
    return t.detach().resolve_conj().resolve_neg()


def are_same(a: Tensor, b: Tensor) -> bool:
    whole = torch.contiguous_format
    return same_bits(a.clone(memory_format=whole), b.clone(memory_format=whole))


@st.composite
def tensors(draw) -> Tensor:
    dtype = draw(st.sampled_from(COMPLEX + OTHERS))
    shape = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    torch.manual_seed(draw(st.integers(0, 5)))
    x = (torch.randn(shape, dtype=torch.complex128) * 9).to(dtype) if dtype in COMPLEX else (
        torch.randn(shape) * 9).to(dtype)  # fmt: skip
    x = OF_ALL[draw(st.sampled_from(list(OF_ALL)))](x)
    if dtype in COMPLEX:
        kinds = list(OF_COMPLEX)[: -1 if dtype == torch.complex32 else None]  # torch has it not
        x = OF_COMPLEX[draw(st.sampled_from(kinds))](x)
    return x


def with_other_byte_order(path: Path) -> None:
    """The archive as a machine of the other byte order would have written it."""
    state = torch.load(path)
    sizes = {}
    for t in state.values():
        bits = t.element_size() // (2 if t.is_complex() else 1)
        sizes[t.untyped_storage().nbytes()] = bits
    with zipfile.ZipFile(path) as archive:
        records = {info.filename: archive.read(info) for info in archive.infolist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, data in records.items():
            if "/data/" in name and data:
                bits = sizes[len(data)]
                raw = torch.frombuffer(bytearray(data), dtype=torch.uint8).view(-1, bits)
                data = raw.flip(1).numpy().tobytes()
            archive.writestr(name, b"big" if name.endswith("byteorder") else data)


@settings(max_examples=examples(150), deadline=None)
@given(tensors(), st.sampled_from(["zip", "before 1.6", "other byte order"]))
def test_what_torch_loads_is_read(x: Tensor, how: str) -> None:
    if x.dtype in UNTYPED:
        how = "zip"
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.pt"
        torch.save({"x": x}, path, _use_new_zipfile_serialization=how != "before 1.6")
        if how == "other byte order":
            with_other_byte_order(path)
        loaded = resolved(torch.load(path)["x"])
        artifact = open_artifact(path)
        found = artifact.tensor("x")
        assert not found.is_conj() and not found.is_neg()
        assert are_same(found, loaded)
        assert are_same(TensorsOf(path)["x"], loaded)
        assert are_same(state_of(artifact)["x"], loaded)
        torch.save({"x": loaded.clone()}, Path(folder) / "y.pt")
        (row,) = (row for row in compare(artifact, open_artifact(Path(folder) / "y.pt")) if row)
        assert row.verdict == "equal" and row.absolute == 0.0


def row_of(tmp_path: Path, a: Tensor, b: Tensor) -> ArtifactDifference:
    for name, t in (("a", a), ("b", b)):
        torch.save({"x": t}, tmp_path / f"{name}.pt")
    rows = compare(open_artifact(tmp_path / "a.pt"), open_artifact(tmp_path / "b.pt"))
    (row,) = (row for row in rows if row)
    return row


def test_a_conjugate_differs_from_what_is_stored(tmp_path: Path, monkeypatch) -> None:
    for size in (file_bytes.COPIED_BYTES, 0):  # copied, and mapped
        monkeypatch.setattr(file_bytes, "COPIED_BYTES", size)
        x = torch.randn(4, dtype=torch.complex64)
        row = row_of(tmp_path, x.conj(), x)
        assert row.verdict == "different"
        assert row.absolute == float((x.conj() - x).abs().double().max())
        row = row_of(tmp_path, x.conj().imag, x.imag)
        assert row.absolute == float(2 * x.imag.abs().max())


def test_statistics_and_histogram_are_of_the_negatives(tmp_path: Path) -> None:
    x = torch.tensor([1 + 1j, 2 + 4j, 3 + 9j]).conj().imag
    torch.save({"x": x}, tmp_path / "x.pt")
    answers: list[Snapshot] = []
    session = Session(answers.append)
    session.handle(StatisticsCommand(id=1, expression="x", file=str(tmp_path / "x.pt")))
    session.close()
    (found,) = (each for each in answers if isinstance(each, StatisticsSnapshot))
    assert (found.minimum, found.maximum) == (-9.0, -1.0) and found.histogram
    assert found.histogram.low == -9.0


@pytest.mark.parametrize("dtype", [torch.bool, torch.float8_e4m3fn, torch.uint16])
def test_negatives_of_what_has_none_are_refused(dtype: torch.dtype, tmp_path: Path) -> None:
    """torch.load gives such a tensor too, and cannot say its values."""
    x = torch.ones(2).to(dtype)
    torch._C._set_tensor_metadata(x, {"neg": True})
    torch.save({"x": x}, tmp_path / "x.pt")
    with pytest.raises(LabError, match="negatives of numbers that have none"):
        open_artifact(tmp_path / "x.pt").tensor("x")
