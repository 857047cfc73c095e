"""Summaries and pictures of every kind of tensor, against plain torch."""

from __future__ import annotations

import ast
import math

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from engine.protocol import Picture, TensorSummary
from engine.tensors import picture, summarise, value
from engine.tensors.summary import _first_images

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(prototype|beta state|TypedStorage|ComplexHalf|Sparse invariant|deprecated).*"
    ":UserWarning"
)

REAL_DTYPES = [
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.uint16,
    torch.uint32,
    torch.uint64,
    torch.bool,
]


def cells(shown: Picture | None) -> np.ndarray:
    assert shown is not None
    return np.frombuffer(shown.data, "<f4").reshape(shown.shape)


def assert_statistics(summary: TensorSummary, oracle: torch.Tensor) -> None:
    """`oracle` is float64, finite and holds the elements."""
    assert summary.minimum == oracle.min().item()
    assert summary.maximum == oracle.max().item()
    assert summary.mean == pytest.approx(oracle.mean().item(), rel=1e-12, abs=1e-12)
    assert summary.std == pytest.approx(oracle.std().item(), rel=1e-12)
    assert summary.norm == pytest.approx(oracle.norm().item(), rel=1e-12)
    assert summary.zeros == int((oracle == 0).sum())


@pytest.mark.parametrize("dtype", REAL_DTYPES, ids=str)
def test_statistics_text_and_picture_of_each_dtype(dtype: torch.dtype) -> None:
    numbers = torch.tensor([[0.0, 1.0, 2.0], [3.0, 1.0, 0.0]])
    t = numbers.to(dtype)
    shown = value("t", t)
    assert (shown.summary.shape, shown.summary.device) == ((2, 3), "cpu")
    assert f"torch.{shown.summary.dtype}" == str(dtype)
    assert shown.summary.size_bytes == 6 * t.element_size()
    assert_statistics(shown.summary, t.to(torch.float64))
    assert ast.literal_eval(shown.text) == t.tolist()
    np.testing.assert_array_equal(cells(shown.picture), t.to(torch.float32).numpy())


def test_large_unsigned_integers_keep_their_size() -> None:
    t = torch.tensor([2**63 + 2**40, 1], dtype=torch.uint64)
    assert summarise(t).maximum == float(2**63 + 2**40)


def test_non_finite_elements_are_counted_and_left_out() -> None:
    t = torch.tensor([1.0, math.nan, math.inf, -math.inf, 3.0, math.nan])
    summary = summarise(t)
    assert (summary.nans, summary.infs, summary.zeros) == (2, 2, 0)
    assert_statistics(summary, torch.tensor([1.0, 3.0], dtype=torch.float64))
    shown = cells(picture(t))
    assert math.isnan(shown[0, 1]) and shown[0, 2] == math.inf


def test_nothing_finite_has_no_statistics() -> None:
    summary = summarise(torch.full((3,), math.nan))
    assert (summary.minimum, summary.mean, summary.norm, summary.nans) == (None, None, None, 3)


def test_empty_and_scalar() -> None:
    empty = value("e", torch.empty(0, 4))
    assert (empty.summary.minimum, empty.picture, empty.text) == (None, None, "")
    scalar = value("s", torch.tensor(2.5, dtype=torch.float64))
    assert (scalar.text, scalar.summary.mean, scalar.summary.std) == ("2.5000", 2.5, None)
    assert cells(scalar.picture).tolist() == [[2.5]]


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128, torch.complex32], ids=str)
def test_complex_has_a_norm_and_magnitudes(dtype: torch.dtype) -> None:
    t = torch.tensor([3 + 4j, 0j]).to(dtype)
    summary = summarise(t)
    assert (summary.norm, summary.minimum, summary.mean, summary.zeros) == (5.0, None, None, 1)
    assert cells(picture(t)).tolist() == [[5.0, 0.0]]


def test_lazy_conjugate_and_negation() -> None:
    z = torch.tensor([1 + 2j, 3 - 4j])
    assert z.conj().is_conj() and z.conj().imag.is_neg()
    assert summarise(z.conj()).norm == pytest.approx(z.norm().item())
    assert_statistics(summarise(z.conj().imag), torch.tensor([-2.0, 4.0], dtype=torch.float64))


@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "bsr"])
def test_sparse_counts_its_zeros(layout: str) -> None:
    dense = torch.zeros(4, 6)
    dense[1, 2], dense[3, 5], dense[0, 0] = 5.0, -2.0, 1.0
    t = {
        "coo": dense.to_sparse,
        "csr": dense.to_sparse_csr,
        "csc": dense.to_sparse_csc,
        "bsr": lambda: dense.to_sparse_bsr((2, 2)),
    }[layout]()
    assert_statistics(summarise(t), dense.double())
    np.testing.assert_array_equal(cells(picture(t)), dense.numpy())


def test_sparse_too_large_to_expand_is_read_as_stored() -> None:
    side = 1 << 13
    t = torch.sparse_coo_tensor(torch.tensor([[1, 5, 5], [2, 7, 7]]), [3.0, 1.0, 1.0], (side, side))
    summary = summarise(t)
    count = side * side
    assert (summary.minimum, summary.maximum, summary.zeros) == (0.0, 3.0, count - 2)
    assert summary.mean == pytest.approx(5.0 / count)
    variance = (9 + 4 - count * (5 / count) ** 2) / (count - 1)
    assert summary.std == pytest.approx(math.sqrt(variance))
    assert summary.norm == pytest.approx(math.sqrt(13))
    assert "stored" in summary.note and picture(t) is None


def test_quantised_reads_as_dequantised() -> None:
    t = torch.quantize_per_tensor(torch.tensor([[0.0, 0.5], [1.0, 2.0]]), 0.5, 0, torch.quint8)
    assert_statistics(summarise(t), t.dequantize().double())
    assert cells(picture(t)).tolist() == [[0.0, 0.5], [1.0, 2.0]]


def test_mkldnn() -> None:
    dense = torch.arange(6.0).reshape(2, 3)
    assert_statistics(summarise(dense.to_mkldnn()), dense.double())


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_nested_shows_a_ragged_dimension(layout: torch.layout) -> None:
    t = torch.nested.nested_tensor([torch.ones(2, 3), torch.zeros(4, 3)], layout=layout)
    summary = summarise(t)
    assert summary.shape == (2, -1, 3)
    assert (summary.mean, summary.zeros, summary.size_bytes) == (pytest.approx(6 / 18), 12, 72)
    assert picture(t) is None


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: torch.empty(3, 4, device="meta"), "meta"),
        (lambda: FakeTensorMode().from_tensor(torch.ones(3, 4)), "fake"),
        (lambda: torch.zeros(3, 4, dtype=torch.float4_e2m1fn_x2), "packed"),
        (lambda: torch.empty(3, 4, dtype=torch.bits8), "packed"),
    ],
    ids=["meta", "fake", "float4", "bits8"],
)
def test_no_data_is_said_not_raised(make, words: str) -> None:
    shown = value("t", make())
    assert shown.summary.shape == (3, 4)
    assert words in shown.summary.note
    assert (shown.summary.mean, shown.picture, shown.text) == (None, None, "")


def test_uninitialised_parameter() -> None:
    shown = value("w", torch.nn.LazyLinear(3).weight)
    assert (shown.summary.shape, shown.picture) == ((), None)
    assert "shape" in shown.summary.note


def test_functorch_wrapped() -> None:
    seen = []

    def f(x):
        seen.append(summarise(x))
        return x.sum()

    torch.func.grad(f)(torch.ones(3))
    torch.func.vmap(f)(torch.ones(2, 3))
    assert [s.shape for s in seen] == [(3,), (3,)]
    assert all("torch.func" in s.note for s in seen)


@pytest.mark.parametrize("left_bytes", [0, 8])
def test_shrunk_storage_does_not_crash(left_bytes: int) -> None:
    t = torch.ones(4, 4)
    t.untyped_storage().resize_(left_bytes)
    shown = value("t", t)
    assert "storage" in shown.summary.note and shown.summary.mean is None


def test_reading_leaves_graph_gradients_and_rng_alone() -> None:
    w = torch.randn(5, 5, requires_grad=True)
    y = (w * 2).T
    rng, version, sequence = (
        torch.get_rng_state(),
        y._version,
        torch._C._autograd._get_sequence_nr(),
    )
    for t in (w, y, y[1:]):
        value("t", t)
    assert torch._C._autograd._get_sequence_nr() == sequence + 1  # only y[1:]
    assert torch.equal(torch.get_rng_state(), rng)
    assert y._version == version and w.grad is None
    assert summarise(w).mean == pytest.approx(w.detach().double().mean().item())


def test_subclass_and_inference_tensors() -> None:
    class Loud(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise AssertionError("a view must not call into the user's subclass")

    loud = torch.arange(4.0).as_subclass(Loud)
    assert summarise(loud).maximum == 3.0
    with torch.inference_mode():
        t = torch.ones(2, 2)
    assert summarise(t).mean == 1.0


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((), (1, 1)),
        ((7,), (1, 7)),
        ((3, 5), (3, 5)),
        ((2, 3, 5), (2, 3, 5)),
        ((2, 4, 3, 5), (8, 3, 5)),
        ((2, 2, 2, 3, 5), (8, 3, 5)),
    ],
)
def test_small_pictures_are_whole(shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    t = torch.randn(shape)
    shown = picture(t)
    assert shown is not None
    assert (shown.shape, shown.source_shape, shown.sampled) == (expected, shape, False)
    np.testing.assert_array_equal(cells(shown), t.reshape(expected).numpy())


@pytest.mark.parametrize(
    "shape", [(100_000,), (300, 200), (3, 100_000), (50_000, 2), (64, 16, 28, 28), (2, 500, 500)]
)
@pytest.mark.parametrize("max_cells", [1, 100, 4096, 1 << 30])
def test_large_pictures_are_thinned_within_the_limit(
    shape: tuple[int, ...], max_cells: int
) -> None:
    t = torch.arange(math.prod(shape), dtype=torch.float32).reshape(shape)
    shown = picture(t, max_cells)
    assert shown is not None and shown.sampled == (math.prod(shown.shape) < t.numel())
    assert len(shown.data) <= min(4 * max_cells, 64 * 1024)
    source = t.reshape(-1, *shape[-2:]) if t.ndim > 2 else t.reshape(-1, shape[-1])
    rows = -(-source.shape[-2] // -(-source.shape[-2] // shown.shape[-2]))
    assert rows == shown.shape[-2]
    np.testing.assert_array_equal(
        cells(shown)[..., 0, 0], source[: shown.shape[0], 0, 0] if t.ndim > 2 else source[0, 0]
    )


def test_text_has_one_line_a_row_and_stops_at_64_elements() -> None:
    assert value("t", torch.eye(2)).text == "[[1., 0.],\n [0., 1.]]"
    assert value("t", torch.zeros(64)).text != "" and value("t", torch.zeros(65)).text == ""


@pytest.mark.parametrize("special", [[], [math.nan, math.inf, -math.inf, 0.0]])
def test_statistics_in_pieces_and_of_repeated_elements(
    monkeypatch: pytest.MonkeyPatch, special: list[float]
) -> None:
    monkeypatch.setattr("engine.tensors.summary.PIECE", 3)
    t = torch.cat([torch.tensor(special, dtype=torch.float64), torch.randn(8).double()])
    t = t.view(-1, 1, 2).expand(-1, 5, 2).unsqueeze(0).expand(4, -1, -1, -1)
    shown = summarise(t)
    assert_statistics(shown, t[torch.isfinite(t)])
    assert (shown.nans, shown.infs) == (int(t.isnan().sum()), int(t.isinf().sum()))
    norm = summarise(t.to(torch.complex128)).norm
    assert norm == pytest.approx(shown.norm, rel=1e-12)


def test_an_endlessly_expanded_tensor_is_read_where_it_lies() -> None:
    """Its 80 PB would not fit in any memory."""
    t = torch.tensor([1.0, 0.0, -3.0]).view(3, 1, 1).expand(10**5, 3, 10**5, 10**6)
    shown = value("t", t)
    assert shown.summary.mean == pytest.approx(-2 / 3)
    assert shown.summary.zeros == 10**16 and shown.summary.nans == 0
    assert shown.picture is not None and shown.picture.source_shape == tuple(t.shape)
    first = cells(shown.picture)
    assert first[0, 0, 0] == 1.0 and len(first) >= 1


@pytest.mark.parametrize("shape", [(64, 64), (40, 100), (2, 64, 64), (1, 2, 3)])
def test_a_picture_of_as_many_cells_as_fit_is_whole(shape: tuple[int, ...]) -> None:
    t = torch.arange(math.prod(shape), dtype=torch.float32).reshape(shape)
    shown = picture(t, t.numel())
    assert shown is not None and (shown.shape, shown.sampled) == (shape, False)
    np.testing.assert_array_equal(cells(shown), t.numpy())


def test_the_first_images_are_those_of_a_list_of_all_and_no_others_are_copied() -> None:
    t = torch.arange(4 * 3 * 2 * 5 * 6).reshape(3, 4, 2, 5, 6).transpose(0, 1)
    images = t.reshape(-1, 5, 6)
    for count in range(1, 25):
        assert _first_images(t, count).equal(images[:count])
    inside = t.untyped_storage().data_ptr()
    assert _first_images(t, 2).untyped_storage().data_ptr() == inside  # of the first entry alone
    assert _first_images(t[:, :, 0], 3).untyped_storage().data_ptr() == inside
