"""Help > Guide: reads the guides, and remembers the size of their window."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from app.workbench import Workbench

if TYPE_CHECKING:
    from app.window.guide_window import GuideWindow

FOLDER = Path(__file__).resolve().parents[2] / "assets" / "guide"
NAMES = ("learner.md", "teacher.md", "practitioner.md", "command-line.md")
"""The guides, in the order of the contents."""
_GEOMETRY = "guide"


class GuidePresenter(QObject):
    """The guides are read, and their window is made, when they are first opened."""

    def __init__(self, bench: Workbench, parent: QObject) -> None:
        super().__init__(parent)
        self._bench = bench

    def open(self) -> None:
        self.window.open_beside()

    @cached_property
    def window(self) -> GuideWindow:
        from app.window.guide_window import GuideWindow
        from widgets.guide.view import Guide

        guides = [Guide(name, (FOLDER / name).read_text(encoding="utf-8")) for name in NAMES]
        bench = self._bench
        window = GuideWindow(guides, bench.settings.bytes(_GEOMETRY), bench.window)
        window.finished.connect(self._remember)
        bench.window.closing.connect(self._remember)
        return window

    def _remember(self) -> None:
        self._bench.settings.set_bytes(_GEOMETRY, self.window.saveGeometry())
