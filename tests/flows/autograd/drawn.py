"""Waits for the picture of a graph."""

from __future__ import annotations

from app.application import Application
from engine.protocol import GraphSnapshot


def drawn(qtbot, program: Application) -> GraphSnapshot:
    """The newest graph, once the tab Step through has drawn it."""
    program.bench.link.drain()
    store, presenter = program.bench.store, program.workspaces.autograd

    def is_drawn() -> bool:
        return presenter.drawn is store.newest(GraphSnapshot) is not None

    qtbot.waitUntil(is_drawn, timeout=30_000)
    graph = store.newest(GraphSnapshot)
    assert graph is not None
    return graph
