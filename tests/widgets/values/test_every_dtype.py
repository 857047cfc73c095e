"""Every dtype and layout opens in the Values and in the Storage view, with the right numbers."""

from __future__ import annotations

import pytest
import torch

from engine.protocol import (
    ErrorSnapshot,
    LocateCommand,
    ReadStorageCommand,
    RunCellCommand,
    Snapshot,
    StorageSnapshot,
)
from engine.server.session import Session
from widgets.memory.storage_view import StorageView
from widgets.values.values_view import ValuesView

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(prototype|beta state|TypedStorage|ComplexHalf|Sparse invariant|deprecated).*"
    ":UserWarning"
)

NUMBERS = {
    "bool": ("False", "True"),
    **dict.fromkeys(
        ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"), ("0", "1")
    ),
    **dict.fromkeys(
        ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
         "float8_e4m3fnuz", "float8_e5m2fnuz"), ("0", "1")),
    "complex32": ("0+0j", "1+0j"),
    "complex64": ("0+0j", "1+0j"),
    "complex128": ("0+0j", "1+0j"),
}  # fmt: skip

# name: (source, the table's first row, the storage's cells or words instead of them)
LAYOUTS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...] | str]] = {
    "float8_e8m0fnu": ("torch.tensor([1.0, 4.0]).to(torch.float8_e8m0fnu)",
                       ("1", "4"), ("1", "4")),
    "float specials": ("torch.tensor([float('nan'), float('inf'), -0.0])",
                       ("nan", "inf", "-0"), ("nan", "inf", "-0")),
    "quantised": ("torch.quantize_per_tensor(torch.tensor([0.5, -1.0]), 0.5, 10, torch.qint8)",
                  ("0.5", "-1"), ("11", "8")),
    "quantised per channel": (
        "torch.quantize_per_channel(torch.tensor([[0.5, -1.0], [1.0, 2.0]]),"
        " torch.tensor([0.5, 0.25]), torch.tensor([0, 0]), 0, torch.quint8)",
        ("0.5", "0"), ("1", "0", "4", "8")),
    "COO": ("torch.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse()", ("0", "2"), "keeps two tensors"),
    "CSR": ("torch.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse_csr()", ("0", "2"),
            "keeps three tensors"),
    "CSC": ("torch.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse_csc()", ("0", "2"),
            "keeps three tensors"),
    "BSR": ("torch.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse_bsr((1, 1))", ("0", "2"),
            "no strides"),
    "nested": ("torch.nested.nested_tensor([torch.tensor([1.0]), torch.tensor([2.0, 3.0])])",
               ("1", ""), "unbind()"),
    "jagged": ("torch.nested.nested_tensor([torch.tensor([1.0]), torch.tensor([2.0, 3.0])],"
               " layout=torch.jagged)", ("1", ""), "unbind()"),
    "0-d": ("torch.tensor(7)", ("7",), ("7",)),
    "meta": ("torch.empty(2, device='meta')", (), ("", "")),
    "conjugate": ("torch.tensor([1 + 2j, 3 - 4j]).conj()", ("1-2j", "3+4j"), ("1+2j", "3-4j")),
    "negative": ("torch.tensor([1 + 2j, 3 - 4j]).conj().imag", ("-2", "4"), ("1", "2", "3", "-4")),
    "subclass": ("type('Mine', (torch.Tensor,), {})([1.0, 2.0])", ("1", "2"), ("1", "2")),
    "parameter": ("nn.Parameter(torch.tensor([1.0, 2.0]))", ("1", "2"), ("1", "2")),
    "buffer of grad": ("torch.tensor([1.0, 2.0], requires_grad=True) * 2", ("2", "4"), ("2", "4")),
    "channels_last": ("torch.arange(8).view(1, 2, 2, 2).to(memory_format=torch.channels_last)",
                      ("0", "1"), ("0", "4", "1", "5", "2", "6", "3", "7")),
    "expanded": ("torch.tensor([[5]]).expand(2, 2)", ("5", "5"), ("5",)),
    "lazy": ("nn.LazyLinear(2).weight", (), "not initialised"),
}  # fmt: skip
LAYOUTS |= {
    name: (f"torch.tensor([0, 1]).to(torch.{name})", numbers, numbers)
    for name, numbers in NUMBERS.items()
}


class Views:
    """Both views of `x`, answered by a session."""

    def __init__(self, qtbot, source: str) -> None:
        self.values, self.storage = ValuesView(), StorageView()
        self.errors: list[ErrorSnapshot] = []
        self.session = Session(self._answer)
        self.session.handle(RunCellCommand(source=f"x = {source}"))
        assert not self.errors
        for view in (self.values, self.storage):
            qtbot.addWidget(view)
            view.resize(900, 700)
            view.show()
            qtbot.waitExposed(view)
        self.values.asked.connect(self.session.handle)
        self.values.show_tensor("x")
        self.session.handle(ReadStorageCommand(expression="x"))
        self.values.grab()
        self.storage.grab()

    def _answer(self, snapshot: Snapshot) -> None:
        if isinstance(snapshot, ErrorSnapshot):
            self.errors.append(snapshot)
        elif isinstance(snapshot, StorageSnapshot):
            self.shown = snapshot
            self.storage.show_storage(snapshot)
        else:
            self.values.show_snapshot(snapshot)


@pytest.mark.parametrize("name", LAYOUTS)
def test_its_numbers_are_in_both_views(qtbot, name) -> None:
    source, row, cells = LAYOUTS[name]
    views = Views(qtbot, source)
    for tab in range(views.values.tabs.count()):
        views.values.tabs.setCurrentIndex(tab)
        views.values.grab()
    views.values.tabs.setCurrentIndex(0)
    assert tuple(views.values.table.text_at(0, at) for at in range(len(row))) == row
    if isinstance(cells, str):
        assert views.shown.cells is None and cells in views.storage.text("contiguity")
    else:
        assert views.shown.values == cells
        t = views.session.lab.console.namespace.variables["x"]  # type: ignore[union-attr]
        assert views.shown.strides == t.stride() and views.shown.offset == t.storage_offset()
        where = (0,) * t.dim()
        views.session.handle(LocateCommand(expression="x", index=where))
        views.storage.show_element(where)
        views.values.show_element(where)
        assert f"= {t.storage_offset()}" in views.storage.text("sum")
    assert not views.errors
    views.session.close()


def test_an_empty_tensor_has_no_cell_and_no_number(qtbot) -> None:
    views = Views(qtbot, "torch.zeros(0, 3)")
    assert views.values.table.text_at(0, 0) is None and views.shown.cells == 0
    assert "nothing to be out of order" in views.storage.text("contiguity")
    assert not views.errors
    views.session.close()


def test_all_dtypes_of_torch_are_in_the_list() -> None:
    packed = {"quint4x2", "quint2x4", "qint8", "quint8", "qint32"}
    dtypes = {
        str(value).removeprefix("torch.")
        for value in vars(torch).values()
        if isinstance(value, torch.dtype)
    }
    odd = {name for name in dtypes if name.startswith(("int", "uint")) and not _whole_bytes(name)}
    odd |= {name for name in dtypes if name.startswith(("bits", "float4"))}
    assert dtypes - packed - odd == set(LAYOUTS) & dtypes


def _whole_bytes(name: str) -> bool:
    return int(name.removeprefix("u").removeprefix("int")) % 8 == 0
