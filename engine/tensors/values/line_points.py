"""The rows of a cut tensor as lines of few points, in which no spike is lost."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from ..readable import readable
from .window import Cut, rows_of

MAX_LINES = 16
MAX_BINS = 1024
"""The most points of a line: about as many as a screen has room for."""
CHUNK = 1 << 18
"""Elements that are read at once; more if one bin is larger."""
_NATIVE = frozenset({torch.float32, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64})
_LARGEST = float(np.finfo(np.float64).max) / 2
"""Beyond it, the difference of two numbers may be infinite."""


class LinePoints:
    """The smallest and the largest finite number of each bin of `bin_columns` neighbours in a row.

    These are `low` and `high` (float64; NaN for a bin without finite numbers), in the columns
    `low_at` and `high_at`. All four have shape (lines, bins). Complex elements count by magnitude.
    `advance` reads one piece at a time.
    """

    def __init__(self, cut: Cut, lines: int) -> None:
        self._cut = cut
        count = 0 if cut.data is None else min(lines, MAX_LINES, cut.rows)
        self.rows, self.columns = cut.rows, cut.columns
        self.bin_columns = max(1, math.ceil(self.columns / MAX_BINS))
        shape = (count, math.ceil(self.columns / self.bin_columns))
        self.low = np.full(shape, np.nan, "<f8")
        self.high = np.full(shape, np.nan, "<f8")
        self.low_at = np.zeros(shape, "<i8")
        self.high_at = np.zeros(shape, "<i8")
        self.not_finite = 0
        self.done, self.total = 0, count * self.columns
        self._pieces = self._all_pieces(count)

    def advance(self) -> bool:
        """Read one more piece; returns False if there is none."""
        piece = next(self._pieces, None)
        if piece is None:
            return False
        row, left, right = piece
        with torch.no_grad(), torch.DisableTorchFunctionSubclass():
            numbers, present = self._read(row, left, right)
            if numbers is None:  # the tensor's memory was released
                self.total = self.done
                return False
            self._note(row, left, numbers, present)
        self.done += right - left
        return True

    def _all_pieces(self, count: int) -> Iterator[tuple[int, int, int]]:
        """(row, first column, column after the last). A row's last bin, if smaller, is a piece."""
        whole = self.columns // self.bin_columns * self.bin_columns
        step = max(1, CHUNK // self.bin_columns) * self.bin_columns
        for row in range(count):
            for left in range(0, whole, step):
                yield row, left, min(left + step, whole)
            if whole < self.columns:
                yield row, whole, self.columns

    def _read(self, row: int, left: int, right: int) -> tuple[Tensor | None, Tensor | None]:
        """The numbers of a piece as (bins, columns), and a mask of those that exist (None: all)."""
        cut = self._cut
        assert cut.data is not None
        width = min(self.bin_columns, right - left)
        x = readable(rows_of(cut.data, cut.shape, row, row + 1, left, right)).dense
        if x is None:
            return None, None
        x = x.abs() if x.is_complex() else x
        x = x.to(torch.uint8) if x.dtype == torch.bool else x
        x = x if x.dtype in _NATIVE else x.double()
        present = cut.present
        if present is not None:
            present = rows_of(present, cut.shape, row, row + 1, left, right).reshape(-1, width)
        return x.reshape(-1, width), present

    def _note(self, row: int, left: int, x: Tensor, present: Tensor | None) -> None:
        counts = present
        if x.is_floating_point():
            there = x.numel() if present is None else int(present.sum())
            finite = torch.isfinite(x)
            counts = finite if present is None else finite & present
            self.not_finite += there - int(counts.sum())
        first = left // self.bin_columns
        at = slice(first, first + len(x))
        starts = left + torch.arange(len(x)) * self.bin_columns
        for extreme, beyond, numbers, places in (
            (torch.min, math.inf, self.low, self.low_at),
            (torch.max, -math.inf, self.high, self.high_at),
        ):
            seen = x if counts is None else torch.where(counts, x.double(), beyond)
            found, where = extreme(seen, dim=1)
            found = found.double().masked_fill(found.isinf(), math.nan)
            numbers[row, at] = found.clamp(-_LARGEST, _LARGEST).numpy()
            places[row, at] = (where + starts).numpy()
