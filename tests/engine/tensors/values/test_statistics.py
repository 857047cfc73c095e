"""Statistics and histograms counted piece by piece, against torch and numpy at once."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from engine.protocol import RunCellCommand, StatisticsCommand, StatisticsSnapshot
from engine.server.session import Session
from engine.tensors.values import state
from engine.tensors.values import statistics as module
from engine.tensors.values.statistics import Statistics, pieces

pytestmark = pytest.mark.filterwarnings("ignore:.*(prototype|deprecated|ComplexHalf).*:UserWarning")


def counted(t: torch.Tensor) -> Statistics:
    statistics = Statistics(t)
    while statistics.advance():
        pass
    assert statistics.done == statistics.total == t.numel()
    return statistics


def assert_equals_torch(t: torch.Tensor) -> None:
    found, x = counted(t), t.double().reshape(-1)
    x = x[x.isfinite()]
    assert found.minimum == x.min().item() and found.maximum == x.max().item()
    assert found.mean == pytest.approx(x.mean().item(), rel=1e-12, abs=1e-13)
    assert found.std == pytest.approx(x.std().item(), rel=1e-12)
    assert found.zeros == int((x == 0).sum())
    bins = found.histogram()
    assert bins is not None and len(bins.counts) <= module.SHOWN_BINS + 1
    edges = bins.low + bins.width * np.arange(len(bins.counts) + 1)
    inside = np.searchsorted(edges, x.numpy(), side="right") - 1
    assert tuple(np.bincount(inside, minlength=len(bins.counts))) == bins.counts
    assert bins.counts[0] and bins.counts[-1]  # no empty bins at the ends


@pytest.mark.parametrize(
    "t",
    [
        torch.randn(100, 70, generator=torch.Generator().manual_seed(1)),
        torch.arange(-500, 500),
        torch.tensor([0, 1, 1, 255], dtype=torch.uint8),
        torch.tensor([True, False, True]),
        torch.full((50,), 3.0),
        torch.zeros(9),
        torch.tensor([1e-30, 1.0, 1e30]),
        torch.tensor([5e-324, 1e-323], dtype=torch.float64),
        torch.randn(8, 9).bfloat16(),
        torch.randn(8, 9).clamp(-3, 3).to(torch.float8_e5m2),
        torch.cat([torch.zeros(400), torch.tensor([-1e6, 7.0])]),
    ],
    ids=lambda t: f"{t.dtype}-{t.numel()}",
)
@pytest.mark.parametrize("chunk", [1 << 18, 64, 7])
def test_numbers_are_torchs(t: torch.Tensor, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", chunk)
    assert_equals_torch(t)
    if t.ndim == 2:
        assert_equals_torch(t.T[::2])


def test_not_finite_elements_are_counted_apart() -> None:
    found = counted(torch.tensor([math.nan, math.inf, -math.inf, math.nan, 1.0, 3.0]))
    assert (found.nans, found.positive_infs, found.negative_infs) == (2, 1, 1)
    assert (found.minimum, found.maximum, found.mean) == (1.0, 3.0, 2.0)
    nothing = counted(torch.tensor([math.nan]))
    assert (nothing.minimum, nothing.mean, nothing.std, nothing.histogram()) == (None,) * 4


def test_the_widest_range_there_is_has_no_histogram_but_statistics() -> None:
    found = counted(torch.tensor([-1.7e308, 1.7e308], dtype=torch.float64))
    assert found.minimum == -1.7e308 and found.mean == 0.0
    assert found.histogram() is None


@pytest.mark.parametrize(
    ("t", "low", "width", "bins"),
    [
        (torch.tensor([0, 1, 1, 3]), 0, 1, 4),
        (torch.arange(-3, module.SHOWN_BINS - 3), -3, 1, module.SHOWN_BINS),
        (torch.arange(module.SHOWN_BINS + 1), 0, 2, module.SHOWN_BINS // 2 + 1),
    ],
)
def test_bins_of_whole_numbers_are_whole_and_joined_only_when_too_many(
    t: torch.Tensor, low: float, width: float, bins: int
) -> None:
    found = counted(t).histogram()
    assert found is not None
    assert (found.low, found.width, len(found.counts)) == (low, width, bins)
    assert_equals_torch(t)


def test_bins_of_fractions_are_as_narrow_as_their_range_needs() -> None:
    for least in (0.0, 5.0):
        t = torch.tensor([least, least + 0.25, least + 1.0])
        found = counted(t).histogram()
        assert found is not None and found.width < 2 / module.SHOWN_BINS
        assert_equals_torch(t)


def test_the_last_bin_holds_the_end_of_the_range(monkeypatch: pytest.MonkeyPatch) -> None:
    rounded = torch.tensor([-1.0, -0.5, -1e-20], dtype=torch.float64)  # its end rounds to 0
    found = counted(rounded).histogram()
    assert found is not None and len(found.counts) == module.SHOWN_BINS
    assert_equals_torch(rounded)
    monkeypatch.setattr(module, "CHUNK", 2)
    assert_equals_torch(torch.tensor([0, 2047, -28, 2046]))  # widened once, up to its last bin


def test_complex_numbers_are_counted_by_magnitude() -> None:
    found = counted(torch.tensor([3 + 4j, 0j]))
    assert found.magnitudes and (found.minimum, found.maximum, found.zeros) == (0.0, 5.0, 1)


def test_pieces_are_views_that_cover_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 10)
    x = torch.arange(3 * 4 * 25).reshape(3, 4, 25).permute(2, 0, 1)
    found = list(pieces(x))
    assert all(piece.numel() <= 10 for piece in found)
    assert all(p.untyped_storage().data_ptr() == x.untyped_storage().data_ptr() for p in found)
    assert torch.cat([piece.reshape(-1) for piece in found]).sort().values.tolist() == list(
        range(300)
    )


def ask(session: Session, out: list, **fields) -> StatisticsSnapshot:
    del out[:]
    session.handle(StatisticsCommand(expression="x", **fields))
    (snapshot,) = out
    assert isinstance(snapshot, StatisticsSnapshot), snapshot
    return snapshot


def test_counting_goes_on_from_command_to_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 100)
    monkeypatch.setattr(state, "MOMENT_S", 0.0)  # one piece a command
    out: list = []
    session = Session(out.append)
    session.handle(RunCellCommand(source="x = torch.arange(250.0)"))
    assert [ask(session, out).done for _ in range(2)] == [100, 200]
    last = ask(session, out)
    assert (last.done, last.total, last.maximum) == (250, 250, 249.0)
    assert session.lab.values.statistics is None
    assert ask(session, out).done == 100
    assert ask(session, out, restart=True).done == 100  # from the beginning
    session.handle(RunCellCommand(source="x[0] = 9"))
    assert ask(session, out).done == 100  # the numbers have changed
    assert ask(session, out, slice="200:").total == 50


def test_sparse_nested_and_unreadable() -> None:
    out: list = []
    session = Session(out.append)
    session.handle(
        RunCellCommand(
            source="s = torch.sparse_coo_tensor([[5, 7]], [-1.0, 2.0], (1 << 30,))\n"
            "n = torch.nested.nested_tensor([torch.ones(2), torch.full((1,), 4.0)])\n"
            "m = torch.ones(3, device='meta')"
        )
    )
    shown = []
    for name in "snm":
        session.handle(RunCellCommand(source=f"x = {name}"))
        shown.append(ask(session, out, restart=True))
    sparse, nested, meta = shown
    assert (sparse.total, sparse.zeros) == (1 << 30, (1 << 30) - 2)
    assert sparse.mean == pytest.approx(1 / 2**30) and sparse.minimum == -1.0
    assert (nested.total, nested.mean) == (3, 2.0)
    assert (meta.total, meta.mean) == (0, None) and "meta" in meta.note
