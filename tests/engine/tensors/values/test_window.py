"""Windows of tables, for every dtype and layout, against plain torch."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.protocol import (
    BitsCommand,
    BitsSnapshot,
    ReadValuesCommand,
    RunCellCommand,
    ValuesSnapshot,
    encode_snapshot,
)
from engine.server.session import Session
from engine.system.errors import LabError
from engine.tensors.texts import texts
from engine.tensors.values.slices import parse_slice
from engine.tensors.values.window import MAX_CELLS, cut_tensor, read_window, window_picture

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(prototype|beta state|TypedStorage|ComplexHalf|Sparse invariant|deprecated).*"
    ":UserWarning"
)

FLOATS = [
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.float8_e4m3fnuz,
    torch.float8_e5m2fnuz,
    torch.float8_e8m0fnu,
]
INTEGERS = [
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.uint16,
    torch.uint32,
    torch.uint64,
]


def table(t: torch.Tensor, slice_text: str = "") -> list[list[str]]:
    cut = cut_tensor(t, slice_text)
    return [list(row) for row in read_window(cut, 0, cut.rows, 0, cut.columns)]


def read(t: torch.Tensor, **fields) -> ValuesSnapshot:
    return answer({"x": t}, ReadValuesCommand(expression="x", **fields), ValuesSnapshot)


def answer(variables: dict, command, kind: type):
    snapshots: list = []
    session = Session(snapshots.append)
    session.handle(RunCellCommand(source="pass"))
    assert session.lab.console.namespace is not None
    session.lab.console.namespace.variables.update(variables)
    del snapshots[:]
    session.handle(command)
    session.close()
    (snapshot,) = snapshots
    assert isinstance(snapshot, kind), snapshot
    encode_snapshot(snapshot)  # within the limit
    return snapshot


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_every_float_reads_back_to_the_same_bits(dtype: torch.dtype) -> None:
    numbers = torch.tensor([[0.1, -1.0, 3.14159], [1e-3, 240.0, 0.0]]).abs().clamp(min=2.0**-9)
    t = numbers.to(dtype)
    words = [word for row in table(t) for word in row]
    back = torch.tensor([float(word) for word in words], dtype=torch.float64).to(dtype)
    assert torch.equal(back.double(), t.reshape(-1).double())
    most = {torch.float64: 17, torch.float32: 9, torch.float16: 5}.get(dtype, 4)
    assert max(len(Decimal(word).as_tuple().digits) for word in words) <= most


@pytest.mark.parametrize("dtype", [d for d in FLOATS if d.itemsize == 1], ids=str)
def test_all_256_values_of_a_float8(dtype: torch.dtype) -> None:
    t = torch.arange(256, dtype=torch.uint8).view(dtype)
    back = torch.tensor([float(word) for word in texts(t)], dtype=torch.float64)
    torch.testing.assert_close(back.to(dtype).double(), t.double(), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers_are_written_in_full(dtype: torch.dtype) -> None:
    info = torch.iinfo(dtype)
    t = torch.tensor([info.min, 0, info.max], dtype=dtype)
    assert table(t) == [[str(info.min), "0", str(info.max)]]


def test_bool_complex_and_specials() -> None:
    assert table(torch.tensor([True, False])) == [["True", "False"]]
    assert table(torch.tensor([1 + 2j, -0.5 - 1j])) == [["1+2j", "-0.5-1j"]]
    assert table(torch.tensor([math.nan, math.inf, -math.inf])) == [["nan", "inf", "-inf"]]
    half = torch.tensor([0.1 + 2j], dtype=torch.complex32)
    assert table(half) == [["0.1+2j"]]


def test_conjugate_and_negative_views_show_what_they_mean() -> None:
    z = torch.tensor([[1 + 2j, 3 - 4j]])
    assert table(z.conj()) == [["1-2j", "3+4j"]]
    assert table(z.conj().imag) == [["-2", "4"]]
    assert "conjugate" in cut_tensor(z.conj(), "").note


def test_quantised_per_tensor_and_per_channel() -> None:
    x = torch.tensor([[0.5, -1.0, 2.0], [1.0, 0.0, -0.5]])
    q = torch.quantize_per_tensor(x, 0.5, 10, torch.qint8)
    assert table(q) == [["0.5", "-1", "2"], ["1", "0", "-0.5"]]
    assert table(q, "1, ::2") == [["1", "-0.5"]]
    scales, zeros = torch.tensor([0.5, 0.25]), torch.tensor([0, 0])
    c = torch.quantize_per_channel(x, scales, zeros, 0, torch.qint8)
    assert table(c) == [["0.5", "-1", "2"], ["1", "0", "-0.5"]]
    assert table(c, "1") == [["1", "0", "-0.5"]]
    assert cut_tensor(q, "").note == "quantised: (stored - 10) · 0.5"
    assert cut_tensor(c, "").note == "quantised per channel along dim 0"
    bits = answer({"x": c}, BitsCommand(expression="x", index=(1, 2)), BitsSnapshot)
    assert bits.text == "-0.5" and bits.parts[0].exact == "-2"
    assert "0.25" in bits.note


@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "bsr"])
def test_sparse(layout: str) -> None:
    x = torch.tensor([[0.0, 2.0, 0, 0], [3.0, 0.0, 0, 1]])
    s = {
        "coo": x.to_sparse,
        "csr": x.to_sparse_csr,
        "csc": x.to_sparse_csc,
        "bsr": lambda: x.to_sparse_bsr((1, 2)),
    }[layout]()
    shown = read(s, slice="1", row_count=9, column_count=9)
    assert shown.cells == (("3", "0", "0", "1"),)
    assert shown.edit == "" and "sparse" in shown.note


def test_large_sparse_shows_what_is_stored() -> None:
    s = torch.sparse_coo_tensor(torch.tensor([[5, 7]]), torch.tensor([1.0, 2.0]), (1 << 30,))
    shown = read(s, row_count=9, column_count=9)
    assert shown.cells == (("1", "2"),) and "2 of 1,073,741,824" in shown.note


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged], ids=str)
def test_nested_has_holes(layout: torch.layout) -> None:
    n = torch.nested.nested_tensor([torch.ones(2, 3), torch.full((1, 3), 5.0)], layout=layout)
    cells = read(n, row_count=9, column_count=9).cells
    assert cells == (("1",) * 3, ("1",) * 3, ("5",) * 3, ("",) * 3)
    assert window_picture(cut_tensor(n, "")) == (None, (1, 1))


def test_a_nested_tensor_is_laid_out_up_to_a_size() -> None:
    def cut(wide: int, high: int):
        parts = [torch.ones(1, wide), torch.full((high, 1), 5.0)]
        return cut_tensor(torch.nested.nested_tensor(parts), "")

    fits = cut(4096, 2048)  # 2 * 2048 * 4096 is the limit
    assert fits.shape == (2, 2048, 4096)
    assert read_window(fits, 2047, 2, 0, 2) == (("", ""), ("5", ""))
    too_large = cut(4096, 2049)
    assert too_large.shape == (4096 + 2049,) and "too large to be laid out" in too_large.note
    assert read_window(too_large, 0, 1, 4095, 2) == (("1", "5"),)


def test_scalar_empty_meta_and_released() -> None:
    assert table(torch.tensor(2.5)) == [["2.5"]]
    empty = read(torch.empty(0, 3), row_count=5, column_count=5, picture=True)
    assert (empty.rows, empty.columns, empty.cells, empty.picture) == (0, 3, (), None)
    meta = read(torch.empty(3, 4, device="meta"), row_count=5, column_count=5, picture=True)
    assert (meta.rows, meta.columns, meta.cells, meta.edit) == (3, 4, (), "")
    assert "meta" in meta.note
    gone = torch.ones(4)
    gone.untyped_storage().resize_(0)
    assert "released" in read(gone, row_count=1, column_count=4).note
    short = torch.ones(4)
    short.untyped_storage().resize_(8)
    assert read(short, row_count=1, column_count=4).cells == ()
    assert "shape" in read(torch.empty(4, dtype=torch.int4), row_count=1, column_count=4).note


def test_subclass_and_parameter_are_read_as_tensors() -> None:
    class Loud(torch.Tensor):
        @classmethod
        def __torch_function__(cls, *_):
            raise AssertionError("the view must not run the subclass's code")

    assert table(torch.ones(1, 2).as_subclass(Loud)) == [["1", "1"]]
    parameter = torch.nn.Parameter(torch.ones(2))
    shown = read(parameter, row_count=1, column_count=2)
    assert shown.edit == "no_grad" and shown.cells == (("1", "1"),)
    assert read(parameter.detach().clone()).edit == "assign"
    assert read(parameter * 2).edit == "assign"


def test_reading_leaves_graph_version_and_random_numbers_alone() -> None:
    x = torch.randn(4, 4, requires_grad=True)
    y = x * 2
    before = (y._version, torch.get_rng_state().sum().item(), y.grad_fn)
    shown = read(y, slice="1:, ::2", row_count=4, column_count=4, picture=True)
    assert shown.version == 0
    assert (y._version, torch.get_rng_state().sum().item(), y.grad_fn) == before


@settings(max_examples=60)
@given(st.data())
def test_any_window_of_any_slice_is_torchs(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=0, max_size=4)))
    x = torch.arange(math.prod(shape)).reshape(shape)
    if len(shape) > 1:
        x = x.transpose(0, -1)
    ends = st.none() | st.integers(-6, 6)
    pieces, index = [], []
    for size in x.shape:
        if data.draw(st.booleans()):
            at = data.draw(st.integers(-size, size - 1))
            pieces.append(str(at))
            index.append(at)
        else:
            a, b = data.draw(ends), data.draw(ends)
            step = data.draw(st.none() | st.integers(1, 3))
            pieces.append(":".join("" if end is None else str(end) for end in (a, b, step)))
            index.append(slice(a, b, step))
    oracle = x[tuple(index)]
    cut = cut_tensor(x, ", ".join(pieces))
    assert cut.shape == tuple(oracle.shape)
    flat = oracle.reshape(-1, oracle.shape[-1]) if oracle.ndim and oracle.numel() else oracle
    flat = flat.reshape(1, 1) if oracle.ndim == 0 else flat
    if not oracle.numel():
        assert read_window(cut, 0, 99, 0, 99) == ()
        return
    assert (cut.rows, cut.columns) == tuple(flat.shape)
    row = data.draw(st.integers(0, cut.rows - 1))
    column = data.draw(st.integers(0, cut.columns - 1))
    part = flat[row : row + 7, column : column + 2]
    assert read_window(cut, row, 7, column, 2) == tuple(
        tuple(map(str, values)) for values in part.tolist()
    )


def test_a_window_is_bounded_and_fits_into_a_snapshot() -> None:
    z = torch.full((5000, 5000), 1 / 3 + 1j / 7, dtype=torch.complex128)
    shown = read(z, row_count=5000, column_count=40, picture=True)
    assert sum(map(len, shown.cells)) == MAX_CELLS and len(shown.cells[0]) == 40


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("5", "out of range"),
        ("0, 0, 0, 0", "4 indices"),
        ("::-1", "negative strides"),
        ("[0, 1]", "cannot be used"),
        ("x > 0", "cannot be used"),
        ("..., ...", "Only one"),
        ("1.5", "cannot be used"),
        ("):", "not a slice"),
        ("0](", "not a slice"),
    ],
)
def test_a_slice_that_does_not_fit_is_told_in_words(text: str, words: str) -> None:
    with pytest.raises(LabError, match=words):
        parse_slice(text, "x", (2, 3, 4))


def test_the_whole_expression_may_be_typed() -> None:
    whole = parse_slice("x[0, ..., ::2]", "x", (2, 3, 4))
    assert whole == parse_slice("0, :, ::2", "x", (2, 3, 4))
    assert parse_slice("x", "x", (2,)) == parse_slice("", "x", (2,))


def test_pictures_are_thinned_as_told() -> None:
    x = torch.arange(1000 * 700, dtype=torch.float32).reshape(1000, 700)
    shown, (row_step, column_step) = window_picture(cut_tensor(x, "::2"))
    assert shown is not None and shown.sampled and shown.source_shape == (500, 700)
    np.testing.assert_array_equal(
        np.frombuffer(shown.data, "<f4").reshape(shown.shape),
        x[::2][::row_step, ::column_step].numpy(),
    )
    images = torch.arange(2 * 3 * 4 * 5.0).reshape(2, 3, 4, 5).permute(0, 1, 3, 2)
    shown, step = window_picture(cut_tensor(images, ""))
    assert shown is not None and shown.shape == (6, 5, 4) and step == (1, 1)
    np.testing.assert_array_equal(
        np.frombuffer(shown.data, "<f4").reshape(shown.shape), images.reshape(6, 5, 4).numpy()
    )
    many = torch.arange(3 * 200 * 10 * 10.0).reshape(3, 200, 10, 10)
    shown, _ = window_picture(cut_tensor(many, ""))
    assert shown is not None and shown.shape == (163, 10, 10) and shown.sampled
    np.testing.assert_array_equal(
        np.frombuffer(shown.data, "<f4"), many.reshape(-1)[: 163 * 100].numpy()
    )


def test_of_large_images_one_is_shown_as_a_list_of_one() -> None:
    x = torch.arange(3 * 200 * 200.0).reshape(3, 200, 200)
    shown, (row_step, column_step) = window_picture(cut_tensor(x, ""))
    assert shown is not None and shown.shape == (1, 100, 100) and shown.sampled
    assert (row_step, column_step) == (2, 2)
    np.testing.assert_array_equal(
        np.frombuffer(shown.data, "<f4").reshape(shown.shape), x[:1, ::2, ::2].numpy()
    )
    two, step = window_picture(cut_tensor(x, "1:, :90, :90"))
    assert two is not None and two.shape == (2, 90, 90) and step == (1, 1) and not two.sampled
