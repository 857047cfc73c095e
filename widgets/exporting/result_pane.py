"""The result of an export: whether it was verified, with the figures, and what was written."""

from __future__ import annotations

from pathlib import PurePath

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QGridLayout, QLabel

from engine.protocol import ExportSnapshot
from widgets import make
from widgets.text import format_bytes, format_number
from widgets.theme import GRID

_ROWS = (
    ("error", "Largest error", "The largest difference between the live model and what a fresh"
     " process has read: absolute, and relative to the number itself."),
    ("batches", "Batch sizes", "The numbers of samples with which the program was run."),
    ("time", "One call", "The time of one call of the program and of the live model."),
    ("size", "Size", "The bytes of all files."),
    ("path", "Path", "What was written."),
    ("sha256", "SHA-256", "The file's checksum: equal files have equal checksums."),
    ("keys", "Keys", "The names of the tensors in the state_dict."),
    ("notes", "Note", "What else there is to know."),
)  # fmt: skip


class ResultPane(QFrame):
    """`folder_requested(path)`: show it in the system's file manager."""

    folder_requested = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("export_result")
        self.setProperty("role", "card")
        self._path = ""
        self._texts: dict[str, str] = {}
        self.verdict = make.text("export_verdict", wrap=True, width="own")
        grid = QGridLayout()
        grid.setColumnStretch(1, 1)
        grid.setHorizontalSpacing(2 * GRID)
        self._rows: dict[str, tuple[QLabel, QLabel]] = {}
        for number, (key, title, tip) in enumerate(_ROWS):
            word = make.label(title, "muted", tip=tip)
            value = make.text(f"export_{key}", wrap=True, width="own")
            grid.addWidget(word, number, 0, Qt.AlignmentFlag.AlignTop)
            grid.addWidget(value, number, 1, Qt.AlignmentFlag.AlignTop)
            self._rows[key] = word, value
        folder = make.button(
            "export_open_folder", "Show in folder", "mdi6.folder-open-outline",
            lambda: self.folder_requested.emit(self._path),
            tip="Show the file in the system's file manager.",
        )  # fmt: skip
        path = make.button(
            "export_copy_path", "Copy path", "mdi6.content-copy",
            lambda: QGuiApplication.clipboard().setText(self._path),
            tip="Copy the path of the file to the clipboard.",
        )  # fmt: skip
        make.column(
            self.verdict, grid, make.row(folder, path, make.STRETCH), on=self, margins=2 * GRID
        )

    def text(self, key: str) -> str:
        """The text of the row `error`, `batches`, `time`, `size`, `path`, `sha256`, `keys` or
        `notes`."""
        return self._texts[key]

    def show_export(self, done: ExportSnapshot) -> None:
        self._path = done.path
        name = PurePath(done.path).name
        if done.verified:
            verdict, role = f"{name} is verified: a fresh process read it and compared.", "success"
        elif done.differs:
            verdict, role = f"{name} differs from the model in {done.differs}.", "error"
        else:
            why = done.unverified or "It was not compared."
            verdict, role = f"{name} is written, not verified. {why}", "warning"
        make.set_role(self.verdict, role)
        self.verdict.setText(verdict)
        few = ", ".join(done.keys[:4])
        half = len(done.sha256) // 2  # no line breaks inside a word
        self._texts = {
            "error": _error(done),
            "batches": ", ".join(map(str, done.batch_sizes)),
            "time": f"{done.export_ms:.3g} ms; the model {done.model_ms:.3g} ms"
            if done.batch_sizes
            else "",
            "size": f"{format_bytes(done.size_bytes)} ({done.size_bytes:,} bytes)",
            "path": done.path,
            "sha256": done.sha256,
            "keys": f"{len(done.keys)}: {few}{', …' if len(done.keys) > 4 else ''}",
            "notes": " ".join((*done.notes, *filter(None, [done.renaming]))),
        }
        for key, text in self._texts.items():
            word, value = self._rows[key]
            value.setText(f"{text[:half]}\n{text[half:]}" if key == "sha256" else text)
            value.setToolTip("\n".join(done.keys) if key == "keys" else text)
            word.setVisible(bool(text))
            value.setVisible(bool(text))


def _error(done: ExportSnapshot) -> str:
    if done.max_abs_error == 0.0:
        return "0: bit for bit the same" if done.verified else "not known"
    absolute, relative = (format_number(e) for e in (done.max_abs_error, done.max_rel_error))
    return f"{absolute}, relative {relative}"
