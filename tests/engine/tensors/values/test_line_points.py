"""Lines of large rows: every spike is in its bin, and where it stands."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.protocol import LinesCommand, LinesSnapshot, RunCellCommand, encode_snapshot
from engine.server.session import Session
from engine.tensors.values import line_points as lines
from engine.tensors.values import state
from engine.tensors.values.line_points import MAX_BINS, LinePoints
from engine.tensors.values.window import cut_tensor


def seen(t: torch.Tensor, count: int = 6, slice_text: str = "") -> LinePoints:
    found = LinePoints(cut_tensor(t, slice_text), count)
    while found.advance():
        pass
    assert found.done == found.total
    return found


def test_few_columns_are_the_numbers_themselves() -> None:
    t = torch.randn(9, 5)
    found = seen(t)
    assert found.low.tolist() == found.high.tolist() == t[:6].tolist()
    assert found.high_at.tolist() == [[0, 1, 2, 3, 4]] * 6 and found.bin_columns == 1
    assert (found.rows, found.columns, found.total) == (9, 5, 30)


@pytest.mark.parametrize("at", [0, 1, 977, 123_456, 999_998, 999_999])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int8, torch.float64, torch.bool])
def test_a_single_spike_among_a_million_is_there(at, dtype) -> None:
    t = torch.zeros(1_000_000, dtype=dtype)
    t[at] = 1
    found = seen(t)
    assert found.high.shape == (1, math.ceil(1_000_000 / 977)) and found.bin_columns == 977
    assert found.high.max() == 1 and found.high.sum() == 1 and found.low.sum() == 0
    assert found.high_at[0, found.high.argmax()] == at


@settings(max_examples=40)
@given(st.integers(1, 7), st.integers(1, 5000), st.integers(0, 2**31), st.integers(1, 3))
def test_bins_are_numpys(rows, columns, seed, count) -> None:
    generator = torch.Generator().manual_seed(seed)
    t = torch.randn(columns, rows, generator=generator).T
    t[torch.rand(t.shape, generator=generator) < 0.1] = math.nan
    found = seen(t, count)
    x, width = t.numpy(), found.bin_columns
    assert len(found.low) == min(rows, count) and found.low.shape[1] <= MAX_BINS
    for row in range(len(found.low)):
        for number, left in enumerate(range(0, columns, width)):
            part = x[row, left : left + width]
            if np.isnan(part).all():
                assert np.isnan(found.low[row, number]) and np.isnan(found.high[row, number])
                continue
            assert found.low[row, number] == np.nanmin(part)
            assert found.high[row, number] == np.nanmax(part)
            assert x[row, found.low_at[row, number]] == found.low[row, number]
            assert x[row, found.high_at[row, number]] == found.high[row, number]
    assert found.not_finite == np.isnan(x[: len(found.low)]).sum()


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor:UserWarning")
def test_every_kind_of_number_has_a_line() -> None:
    real, small = torch.tensor([0.5, 1.0]), torch.float8_e4m3fn
    for t, expected in (
        (torch.tensor([3 + 4j, 0]), [[5.0, 0.0]]),
        (torch.tensor([3 - 4j, 1j]).conj(), [[5.0, 1.0]]),
        (torch.tensor([2**63], dtype=torch.uint64), [[float(2**63)]]),
        (torch.tensor([-5, 7], dtype=torch.int64), [[-5.0, 7.0]]),
        (torch.tensor([0.5, 448]).to(small), [[0.5, 448.0]]),
        (torch.quantize_per_tensor(real, 0.5, 3, torch.qint8), [[0.5, 1.0]]),
        (torch.eye(2).to_sparse(), [[1.0, 0.0], [0.0, 1.0]]),
        (torch.tensor(7), [[7.0]]),
        (torch.tensor([2**40, 2**40 + 1]), [[2.0**40, 2.0**40 + 1]]),
        (torch.tensor([1e300, 1e300 / 3], dtype=torch.float64), [[1e300, 1e300 / 3]]),
        (torch.tensor([1.5e308], dtype=torch.float64), [[float(np.finfo(np.float64).max) / 2]]),
        (torch.zeros(0, 3), []),
        (torch.zeros(2, 0), [[], []]),
    ):
        found = seen(t)
        assert found.high.tolist() == found.low.tolist() == expected, t


def test_infinities_and_missing_elements_are_gaps() -> None:
    ragged = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    found = seen(ragged)
    assert np.isnan(found.high).tolist() == [[False, False, True], [False] * 3]
    assert found.not_finite == 0
    found = seen(torch.tensor([1.0, math.inf, -math.inf, math.nan]))
    assert np.isnan(found.high).tolist() == [[False, True, True, True]] and found.not_finite == 3


@pytest.mark.parametrize(("chunk", "read"), [(1, 3), (5, 3), (6, 6), (8, 6), (9, 9)])
def test_a_piece_has_whole_bins_and_at_least_one(monkeypatch, chunk: int, read: int) -> None:
    monkeypatch.setattr(lines, "CHUNK", chunk)
    columns = 3 * MAX_BINS - 1
    found = LinePoints(cut_tensor(torch.arange(2.0 * columns).view(2, columns), ""), 2)
    assert found.bin_columns == 3
    done = [found.done for _ in range(3) if found.advance()]
    assert done == [read, 2 * read, 3 * read]
    while found.advance():
        pass
    assert found.done == found.total == 2 * columns


def test_a_slice_gives_its_own_columns() -> None:
    t = torch.arange(24.0).view(2, 3, 4)
    found = seen(t, slice_text="1, :, ::2")
    assert found.high.tolist() == [[12, 14], [16, 18], [20, 22]]


def test_a_long_line_comes_in_parts_and_begins_anew_when_the_tensor_changed(monkeypatch) -> None:
    monkeypatch.setattr(state, "MOMENT_S", 0.0)
    monkeypatch.setattr(lines, "CHUNK", 10_000)
    sent: list = []
    session = Session(sent.append)
    session.handle(LinesCommand(expression="x"))
    assert session.lab.values.lines is None

    session.handle(
        RunCellCommand(source="x = torch.zeros(40_000)\nx[39_000] = 5\nm = x.to('meta')")
    )

    def ask(expression: str = "x", restart: bool = False) -> LinesSnapshot:
        session.handle(LinesCommand(expression=expression, restart=restart))
        assert isinstance(sent[-1], LinesSnapshot)
        return sent[-1]

    first = ask(restart=True)
    assert 0 < first.done < first.total == 40_000
    assert np.isnan(np.frombuffer(first.high, "<f8")[-1])
    second = ask()
    assert second.done == 2 * first.done
    session.handle(RunCellCommand(source="x += 1"))
    assert ask().done == first.done
    while (last := ask()).done < last.total:
        pass
    assert np.frombuffer(last.high, "<f8").max() == 6 and session.lab.values.lines is None
    assert len(encode_snapshot(last)) < 64 * 1024
    none = ask("m")
    assert none.lines == none.total == 0 and "meta" in none.note
    session.close()
