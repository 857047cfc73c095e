"""The result of an export: path, size, SHA-256, and the difference to the live model."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from app.window.card import Card
from engine.protocol import ExportSnapshot
from widgets import make
from widgets.text import format_bytes, format_number
from widgets.theme import GRID

_LOAD = {
    "pt": 'model.load_state_dict(torch.load("{name}", weights_only=True))',
    "safetensors": 'model.load_state_dict(safetensors.torch.load_file("{name}"))',
    "py": "from {stem} import Model",
    "script": "python {name} --out weights.pt",
}


class ExportPanel(Card):
    """Shown after each export."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__("export", "Close the export's result", parent)
        self._shown: ExportSnapshot | None = None
        self._grid = QGridLayout()
        self._grid.setColumnStretch(1, 1)
        self._grid.setHorizontalSpacing(2 * GRID)
        self._values: dict[str, QLabel] = {}
        self._texts: dict[str, str] = {}
        self._row("path", "Path", "The file that was written.", copy=True)
        self._row("size", "Size", "The file's size in bytes.")
        self._row(
            "sha256", "SHA-256", "The file's checksum: equal files have equal checksums.", copy=True
        )
        self._row(
            "error", "Max error", "The largest difference between the live model and the file."
        )
        self._row("keys", "Keys", "The names of the tensors in the state_dict.")
        self._row(
            "load", "Load it", "The lines with which your own script loads the file.", copy=True
        )
        folder = make.button("export_open_folder", "Open folder", slot=self._open_folder)
        folder.setToolTip("Show the file in the system's file manager.")
        foot = make.row(make.STRETCH, folder)
        make.column(self.head, self._grid, foot, on=self, margins=(2 * GRID, GRID, GRID, 2 * GRID))

    def show_export(self, snapshot: ExportSnapshot) -> None:
        path = Path(snapshot.path)
        self._shown = snapshot
        self.title.setText(f"Exported {path.name}, loaded back and compared")
        exact = "0: bit for bit the same"
        error = exact if snapshot.max_abs_error == 0.0 else format_number(snapshot.max_abs_error)
        few = ", ".join(snapshot.keys[:4])
        load = _LOAD.get(snapshot.format, "").format(name=path.name, stem=path.stem)
        self._texts = {
            "path": snapshot.path,
            "size": f"{format_bytes(snapshot.size_bytes)} ({snapshot.size_bytes:,} bytes)",
            "sha256": snapshot.sha256,
            "error": error,
            "keys": f"{len(snapshot.keys)}: {few}{', …' if len(snapshot.keys) > 4 else ''}",
            "load": load,
        }
        for key, text in self._texts.items():
            half = len(text) // 2  # no line breaks inside a word
            self._values[key].setText(f"{text[:half]}\n{text[half:]}" if key == "sha256" else text)
            self._values[key].setToolTip("\n".join(snapshot.keys) if key == "keys" else text)
        self.show_card()

    def text(self, key: str) -> str:
        """The text shown for `path`, `size`, `sha256`, `error`, `keys` or `load`."""
        return self._texts[key]

    def _row(self, key: str, title: str, tip: str, copy: bool = False) -> None:
        row = self._grid.rowCount()
        word = make.label(title, "muted", tip=tip)
        value = make.text(f"export_{key}", wrap=True, width="own")
        self._values[key] = value
        self._grid.addWidget(word, row, 0, Qt.AlignmentFlag.AlignTop)
        self._grid.addWidget(value, row, 1, Qt.AlignmentFlag.AlignTop)
        if copy:
            button = make.tool_button(
                f"export_copy_{key}", "mdi6.content-copy", f"Copy {title} to the clipboard."
            )
            button.setAccessibleName(f"Copy {title}")
            button.clicked.connect(lambda: QGuiApplication.clipboard().setText(self._texts[key]))
            self._grid.addWidget(button, row, 2, Qt.AlignmentFlag.AlignTop)

    def _open_folder(self) -> None:
        if self._shown is not None:
            folder = str(Path(self._shown.path).parent)
            QDesktopServices.openUrl(QUrl.fromLocalFile(folder))
