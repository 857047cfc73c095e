"""A spike of the loss: a loss that is many times the median of the losses before it."""

from __future__ import annotations

from collections import deque
from statistics import median

LOSSES = 20
"""A loss is compared with the median of at most this many losses before it, once there are half as
many."""


class LossSpikes:
    """Compares each loss with those before it. A spike is told when it begins, not in each step."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._losses: deque[float] = deque(maxlen=LOSSES)
        self._is_high = False

    def look(self, loss: float) -> str:
        """In words, how much this loss is above the usual; "" if it is not a spike that begins."""
        usual = median(self._losses) if len(self._losses) >= LOSSES // 2 else 0.0
        among = len(self._losses)
        self._losses.append(loss)
        was_high, self._is_high = self._is_high, usual > 0 and loss > self._limit * usual
        if was_high or not self._is_high:
            return ""
        return (
            f"The loss is {loss:.4g}, {loss / usual:.3g} times the median {usual:.4g} of the"
            f" {among} before it."
        )
