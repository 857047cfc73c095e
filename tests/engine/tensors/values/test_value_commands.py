"""Windows, bits, statistics and lines as commands ask for them."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from engine.lab import Lab
from engine.protocol import (
    BitsCommand,
    Command,
    LinesCommand,
    ReadValuesCommand,
    StatisticsCommand,
)
from engine.server.session import handler_of
from engine.system.errors import LabError
from engine.tensors.values import state


@pytest.fixture
def lab() -> Lab:
    return Lab(emit=lambda snapshot: None)


def ask(lab: Lab, command: Command) -> list[Any]:
    return [s for s in handler_of(type(command))(lab, command) if s is not None]


def test_a_window_has_the_rows_and_columns_that_are_asked_for(lab: Lab) -> None:
    t = lab.console.namespace.variables["t"] = torch.arange(40.0).view(2, 4, 5)
    command = ReadValuesCommand(
        expression="t", slice="1, 1:", row_start=1, row_count=2, column_start=3, column_count=9
    )
    (told,) = ask(lab, command)
    expected = t[1, 1:][1:3, 3:]
    assert [[float(text) for text in row] for row in told.cells] == expected.tolist()
    assert (told.rows, told.columns, told.row_start, told.column_start) == (3, 5, 1, 3)
    assert (told.expression, told.slice, told.device, told.dtype) == (
        "t", "1, 1:", "cpu", "float32",
    )  # fmt: skip
    assert told.picture is None and told.picture_step == (1, 1) and told.version == 0
    (told,) = ask(lab, ReadValuesCommand(expression="t", picture=True))
    assert told.picture is not None and told.picture.source_shape == (2, 4, 5)
    t.add_(1)
    assert ask(lab, command)[0].version == 1


@pytest.mark.parametrize(
    ("first", "count"), [(0, 2), (1, 3), (3, 2), (4, 4), (7, 9), (0, 99), (2, 0)]
)
def test_rows_of_several_matrices_are_counted_through(lab: Lab, first: int, count: int) -> None:
    """Rows within one matrix, and over the end of one into the next."""
    t = lab.console.namespace.variables["t"] = torch.arange(40.0).view(2, 4, 5)
    command = ReadValuesCommand(
        expression="t", row_start=first, row_count=count, column_start=1, column_count=3
    )
    (told,) = ask(lab, command)
    expected = t.view(8, 5)[first : first + count, 1:4].tolist()
    assert [[float(text) for text in row] for row in told.cells] == expected
    assert (told.rows, told.columns) == (8, 5)


@pytest.mark.filterwarnings("ignore:.*(quantize_per_tensor|prototype).*:UserWarning")
def test_how_an_element_may_be_written(lab: Lab) -> None:
    w = torch.ones(3, 2, requires_grad=True)
    lab.console.namespace.variables.update(
        plain=torch.ones(2), w=w, part=w[1:], result=w * 2, view=(w * 2)[0],
        meta=torch.ones(2, device="meta"), sparse=torch.eye(2).to_sparse(),
        quantised=torch.quantize_per_tensor(torch.ones(2), 0.5, 0, torch.qint8),
        ragged=torch.nested.nested_tensor([torch.ones(1), torch.ones(2)]),
    )  # fmt: skip
    for name, edit in (
        ("plain", "assign"), ("w", "no_grad"), ("part", "no_grad"), ("result", "assign"),
        ("view", "assign"), ("meta", ""), ("sparse", ""), ("quantised", ""),
        ("ragged", ""),
    ):  # fmt: skip
        assert ask(lab, ReadValuesCommand(expression=name))[0].edit == edit, name


def test_bits_are_of_one_element(lab: Lab) -> None:
    lab.console.namespace.variables["t"] = torch.tensor([[1.0, -2.5]])
    (told,) = ask(lab, BitsCommand(expression="t", index=(0, 1)))
    assert (told.expression, told.index, told.text, told.dtype, told.note) == (
        "t", (0, 1), "-2.5", "float32", "",
    )  # fmt: skip
    with pytest.raises(LabError, match="`t` has 2 dimensions: 1 indices do not name one element"):
        ask(lab, BitsCommand(expression="t", index=(0,)))
    lab.console.namespace.variables["m"] = torch.ones(1, device="meta")
    (told,) = ask(lab, BitsCommand(expression="m", index=(0,)))
    assert told.text == "" and told.parts == () and "meta device" in told.note


def test_a_count_begins_anew_where_it_is_of_other_numbers(lab: Lab, monkeypatch) -> None:
    monkeypatch.setattr(state, "MOMENT_S", 60.0)  # in one answer, however busy the machine is
    t = lab.console.namespace.variables["t"] = torch.arange(6.0).view(2, 3)
    for command in (StatisticsCommand(expression="t"), LinesCommand(expression="t", lines=2)):
        (told,) = ask(lab, command)
        assert (told.done, told.total, told.slice) == (6, 6, "")
    assert lab.values.statistics is None is lab.values.lines
    (told,) = ask(lab, StatisticsCommand(expression="t", slice="0"))
    assert (told.total, told.maximum, told.mean, told.zeros) == (3, 2.0, 1.0, 1)
    t[0, 0] = torch.nan
    (told,) = ask(lab, StatisticsCommand(expression="t"))
    assert (told.nans, told.minimum, told.positive_infs, told.negative_infs) == (1, 1.0, 0, 0)
    (told,) = ask(lab, LinesCommand(expression="t", lines=1))
    assert (told.rows, told.columns, told.lines, told.not_finite) == (2, 3, 1, 1)
    assert told.bin_columns == 1 and len(told.low) == len(told.high) == 3 * 8


def test_what_is_no_tensor_is_refused(lab: Lab) -> None:
    lab.console.namespace.variables["n"] = 3
    for command in (
        ReadValuesCommand(expression="n"),
        StatisticsCommand(expression="n"),
        LinesCommand(expression="n", lines=1),
        BitsCommand(expression="n", index=()),
    ):
        with pytest.raises(LabError, match="`n` is"):
            ask(lab, command)


@pytest.mark.filterwarnings("ignore:.*(quantize_per|Sparse CSR|prototype).*:UserWarning")
def test_how_the_numbers_lie_in_memory_is_noted(lab: Lab) -> None:
    z, ones = torch.tensor([1 + 2j, 3j]), torch.ones(2, 2)
    whole = torch.quantize_per_tensor(ones, 0.5, 3, torch.qint8)
    scales, zeros = torch.tensor([0.5, 0.1]), torch.tensor([0, 1])
    channels = torch.quantize_per_channel(ones, scales, zeros, 1, torch.qint8)
    notes = {
        "plain": (ones, ""),
        "conjugate": (z.conj(), "a conjugate view: the imaginary parts in memory have the other"),
        "negative": (z.conj().imag, "a negative view: the numbers in memory have the other sign"),
        "coo": (ones.to_sparse(), "layout sparse_coo: zeros are not stored"),
        "csr": (ones.to_sparse_csr(), "layout sparse_csr: zeros are not stored"),
        "whole": (whole, "quantised: (stored - 3) · 0.5"),
        "channels": (channels, "quantised per channel along dim 1"),
        "meta": (torch.ones(2, device="meta"), "on the meta device: it has a shape but no data"),
        "ragged": (
            torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
            "nested: 2 tensors of their own shapes; empty cells do not exist",
        ),
    }  # fmt: skip
    for name, (t, words) in notes.items():
        lab.console.namespace.variables["t"] = t
        (told,) = ask(lab, ReadValuesCommand(expression="t"))
        assert told.note.startswith(words) and bool(told.note) == bool(words), name
    assert torch.equal(z.conj().imag.resolve_neg(), torch.tensor([-2.0, -3.0]))
    lab.console.namespace.variables["t"] = z.conj().imag
    (told,) = ask(lab, ReadValuesCommand(expression="t", row_count=1, column_count=2))
    assert told.cells == (("-2", "-3"),)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("", ":"), ("1", "1"), ("-1", "-1"), ("1:", "1:"), (":2", ":2"), ("::2", "::2"),
        ("-2:", "-2:"), (":-1", ":-1"), ("1:2, 0", "1:2, 0"), ("..., 1", "..., 1"),
        ("0, ..., ::3", "0, ..., ::3"), ("5:", "5:"), ("2:1", "2:1"), ("0, 1, 2", "0, 1, 2"),
        (":, 1:9", ":, 1:9"), ("-9:2", "-9:2"),
    ],
)  # fmt: skip
def test_a_slice_is_read_as_python_reads_it(lab: Lab, text: str, plain: str) -> None:
    t = lab.console.namespace.variables["t"] = torch.arange(24.0).view(3, 2, 4)
    (told,) = ask(lab, ReadValuesCommand(expression="t", slice=text, row_count=99, column_count=99))
    expected = eval(f"t[{plain}]", {"t": t})
    assert [float(x) for row in told.cells for x in row] == expected.flatten().tolist()
    if expected.ndim and expected.numel():
        assert (told.rows, told.columns) == (expected[..., 0].numel(), expected.shape[-1])
    for cut, size in zip(told.dims, t.shape, strict=True):
        assert cut.size == size
    assert [cut.count for cut in told.dims if not cut.fixed] == list(expected.shape)


@pytest.mark.parametrize(
    ("text", "words", "hint"),
    [
        ("0, 0, 0, 0", "4 indices, but `t` has 3 dimensions.", "Its shape is (3, 2, 4)."),
        ("3", "Index 3 is out of range: dim 0 has 3 elements.", "Write -3 to 2."),
        ("-4", "Index -4 is out of range: dim 0 has 3 elements.", "Write -3 to 2."),
        (":0, 0, 4", "Index 4 is out of range: dim 2 has 4 elements.", "Write -4 to 3."),
        ("x > 0", "`x > 0` cannot be used in a slice here.", "Write an integer, a slice (2:8"),
        ("None", "`None` cannot be used in a slice here.", "Write an integer, a slice (2:8"),
        ("1.5:", "`1.5` cannot be used in a slice here.", "Write an integer, a slice (2:8"),
        ("True", "`True` cannot be used in a slice here.", "Write an integer, a slice (2:8"),
        ("0, ::-1", "The step of a slice must be positive", "torch.flip(x, (1,)) reverses a dim"),
        ("::0", "The step of a slice must be positive", "torch.flip(x, (0,)) reverses a dim"),
        ("..., ...", "Only one ... can stand for the dimensions left out.", "Write an integer"),
        ("1 2", "`1 2` is not a slice.", "Write an integer, a slice (2:8, ::2) or ..."),
        ("0](1", "`0](1` is not a slice.", "Write an integer, a slice (2:8, ::2) or ..."),
    ],
)
def test_a_slice_that_does_not_fit_is_refused_with_a_way(
    lab: Lab, text: str, words: str, hint: str
) -> None:
    lab.console.namespace.variables["t"] = torch.arange(24.0).view(3, 2, 4)
    with pytest.raises(LabError) as refused:
        ask(lab, ReadValuesCommand(expression="t", slice=text))
    assert str(refused.value).startswith(words) and refused.value.hint.startswith(hint)
