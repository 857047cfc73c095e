"""The graph's picture in the window: boxes laid out in the worker, files, the way to the code."""

from __future__ import annotations

import json

import pytest
from PySide6.QtWidgets import QToolButton

from app.presenters.autograd import graph_picture
from engine.protocol import GraphSnapshot
from widgets.graph.files import save_graph

pytestmark = pytest.mark.one_program


@pytest.fixture
def drawn(mlp, qtbot):
    """The MLP template with its graph drawn."""
    view = mlp.window.page("autograd").steps
    view.forward.start_requested.emit(0)
    view.backward.start_requested.emit()
    mlp.bench.link.drain()
    qtbot.waitUntil(lambda: view.graph.laid_out, timeout=30_000)
    return mlp, view.graph_pane


def test_boxes_close_and_open_through_the_layout_worker(drawn, qtbot):
    _, pane = drawn
    opened = [box.key for box in pane.view.facts.visible.boxes]
    pane.view.close_all()
    assert not pane.view.laid_out  # the old picture stays until the worker has answered
    qtbot.waitUntil(lambda: pane.view.laid_out, timeout=30_000)
    closed = [box.key for box in pane.view.facts.visible.boxes]
    assert len(closed) < len(opened)
    pane.view.open_all()
    qtbot.waitUntil(lambda: pane.view.laid_out, timeout=30_000)
    assert [box.key for box in pane.view.facts.visible.boxes] == opened


def test_a_graph_is_saved_for_other_programs(drawn, answers, tmp_path):
    program, pane = drawn
    graph = program.bench.store.newest(GraphSnapshot)
    answers.save = str(tmp_path / "graph")
    pane.bar.export_requested.emit("json")
    saved = json.loads((tmp_path / "graph.json").read_text())
    assert [node["name"] for node in saved["nodes"]] == [node.name for node in graph.nodes]
    answers.save = str(tmp_path / "picture.dot")
    pane.bar.export_requested.emit("dot")
    assert (tmp_path / "picture.dot").read_text().startswith("digraph")


def test_a_graph_that_cannot_be_saved_is_told(drawn, answers, tmp_path):
    program, pane = drawn
    answers.save = str(tmp_path / "no folder" / "graph.json")
    pane.bar.export_requested.emit("json")
    assert "was not saved" in program.window.statusBar().currentMessage()


@pytest.fixture
def large(drawn, monkeypatch):
    """As though the drawn graph took long to save."""
    monkeypatch.setattr(graph_picture, "AT_ONCE_NODES", 0)
    return drawn


def test_a_large_graph_is_saved_in_the_worker(large, answers, tmp_path, qtbot):
    program, pane = large
    hierarchy, keys = pane.view.hierarchy, pane.view.open_keys
    stop = pane.bar.findChild(QToolButton, "graph_stop_saving")
    told = program.window.statusBar()
    for form in ("dot", "json", "graphml"):
        save_graph(str(tmp_path / f"here.{form}"), hierarchy, keys)
        answers.save = str(tmp_path / f"there.{form}")
        pane.bar.export_requested.emit(form)
        assert not stop.isHidden() and not (tmp_path / f"there.{form}").exists()
        count = f"{len(hierarchy.graph.nodes):,} nodes"
        assert told.currentMessage() == f"Saving the graph of {count} to {answers.save}…"
        done = f"The graph was saved to {answers.save}"
        qtbot.waitUntil(lambda done=done: told.currentMessage() == done, timeout=30_000)
        assert stop.isHidden()
        there = (tmp_path / f"there.{form}").read_bytes()
        assert there == (tmp_path / f"here.{form}").read_bytes()


def test_saving_a_large_graph_is_stopped(large, answers, tmp_path, qtbot):
    program, pane = large
    answers.save = str(tmp_path / "first.graphml")
    pane.bar.export_requested.emit("graphml")
    stop = pane.bar.findChild(QToolButton, "graph_stop_saving")
    stop.click()
    told = program.window.statusBar()
    assert stop.isHidden() and told.currentMessage() == "The graph was not saved"
    answers.save = str(tmp_path / "second.graphml")
    pane.bar.export_requested.emit("graphml")
    qtbot.waitUntil(lambda: "second.graphml" in told.currentMessage(), timeout=30_000)
    qtbot.waitUntil(lambda: (tmp_path / "second.graphml").exists(), timeout=30_000)
    assert not (tmp_path / "first.graphml").exists()


def test_a_large_graph_that_cannot_be_saved_is_told(large, answers, tmp_path, qtbot):
    program, pane = large
    told = program.window.statusBar()
    for name in ("no folder/graph.json", "graph.txt"):
        told.clearMessage()
        answers.save = str(tmp_path / name)
        pane.bar.export_requested.emit("json")
        qtbot.waitUntil(lambda: "was not saved: " in told.currentMessage(), timeout=30_000)
        assert pane.bar.findChild(QToolButton, "graph_stop_saving").isHidden()
