"""Answers about the values of a tensor: windows, statistics, lines, bits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from ..lab import Lab
from ..protocol import (
    BitsCommand,
    BitsSnapshot,
    LinesCommand,
    LinesSnapshot,
    ReadValuesCommand,
    Snapshot,
    StatisticsCommand,
    StatisticsSnapshot,
    ValuesSnapshot,
)
from ..system.errors import LabError
from ..tensors.readable import dtype_name, readable
from ..tensors.texts import texts
from ..tensors.values.bits import bits_of
from ..tensors.values.line_points import LinePoints
from ..tensors.values.state import ReadInPieces
from ..tensors.values.statistics import Statistics
from ..tensors.values.window import Cut, cut_tensor, read_window, why_unreadable, window_picture


def read_values(lab: Lab, command: ReadValuesCommand) -> Iterator[Snapshot]:
    t = _tensor(lab, command)
    cut = cut_tensor(t, command.slice, command.expression)
    shown, step = window_picture(cut) if command.picture else (None, (1, 1))
    yield ValuesSnapshot(
        expression=command.expression,
        slice=command.slice,
        dims=cut.dims,
        dtype=dtype_name(t.dtype),
        device=str(t.device),
        rows=cut.rows,
        columns=cut.columns,
        row_start=command.row_start,
        column_start=command.column_start,
        cells=read_window(
            cut,
            command.row_start,
            command.row_count,
            command.column_start,
            command.column_count,
        ),
        picture=shown,
        picture_step=step,
        version=_version(t),
        edit="" if command.file else _edit(t, cut),
        note=cut.note or why_unreadable(cut),
    )


def statistics(lab: Lab, command: StatisticsCommand) -> Iterator[Snapshot]:
    t = _tensor(lab, command)
    key = (command.file, command.expression, command.slice, _version(t))
    counting = lab.values.statistics
    if command.restart or counting is None or not counting.answers(key, t):
        counting = lab.values.statistics = _start_counting(t, command, key)
    if counting.advance():
        lab.values.statistics = None  # the tensor need not be kept alive any longer
    counted = counting.work
    yield StatisticsSnapshot(
        expression=command.expression,
        slice=command.slice,
        done=counted.done,
        total=counted.total,
        minimum=counted.minimum,
        maximum=counted.maximum,
        mean=counted.mean,
        std=counted.std,
        zeros=counted.zeros,
        nans=counted.nans,
        positive_infs=counted.positive_infs,
        negative_infs=counted.negative_infs,
        magnitudes=counted.magnitudes,
        histogram=counted.histogram(),
        note=counting.note,
    )


def lines(lab: Lab, command: LinesCommand) -> Iterator[Snapshot]:
    t = _tensor(lab, command)
    key = (command.file, command.expression, command.slice, command.lines, _version(t))
    tracing = lab.values.lines
    if command.restart or tracing is None or not tracing.answers(key, t):
        cut = cut_tensor(t, command.slice, command.expression)
        note = why_unreadable(cut)
        traced = LinePoints(replace(cut, data=None) if note else cut, command.lines)
        tracing = lab.values.lines = ReadInPieces(key, t, traced, cut.note or note)
    if tracing.advance():
        lab.values.lines = None
    found = tracing.work
    yield LinesSnapshot(
        expression=command.expression,
        slice=command.slice,
        rows=found.rows,
        columns=found.columns,
        lines=len(found.low),
        bin_columns=found.bin_columns,
        low=found.low.tobytes(),
        high=found.high.tobytes(),
        low_at=found.low_at.tobytes(),
        high_at=found.high_at.tobytes(),
        done=found.done,
        total=found.total,
        not_finite=found.not_finite,
        note=tracing.note,
    )


def bits(lab: Lab, command: BitsCommand) -> Iterator[Snapshot]:
    t = _tensor(lab, command)
    cut = cut_tensor(t, ", ".join(map(str, command.index)), command.expression)
    if cut.shape:
        raise LabError(
            f"`{command.expression}` has {len(cut.dims)} dimensions: {len(command.index)} indices"
            " do not name one element."
        )
    known = None if cut.data is None else readable(cut.data)
    there = cut.present is None or bool(cut.present)
    if known is None or known.dense is None or not there:
        note = cut.note if known is None else known.note or "a ragged tensor has no element here"
        yield BitsSnapshot(
            expression=command.expression,
            index=command.index,
            dtype=dtype_name(t.dtype),
            text="",
            note=note,
        )
        return
    stored, note = known.dense, ""
    if t.is_quantized:
        stored, note = _stored(t, command.index)
    yield BitsSnapshot(
        expression=command.expression,
        index=command.index,
        dtype=dtype_name(t.dtype),
        text=texts(known.dense)[0],
        parts=bits_of(stored),
        note=note,
    )


def _tensor(
    lab: Lab, command: ReadValuesCommand | StatisticsCommand | LinesCommand | BitsCommand
) -> Tensor:
    """The tensor of the console, or of a file. Raises LabError."""
    if command.file:
        return lab.artifacts.tensor(command.file, command.expression)
    return lab.console.namespace.tensor(command.expression)


def _start_counting(
    t: Tensor, command: StatisticsCommand, key: tuple[object, ...]
) -> ReadInPieces[Statistics]:
    cut = cut_tensor(t, command.slice, command.expression)
    note = why_unreadable(cut)
    data = torch.empty(0) if cut.data is None or note else cut.data
    if cut.present is not None:
        data = data[cut.present]
    counted = Statistics(data)
    known = readable(t) if t.layout != torch.strided and not t.is_nested else None
    stored = known.dense if known is not None and known.partial else None
    if stored is not None and data.numel() == stored.numel():
        counted.add_zeros(t.numel() - data.numel())
    return ReadInPieces(key, t, counted, note)


def _stored(t: Tensor, index: tuple[int, ...]) -> tuple[Tensor, str]:
    """The integer that a quantised tensor stores, and a text that says how to compute the
    element."""
    if t.qscheme() == torch.per_tensor_affine:
        scale, zero = t.q_scale(), t.q_zero_point()
        stored = t.detach()[index].int_repr()
    else:
        channel = index[t.q_per_channel_axis()]
        scale = t.q_per_channel_scales()[channel].item()
        zero = t.q_per_channel_zero_points()[channel].item()
        stored = t.detach().int_repr()[index]
    stored = stored.cpu()
    return stored, f"(stored {stored.item()} - zero point {zero:g}) · scale {scale:.6g}"


def _version(t: Tensor) -> int | None:
    try:
        return t._version
    except RuntimeError:  # a tensor made in inference mode has no version
        return None


def _edit(t: Tensor, cut: Cut) -> Literal["", "assign", "no_grad"]:
    if (
        cut.data is None
        or cut.present is not None
        or t.layout != torch.strided
        or t.is_quantized
        or why_unreadable(cut)
    ):
        return ""
    # While grad mode is on, torch refuses writes to a leaf that requires grad, and to its views.
    base = t._base if t._is_view() else t
    return "no_grad" if base is not None and base.is_leaf and base.requires_grad else "assign"
