"""Sequences of different lengths in one tensor."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ..errors import LabError


def padded(sequences: Sequence[Tensor], on_the_left: bool, value: float) -> tuple[Tensor, Tensor]:
    """Sequences (L, ...) in one tensor (N, longest, ...), with `value` behind them, or before them
    if `on_the_left`, and their lengths, int64 (N,). Raises LabError where they differ in more than
    their length."""
    shapes = {tuple(sequence.shape[1:]) for sequence in sequences if sequence.ndim}
    if len(shapes) != 1 or any(not sequence.ndim for sequence in sequences):
        told = sorted({tuple(sequence.shape) for sequence in sequences})[:3]
        raise LabError(
            "Only dim 0 of a sample may have different sizes to be padded: there are shapes"
            f" {', '.join(map(str, told))}.",
            hint="Give samples of shape (length, ...).",
        )
    side = "left" if on_the_left else "right"
    lengths = [len(sequence) for sequence in sequences]
    whole = pad_sequence(list(sequences), True, value, side)
    return whole, whole.new_tensor(lengths).long()
