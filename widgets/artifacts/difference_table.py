"""How two files differ, key by key."""

from __future__ import annotations

import math

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from engine.protocol import ArtifactDifference
from widgets import make
from widgets.table import ReadTable
from widgets.theme import GRID

SHOWN_ROWS = 5_000
_COLUMNS = (
    ("Key", "The name in the files."),
    ("Verdict", "Equal, different, of another shape or dtype, or only in one of the files."),
    ("Largest |a − b|", "The largest absolute difference of two numbers at the same place."),
    ("Relative", "The largest |a − b| / |b|."),
    ("a", "Shape and dtype, or the value, in the file that is open."),
    ("b", "Shape and dtype, or the value, in the file that it is compared with."),
)
_VERDICTS = {"only first": "only in a", "only second": "only in b", "unread": "not compared"}


class DifferenceTable(QWidget):
    """`compare_requested()` and `stop_requested()`: the buttons."""

    compare_requested = Signal()
    stop_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rows: list[ArtifactDifference] = []
        self._words = make.text("difference_words", "muted", wrap=True)
        self.equal = make.check(
            "difference_equal", "Show equal keys", "List the keys that do not differ, too."
        )
        self.equal.toggled.connect(self._fill)
        self.stop = make.button(
            "difference_stop", "Stop", "mdi6.stop", self.stop_requested,
            tip="Stop comparing; nothing is shown of it.",
        )  # fmt: skip
        self.choose = make.button(
            "difference_choose", "Compare with…", "mdi6.compare", self.compare_requested,
            tip="Choose a second file: .pt, .safetensors, .onnx, .pt2, .npz, or an index.",
        )  # fmt: skip
        self.table = ReadTable("difference_table", "How the files differ, key by key", _COLUMNS)
        top = make.row((self._words, 1), self.equal, self.stop, self.choose)
        make.column(top, (self.table, 1), on=self, margins=GRID)
        self.show_nothing()

    def show_nothing(self, words: str = "") -> None:
        """Show no comparison; `words` say why, if there was one."""
        self._rows = []
        self._words.setText(
            words or "Compare this file with another one: which keys differ, and by how much."
        )
        self.stop.hide()
        self.equal.hide()
        self.table.show_rows(())

    def show_progress(self, other: str, done: int, total: int) -> None:
        self._words.setText(f"Comparing with {other}: {done:,} of {total:,} keys …")
        self.stop.show()

    def show_rows(self, other: str, rows: list[ArtifactDifference]) -> None:
        """Show a whole comparison with the file `other`."""
        self._rows = rows
        differing = sum(row.verdict != "equal" for row in rows)
        told = (
            f"{differing:,} of {len(rows):,} keys differ." if differing else "All keys are equal."
        )
        self._words.setText(f"a is this file, b is {other}. {told}")
        self.stop.hide()
        self.equal.setVisible(differing < len(rows))
        self._fill()

    def _fill(self) -> None:
        shown = [row for row in self._rows if row.verdict != "equal" or self.equal.isChecked()]
        self.table.show_rows(_texts(row) for row in shown[:SHOWN_ROWS])
        if len(shown) > SHOWN_ROWS:
            self.table.add_row((f"and {len(shown) - SHOWN_ROWS:,} more", "", "", "", "", ""))


def _texts(row: ArtifactDifference) -> tuple[str, ...]:
    verdict = _VERDICTS.get(row.verdict, row.verdict)
    verdict = f"{verdict}: {row.note}" if row.note else verdict
    numbers = (_number(row.absolute), _number(row.relative))
    return row.key, verdict, *numbers, row.first, row.second


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if math.isfinite(value) else "∞"
