"""The numbers of a live plot as CSV: copied, or saved to a file."""

from __future__ import annotations

import io
from collections.abc import Sequence

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog, QMenu, QMessageBox, QWidget

from widgets.training.plots.series import Series, Track, write_csv


class PlotNumbers:
    """The points of a plot: one row a step (see `write_csv`)."""

    def __init__(self, title: str, series: Sequence[Series], tracks: dict[str, Track]) -> None:
        self._title, self._series, self._tracks = title, series, tracks

    def add_actions(self, menu: QMenu, plot: QWidget) -> None:
        menu.addAction("Copy numbers", lambda: QGuiApplication.clipboard().setText(self.csv()))
        menu.addAction("Save numbers as CSV…", lambda: self._ask_and_save(plot))

    def csv(self) -> str:
        file = io.StringIO()
        write_csv(file, self._series, self._tracks)
        return file.getvalue()

    def _ask_and_save(self, plot: QWidget) -> None:
        name = f"{self._title.lower().replace(' ', '_')}.csv"
        path, _ = QFileDialog.getSaveFileName(plot, "Save numbers", name, "CSV (*.csv)")
        if not path:
            return
        try:
            with open(path, "w", encoding="utf-8", newline="") as file:
                write_csv(file, self._series, self._tracks)
        except OSError as error:
            QMessageBox.warning(plot, "The numbers were not saved", str(error))
