"""From a graph to its picture, and from "open all" and "close all" to theirs, with the layout in a
process of its own, as the program does: until it is painted, and how long the window is held at
most meanwhile (between two turns of its event loop).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from time import perf_counter
from typing import cast

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from app.processes.layout_worker import LayoutWorker
from engine.protocol import GraphSnapshot
from tests.engine.autograd.recorded_graphs import recorded, snapshot
from tests.engine.autograd.shaped_models import chain, gpt2
from widgets.graph.view import GraphView
from widgets.layout.nested_layout import layout_nested
from widgets.layout.outline import NestedLayout

GIVE_UP_S = 60.0


class Heart:
    """Beats at each turn of the event loop."""

    def __init__(self) -> None:
        self.longest_ms, self._last = 0.0, perf_counter()
        self._timer = QTimer()
        self._timer.timeout.connect(self._beat)
        self._timer.start(0)

    def _beat(self) -> None:
        now = perf_counter()
        self.longest_ms, self._last = max(self.longest_ms, (now - self._last) * 1e3), now

    def measure(self, begin: Callable[[], None], ended: Callable[[], bool]) -> tuple[float, float]:
        """(until it has ended and is painted, the longest time without a beat), in ms."""
        QApplication.processEvents()
        started = self._last = perf_counter()
        self.longest_ms = 0.0
        begin()
        while not ended() and perf_counter() - started < GIVE_UP_S:
            QApplication.processEvents()
        QApplication.processEvents()
        self._beat()
        return (perf_counter() - started) * 1e3, self.longest_ms


def measure(title: str, graph: GraphSnapshot, worker: LayoutWorker) -> dict[str, float | int | str]:
    view = GraphView()
    view.layout_requested.connect(
        lambda visible, direction, style: worker.submit(
            "graph",
            layout_nested,
            visible.outline,
            direction,
            style,
            then=lambda layout: view.show_layout(visible, cast(NestedLayout, layout)),
        )
    )
    view.resize(1440, 900)
    view.show()
    heart = Heart()
    row: dict[str, float | int | str] = {
        "bench": "graph_opening",
        "graph": title,
        "nodes": len(graph.nodes),
    }
    for name, begin in {
        "show": lambda: view.show_graph(graph),
        "open": view.open_all,
        "close": view.close_all,
    }.items():
        total_ms, held_ms = heart.measure(begin, lambda: view.laid_out)
        row |= {f"{name}_ms": total_ms, f"{name}_held_ms": held_ms}
    view.open_all()  # and closed again before it is laid out
    QApplication.processEvents()
    row["close_while_opening_ms"], _ = heart.measure(view.close_all, lambda: view.laid_out)
    return row


def main() -> None:
    application = QApplication([])
    worker = LayoutWorker()
    ready: list[object] = []
    worker.submit("start", int, "0", then=ready.append)
    while not ready:
        application.processEvents()
    for title, make in {
        "GPT-2, 8 layers": lambda: recorded(*gpt2(8)),
        "GPT-2, 32 layers": lambda: recorded(*gpt2(32)),
        "GPT-2, 160 layers": lambda: recorded(*gpt2(160)),
        "GPT-2, 800 layers": lambda: recorded(*gpt2(800)),
        "chain of 24,990 layers": lambda: snapshot(chain(24_990)),
    }.items():
        print(json.dumps(measure(title, make(), worker)), flush=True)
    worker.close()


if __name__ == "__main__":
    main()
