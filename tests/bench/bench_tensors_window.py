"""Gestures on a large tensor in the window, until the answer is painted, against a small tensor.

The whole program runs offscreen with its engine in the same process, so that a figure is all of it:
command, engine, codec, view, paint. Two baselines: a tensor of 10 elements (ratios `_over_10`),
and one of 10^4, which like the large ones fills the view with cells and must be scrolled
(`_over_page`). All tensors live in one engine; gestures go round them in turns.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import TypeVar

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch is imported

import psutil
from PySide6.QtCore import QPoint, QSettings, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QToolButton, QWidget

from app.application import build
from app.processes.inline_link import InlineLink
from app.settings import Settings
from app.window.dialogs import Dialogs, UnsavedAnswer
from app.window.tensors_page import TensorsPage
from engine.protocol import (
    BitsSnapshot,
    LocationSnapshot,
    Snapshot,
    StatisticsSnapshot,
    StorageSnapshot,
    ValuesSnapshot,
)

S = TypeVar("S", bound=Snapshot)
ROUNDS = 9
TEN, PAGE = "float32 of 10", "float32 of 10^4 (100 x 100)"
SMALL = {TEN: "torch.rand(2, 5)", PAGE: "torch.rand(100, 100)"}
LARGE = {
    "float32 of 10^8 (10^4 x 10^4)": ("torch.rand(10_000, 10_000)", 4e8),
    "float32 of 10^8, transposed": ("torch.rand(10_000, 10_000).T", 4e8),
    "float32 of 10^8 (a vector)": ("torch.rand(100_000_000)", 4e8),
    "int8 of 10^9": ("torch.zeros(1_000_000_000, dtype=torch.int8)", 1e9),
}


class _Dialogs(Dialogs):
    """The cells that were run are no work to keep: nobody is there to answer for them."""

    def unsaved(self, *_args) -> UnsavedAnswer:
        return "discard"


class Desk:
    """The program and a person at its Tensors workspace."""

    def __init__(self, application: QApplication, folder: Path) -> None:
        settings = Settings(QSettings(str(folder / "s.ini"), QSettings.Format.IniFormat))
        self.qt = application
        self.program = build(InlineLink, _Dialogs(native=False), settings, folder / "recovery")
        self.window = self.program.window
        self.window.resize(1440, 900)
        self.window.show()
        self.program.start()
        self.window.show_workspace("tensors")
        page = self.window.page("tensors")
        assert isinstance(page, TensorsPage)
        self.page = page
        self.settle()

    def settle(self) -> None:
        self.program.bench.link.drain()
        self.qt.processEvents()

    def run(self, source: str) -> None:
        """Out of sight of the values, whose statistics would be counted to their end."""
        self.page.tabs.setCurrentWidget(self.page.storage)
        self.page.console.submit(source)
        self.settle()

    def newest(self, kind: type[S]) -> S | None:
        return self.program.bench.store.newest(kind)

    def until(self, answered: Callable[[], bool]) -> None:
        while not answered():
            self.qt.processEvents()
        self.qt.sendPostedEvents()  # paints what was answered: nothing else has its turn before

    def timed_ms(self, gesture: Callable[[], None], kind: type[Snapshot] | None) -> float:
        """From a gesture until an answer of a kind is painted (None: until all is painted)."""
        before = self.newest(kind) if kind is not None else None
        started = perf_counter()
        gesture()
        if kind is not None:
            self.until(lambda: self.newest(kind) is not before)
        else:
            self.qt.processEvents()
        return (perf_counter() - started) * 1e3

    def stop_counting(self, name: str) -> None:
        """As a person may who does not want to wait for the statistics of so many elements."""

        def counted() -> bool:
            newest = self.newest(StatisticsSnapshot)
            return newest is not None and newest.expression == name

        self.until(counted)
        button = self.page.values.findChild(QToolButton, "statistics_stop")
        if button is not None and button.isVisible():
            button.click()
        self.settle()

    def click(self, widget: QWidget, at: QPoint) -> None:
        QTest.mouseClick(widget, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, at)

    def close(self) -> None:
        self.window.close()
        self.qt.processEvents()


def values_gestures(desk: Desk, name: str, turn: int) -> dict[str, float]:
    """ms to open the table, to scroll to its middle or end, and to click a cell."""
    page, table = desk.page, desk.page.values.table
    page.tabs.setCurrentWidget(page.values)
    desk.program.workspaces.tensors.select("nothing")
    desk.settle()
    opened = desk.timed_ms(lambda: desk.program.workspaces.tensors.select(name), ValuesSnapshot)
    while_counting = desk.timed_ms(*_scroll(table, 3))
    desk.stop_counting(name)
    scrolled = desk.timed_ms(*_scroll(table, 1 + turn % 2))
    desk.settle()
    row, rows, column, columns = table.cells_in_sight()
    at = table.cell_rect(row + min(1, rows - 1), column + min(1, columns - 1)).center()
    selected = desk.timed_ms(lambda: desk.click(table.viewport(), at), BitsSnapshot)
    desk.settle()
    return {
        "values_open_ms": opened,
        "values_scroll_while_counting_ms": while_counting,
        "values_scroll_ms": scrolled,
        "values_select_ms": selected,
    }


def _scroll(table, part: int) -> tuple[Callable[[], None], type[Snapshot] | None]:
    """To 1/2, the end or 1/3, along the bar that is longer; whether an answer is to come."""
    bars = (table.verticalScrollBar(), table.horizontalScrollBar())
    bar = max(bars, key=lambda bar: bar.maximum())
    to = {1: bar.maximum() // 2, 2: bar.maximum(), 3: bar.maximum() // 3}[part]
    return lambda: bar.setValue(to), ValuesSnapshot if bar.maximum() else None


def storage_gestures(desk: Desk, name: str, turn: int) -> dict[str, float]:
    """ms to open the strip, to scroll it to its middle or end, and to click a cell."""
    page, strip = desk.page, desk.page.storage.strip
    page.tabs.setCurrentWidget(page.storage)
    desk.program.workspaces.tensors.select("nothing")
    desk.settle()
    opened = desk.timed_ms(lambda: desk.program.workspaces.tensors.select(name), StorageSnapshot)
    desk.settle()
    bar = strip.verticalScrollBar()
    to = bar.maximum() if turn % 2 else bar.maximum() // 2
    kind = StorageSnapshot if bar.maximum() else None
    scrolled = desk.timed_ms(lambda: bar.setValue(to), kind)
    desk.settle()
    cell = strip.cell_at(strip.viewport().rect().center().toPointF())
    cell = 3 if cell is None else cell
    at = strip.cell_rect(cell).center().toPoint()
    selected = desk.timed_ms(lambda: desk.click(strip.viewport(), at), LocationSnapshot)
    desk.settle()
    return {
        "storage_open_ms": opened,
        "storage_scroll_ms": scrolled,
        "storage_select_ms": selected,
    }


def rss_mib() -> float:
    return psutil.Process().memory_info().rss / 2**20


def measure(desk: Desk, names: dict[str, str]) -> list[dict[str, float | str]]:
    """A row for each tensor, with medians, ratios and how much memory its gestures took."""
    times: dict[str, dict[str, list[float]]] = {title: {} for title in names}
    growth_mib = dict.fromkeys(names, 0.0)
    for turn in range(ROUNDS + 1):  # the first round warms up
        for title, name in names.items():
            before_mib = rss_mib()
            found = values_gestures(desk, name, turn) | storage_gestures(desk, name, turn)
            if turn:
                growth_mib[title] += rss_mib() - before_mib
                for gesture, took_ms in found.items():
                    times[title].setdefault(gesture, []).append(took_ms)
    rows: list[dict[str, float | str]] = []
    for title, found in times.items():
        row: dict[str, float | str] = {"bench": "tensors_window", "tensor": title}
        for gesture, took in found.items():
            row[gesture] = statistics.median(took)
        bases = () if title in SMALL else ((TEN, "over_10"), (PAGE, "over_page"))
        for base, suffix in bases:
            for gesture, took in found.items():
                if base == TEN and "scroll" in gesture:
                    continue  # ten elements are all in sight: nothing is asked for
                ratios = (a / b for a, b in zip(took, times[base][gesture], strict=True))
                key = f"{gesture.removesuffix('_ms')}_{suffix}"
                row[key] = round(statistics.median(ratios), 3)
        row["growth_mib"] = growth_mib[title]
        rows.append(row)
    return rows


def main() -> None:
    application = QApplication.instance() or QApplication([])
    assert isinstance(application, QApplication)
    with tempfile.TemporaryDirectory() as folder:
        desk = Desk(application, Path(folder))
        names: dict[str, str] = {}
        for title, source in SMALL.items():
            names[title] = f"x{len(names)}"
            desk.run(f"{names[title]} = {source}")
        for title, (source, size_bytes) in LARGE.items():
            if psutil.virtual_memory().available < 2 * size_bytes:
                print(json.dumps({"bench": "tensors_window", "tensor": title, "skipped": "memory"}))
                continue
            name = f"x{len(names)}"
            desk.run(f"{name} = {source}")
            names[title] = name
        for row in measure(desk, names):
            print(json.dumps(row), flush=True)
        desk.close()


if __name__ == "__main__":
    main()
