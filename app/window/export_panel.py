"""What an export wrote: path, size, SHA-256 and how far it is from the live model."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QEvent, QObject, Qt, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication, QKeyEvent
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from engine.protocol import ExportSnapshot
from widgets.icons import set_icon
from widgets.text import format_bytes, format_number
from widgets.theme import GRID

_WIDTH = 640
_LOAD = {
    "pt": 'model.load_state_dict(torch.load("{name}", weights_only=True))',
    "safetensors": 'model.load_state_dict(safetensors.torch.load_file("{name}"))',
    "py": "from {stem} import Model",
}


class ExportPanel(QFrame):
    """A card over the window, at the bottom right, until it is closed (Esc)."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._area = parent
        self.setObjectName("export_panel")
        self.setProperty("role", "card")
        self.setFixedWidth(_WIDTH)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._shown: ExportSnapshot | None = None
        self._title = QLabel()
        self._title.setObjectName("export_title")
        self._title.setProperty("role", "heading")
        close = QToolButton(autoRaise=True)
        close.setObjectName("export_close")
        close.setAccessibleName("Close the export's result")
        close.setToolTip("Close (Esc).")
        set_icon(close, "mdi6.close")
        close.clicked.connect(self.hide)
        head = QHBoxLayout()
        head.addWidget(self._title, 1)
        head.addWidget(close)
        self._grid = QGridLayout()
        self._grid.setColumnStretch(1, 1)
        self._grid.setHorizontalSpacing(2 * GRID)
        self._values: dict[str, QLabel] = {}
        self._row("path", "Path", "The file that was written.", copy=True)
        self._row("size", "Size", "Its size in bytes.")
        self._row("sha256", "SHA-256", "Its checksum: equal files have equal ones.", copy=True)
        self._row("error", "Max error", "Largest difference between live model and the file.")
        self._row("keys", "Keys", "The names in the state_dict, as the Python code has them.")
        self._row("load", "Load it", "How a script of yours reads it.", copy=True)
        self._folder = QPushButton("Open folder")
        self._folder.setObjectName("export_open_folder")
        self._folder.setToolTip("Show the file in the system's file manager.")
        self._folder.clicked.connect(self._open_folder)
        foot = QHBoxLayout()
        foot.addStretch(1)
        foot.addWidget(self._folder)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(2 * GRID, GRID, GRID, 2 * GRID)
        layout.setSpacing(GRID)
        layout.addLayout(head)
        layout.addLayout(self._grid)
        layout.addLayout(foot)
        parent.installEventFilter(self)
        self.hide()

    def show_export(self, snapshot: ExportSnapshot) -> None:
        path = Path(snapshot.path)
        self._shown = snapshot
        self._title.setText(f"Exported {path.name}, loaded back and compared")
        exact = "0: bit for bit the same"
        error = exact if snapshot.max_error == 0.0 else format_number(snapshot.max_error)
        few = ", ".join(snapshot.keys[:4])
        load = _LOAD.get(snapshot.format, "").format(name=path.name, stem=path.stem)
        texts = {
            "path": snapshot.path,
            "size": f"{format_bytes(snapshot.size_bytes)} ({snapshot.size_bytes:,} bytes)",
            "sha256": snapshot.sha256,
            "error": error,
            "keys": f"{len(snapshot.keys)}: {few}{', …' if len(snapshot.keys) > 4 else ''}",
            "load": load,
        }
        for key, text in texts.items():
            self._values[key].setText(text)
            self._values[key].setToolTip("\n".join(snapshot.keys) if key == "keys" else text)
        self.adjustSize()
        self._place()
        self.show()
        self.raise_()
        self.setFocus()

    def text(self, key: str) -> str:
        """What is shown of `path`, `size`, `sha256`, `error`, `keys` or `load`."""
        return self._values[key].text()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize:
            self._place()
        return super().eventFilter(watched, event)

    def _place(self) -> None:
        area = self._area.rect()
        self.move(area.width() - self.width() - 3 * GRID, area.height() - self.height() - 6 * GRID)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.hide()
        else:
            super().keyPressEvent(event)

    def _row(self, key: str, title: str, tip: str, copy: bool = False) -> None:
        row = self._grid.rowCount()
        word = QLabel(title)
        word.setProperty("role", "muted")
        word.setToolTip(tip)
        value = QLabel()
        value.setObjectName(f"export_{key}")
        value.setTextFormat(Qt.TextFormat.PlainText)
        value.setWordWrap(True)
        value.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._values[key] = value
        self._grid.addWidget(word, row, 0, Qt.AlignmentFlag.AlignTop)
        self._grid.addWidget(value, row, 1)
        if copy:
            button = QToolButton(autoRaise=True)
            button.setObjectName(f"export_copy_{key}")
            button.setAccessibleName(f"Copy {title}")
            button.setToolTip(f"Copy {title} to the clipboard.")
            set_icon(button, "mdi6.content-copy")
            button.clicked.connect(lambda: QGuiApplication.clipboard().setText(value.text()))
            self._grid.addWidget(button, row, 2, Qt.AlignmentFlag.AlignTop)

    def _open_folder(self) -> None:
        if self._shown is not None:
            folder = str(Path(self._shown.path).parent)
            QDesktopServices.openUrl(QUrl.fromLocalFile(folder))
