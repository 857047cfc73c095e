"""The progress of a run of `tensorlab train`, for a terminal or a log."""

from __future__ import annotations

import math
import time
from typing import TextIO

from engine.protocol import EpochRow, TrainingSnapshot

_REDRAW_S = 0.1


class Progress:
    """Shows training on one line of a terminal; elsewhere with one line per epoch."""

    def __init__(self, stream: TextIO) -> None:
        self.last: TrainingSnapshot | None = None
        self.last_epoch: EpochRow | None = None
        self._stream = stream
        self._redrawn_s = -math.inf
        self._width = 0

    def show(self, snapshot: TrainingSnapshot) -> None:
        """An error that does not end the run is a warning."""
        self.last = snapshot
        if snapshot.error is not None and snapshot.state != "failed":
            self._clear()
            print(f"warning: {snapshot.error.message} {snapshot.error.hint}", file=self._stream)
        for row in snapshot.epoch_rows:
            self.last_epoch = row
            if not self._stream.isatty():
                print(_epoch_words(row, snapshot.epochs), file=self._stream, flush=True)
        if self._stream.isatty() and time.monotonic() - self._redrawn_s >= _REDRAW_S:
            self._redraw(snapshot)

    def say(self, text: str) -> None:
        """Print lines of their own; on a terminal the progress is drawn again below them."""
        if self._width:
            self._stream.write("\r" + " " * self._width + "\r")
            self._redrawn_s = -math.inf
        print(text, file=self._stream, flush=True)

    def end(self) -> None:
        if self._width and self.last is not None:
            self._redraw(self.last)
            print(file=self._stream)
            self._width = 0

    def _clear(self) -> None:
        if self._width:
            self._stream.write("\r" + " " * self._width + "\r")

    def _redraw(self, snapshot: TrainingSnapshot) -> None:
        self._redrawn_s = time.monotonic()
        parts = [
            f"epoch {snapshot.epoch}/{snapshot.epochs}",
            f"step {snapshot.step:,}/{snapshot.total_steps:,}",
            f"{snapshot.steps_per_second:,.0f} steps/s",
        ]
        if self.last_epoch is not None:
            parts.append(f"loss {self.last_epoch.train_loss:.4g}")
            if not math.isnan(self.last_epoch.validation_accuracy):
                parts.append(f"validation accuracy {self.last_epoch.validation_accuracy:.1%}")
        if snapshot.remaining_s is not None and snapshot.state == "running":
            parts.append(f"{snapshot.remaining_s:,.0f} s left")
        line = " · ".join(parts)
        self._stream.write("\r" + line.ljust(self._width))
        self._stream.flush()
        self._width = len(line)


def _epoch_words(row: EpochRow, epochs: int) -> str:
    words = f"epoch {row.epoch}/{epochs}: loss {row.train_loss:.4g}"
    if not math.isnan(row.train_accuracy):
        words += f", accuracy {row.train_accuracy:.1%}"
    if not math.isnan(row.validation_loss):
        words += f"; validation loss {row.validation_loss:.4g}"
    if not math.isnan(row.validation_accuracy):
        words += f", accuracy {row.validation_accuracy:.1%}"
    return words
