"""A tensor's statistics in one line, with the progress of counting a large tensor."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QProgressBar, QWidget

from engine.protocol import StatisticsSnapshot
from widgets import make
from widgets.text import format_number
from widgets.theme import GRID
from widgets.values.value_card import BAD_TIP

_PROGRESS_STEPS = 1000


class StatisticsLine(QWidget):
    """Shows a StatisticsSnapshot. `more_wanted()` asks to go on counting an unfinished tensor. The
    button stops and restarts these requests."""

    more_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("statistics_line")
        self._stopped = False
        self._text = make.text("statistics_text", wrap=True, width="own")
        self._text.setAccessibleName("Statistics")
        self._text.setToolTip(
            "Over the finite elements of the slice, in float64; std is the sample standard"
            " deviation (divides by N - 1), as torch.std. NaN and infinities are counted"
            " separately."
        )
        self._bad = make.label("", "error", "statistics_bad", tip=BAD_TIP)
        self._progress = make.named(
            QProgressBar(),
            "statistics_progress",
            "Elements counted",
            "How much of the tensor has been counted.",
        )
        self._progress.setRange(0, _PROGRESS_STEPS)
        self._progress.setFixedWidth(12 * GRID)
        self._button = make.tool_button("statistics_stop", slot=self._toggle, framed=True)
        make.row((self._text, 1), self._bad, self._progress, self._button, on=self)
        self.show_statistics(None)

    def start(self) -> None:
        """Allow counting again, for another tensor or changed numbers."""
        self._stopped = False

    def show_statistics(self, found: StatisticsSnapshot | None) -> None:
        """Show statistics, and the progress of counting; None shows nothing."""
        counting = found is not None and found.done < found.total
        self._progress.setVisible(counting)
        self._button.setVisible(counting)
        self._name_button()
        self._text.setText("" if found is None else statistics_text(found))
        make.tell(self._bad, "" if found is None else bad_text(found))
        if found is not None and counting:
            self._progress.setValue(_PROGRESS_STEPS * found.done // found.total)
            if not self._stopped:
                self.more_wanted.emit()

    def _toggle(self) -> None:
        self._stopped = not self._stopped
        self._name_button()
        if not self._stopped:
            self.more_wanted.emit()

    def _name_button(self) -> None:
        self._button.setText("Go on" if self._stopped else "Stop")
        self._button.setAccessibleName("Go on counting" if self._stopped else "Stop counting")
        self._button.setToolTip(
            "Count the rest of the elements."
            if self._stopped
            else "Stop counting. The statistics so far stay visible."
        )


def statistics_text(found: StatisticsSnapshot) -> str:
    """As text: `24 elements · min -2.1 · max 2.4 · mean 0.02 · std 1.01 · zeros 0`; with `finite
    only` before the numbers if others were left out."""
    if not found.total:
        return found.note or "0 elements"
    counted = f"{found.total:,} element" + ("" if found.total == 1 else "s")
    if found.done < found.total:
        counted = f"first {found.done:,} of {counted}"
    if bad_text(found):
        counted += " · finite only"
    bars = "|x| " if found.magnitudes else ""
    numbers = (
        (f"{bars}min", found.minimum),
        (f"{bars}max", found.maximum),
        (f"{bars}mean", found.mean),
        (f"{bars}std", found.std),
        ("zeros", found.zeros),
    )
    return " · ".join([counted, *(f"{name} {format_number(value)}" for name, value in numbers)])


def bad_text(found: StatisticsSnapshot) -> str:
    """The numbers of NaN and infinities (`3 NaN · 1 +inf`); empty if all elements are finite."""
    counts = (
        (found.nans, "NaN"),
        (found.positive_infs, "+inf"),
        (found.negative_infs, "-inf"),
    )
    return " · ".join(f"{count:,} {what}" for count, what in counts if count)
