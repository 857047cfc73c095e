"""One format: what it is, who reads it, which files it writes, its options, and the Python that
loads it."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QGridLayout, QWidget

from engine.protocol import ExportPlanSnapshot
from engine.protocol.exporting.formats import (
    CASTING,
    DTYPES,
    FORMATS,
    KEEPING,
    OPSETS,
    SHARD_BYTES,
    Format,
    FormatRow,
    row_of,
)
from widgets import make
from widgets.text import format_bytes
from widgets.theme import GRID

_UNSIZED = {
    "py": "some KiB",
    "script": "some KiB, and beside it the data set and the weights",
    "checkpoint": "of weights, and about twice as much of the optimizer",
}


class FormatDetails(QWidget):
    """`changed()`: an option is another one."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._format: Format = "pt"
        self._name = "model"
        self._plan: ExportPlanSnapshot | None = None
        self.title = make.label("", "heading", "export_format_title")
        self.words = make.paragraph("export_format_words")
        self.readers = make.text("export_readers", wrap=True, width="own")
        self.files = make.text("export_files", wrap=True, width="own")
        self.lines = make.text("export_lines", mono=9, width="any")
        self.lines.setAccessibleName("Lines of Python that load it")
        self.copy = make.button(
            "export_copy_lines", "Copy lines", "mdi6.content-copy", self._copy,
            tip="Copy the lines that load the file to the clipboard.",
        )  # fmt: skip
        self.dtype = make.combo(
            "export_dtype", "dtype",
            "Cast the numbers with a fraction on their way into the file. Half precision needs half"
            " the bytes and rounds each number; the result tells by how much.",
            [("as they are", ""), *((name, name) for name in DTYPES)],
        )  # fmt: skip
        self.opset = make.combo(
            "export_opset", "opset",
            "Version of ONNX's operators. An older runtime may need an older one; torch's own"
            " choice suits ONNX Runtime.",
            [("torch's own", 0), *((str(n), n) for n in OPSETS)],
        )  # fmt: skip
        self._dtype_word = make.label("dtype", "muted", of=self.dtype)
        self.no_dtype = make.text("export_no_dtype", wrap=True, width="own")
        self._opset_word = make.label("opset", "muted", of=self.opset)
        self.refusal = make.text("export_refusal", "warning", wrap=True, width="own")
        facts = QGridLayout()
        facts.setHorizontalSpacing(2 * GRID)
        facts.setColumnStretch(1, 1)
        top = Qt.AlignmentFlag.AlignTop
        rows = (
            (make.label("Read by", "muted", tip="Programs that open it."), self.readers),
            (make.label("Writes", "muted", tip="The files, and the bytes of tensors."), self.files),
            (self._dtype_word, self.dtype),
            (self._opset_word, self.opset),
        )
        for number, (word, value) in enumerate(rows):
            facts.addWidget(word, number, 0, top)
            is_choice = value in (self.dtype, self.opset)
            facts.addWidget(value, number, 1, Qt.AlignmentFlag.AlignLeft if is_choice else top)
        facts.addWidget(self.no_dtype, rows.index((self._dtype_word, self.dtype)), 1, top)
        loading = make.label("Load it", "muted", tip="The lines with which your code reads it.")
        make.column(
            self.title, self.words, facts, make.row(loading, make.STRETCH, self.copy),
            self.lines, self.refusal, on=self,
        )  # fmt: skip
        self.dtype.currentIndexChanged.connect(self._on_option)

    @property
    def chosen_dtype(self) -> str:
        return self.dtype.currentData() if self._format in CASTING else ""

    @property
    def chosen_opset(self) -> int:
        return self.opset.currentData() if self._format == "onnx" else 0

    def show_format(self, format: Format, name: str, plan: ExportPlanSnapshot | None) -> None:
        """`name` is the one of the file that will be proposed; without a `plan` sizes are not
        known yet."""
        self._format, self._name, self._plan = format, name, plan
        row = FORMATS[format]
        self.title.setText(row.title)
        self.words.setText(row.words)
        self.readers.setText(row.readers)
        self.lines.setText(self._row().load_lines(name))
        self.dtype.setVisible(format in CASTING)
        make.tell(self.no_dtype, KEEPING.get(format, ""))
        for widget in (self.opset, self._opset_word):
            widget.setVisible(format == "onnx")
        refused = "" if plan is None else plan.refusals.get(format, "")
        make.tell(self.refusal, refused)
        self._show_files()

    def set_options_enabled(self, on: bool) -> None:
        for widget in (self.dtype, self.opset):
            widget.setEnabled(on)

    def _show_files(self) -> None:
        names = ", ".join(self._row().file_names(self._name))
        size = "" if self._plan is None else self._plan.size_bytes(self.chosen_dtype)
        told = _UNSIZED.get(self._format, "")
        if size != "" and self._format not in ("py", "script"):
            told = f"about {format_bytes(size)} {told}".strip()
        self.files.setText(f"{names}: {told}" if told else names)

    def _row(self) -> FormatRow:
        size = 0 if self._plan is None else self._plan.size_bytes(self.chosen_dtype)
        return row_of(self._format, in_parts=size > SHARD_BYTES)

    def _on_option(self) -> None:
        self._show_files()
        self.lines.setText(self._row().load_lines(self._name))
        self.changed.emit()

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.lines.text())
