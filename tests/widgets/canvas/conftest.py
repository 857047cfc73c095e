"""A canvas with a small model, and a record of its signals."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from engine.project.document import Model
from engine.project.problems import Problem
from engine.protocol import BlockReport, ModelSnapshot, TensorSpec
from tests.model_snapshots import model_snapshot
from tests.widgets.small_model import SMALL_MODEL
from widgets.canvas.model_canvas import ModelCanvas

LEFT = Qt.MouseButton.LeftButton
NONE = Qt.KeyboardModifier.NoModifier


@pytest.fixture
def model() -> Model:
    return SMALL_MODEL


@pytest.fixture
def canvas(qtbot, model: Model) -> ModelCanvas:
    canvas = ModelCanvas()
    qtbot.addWidget(canvas)
    canvas.resize(1200, 720)
    canvas.show()
    canvas.setFocus()
    canvas.show_model(model)
    canvas.set_view(1.0, 520, 150)
    return canvas


@pytest.fixture
def heard(canvas: ModelCanvas) -> list[tuple]:
    """The requests that the canvas has emitted, each as (name of the signal, *arguments)."""
    said: list[tuple] = []

    def listen(name: str) -> None:
        getattr(canvas, name).connect(lambda *arguments: said.append((name, *arguments)))

    for name in (
        *("block_dropped", "block_dropped_on_wire", "blocks_moved", "wire_requested"),
        *("wire_rerouted", "delete_requested", "duplicate_requested", "copy_requested"),
        *("cut_requested", "paste_requested", "block_activated", "fix_requested"),
        *("layout_requested", "insert_requested"),
    ):
        listen(name)
    return said


@pytest.fixture
def drag(canvas: ModelCanvas) -> Callable[..., None]:
    """Press, move over some points, and release (unless told not to), in viewport pixels."""

    def drag(*points: QPoint, modifiers=NONE, release: bool = True) -> None:
        viewport = canvas.viewport()
        QTest.mousePress(viewport, LEFT, modifiers, points[0])
        for point in points[1:]:
            QTest.mouseMove(viewport, point)
        if release:
            QTest.mouseRelease(viewport, LEFT, modifiers, points[-1])

    return drag


@pytest.fixture
def snapshot(model: Model) -> ModelSnapshot:
    """The snapshot that the engine would send for the model, with an error at block `b`."""
    shapes = {"x": ("B", 64), "a": ("B", 32)}
    reports = {
        key: BlockReport(key, {"x" if key == "x" else "output": TensorSpec(shape, "float32")})
        for key, shape in shapes.items()
    }
    reports["b"] = BlockReport("b", {}, 330, 1320, 0, (Problem("b is wrong", "b", "input"),))
    reports["relu"] = BlockReport(
        "relu",
        problems=(
            Problem("Nothing is wired to the input.", "relu", "input"),
            Problem("relu leads nowhere", "relu", severity="warning"),
        ),
    )
    return model_snapshot(
        blocks=tuple(reports.values()),
        parameters=330,
        parameter_bytes=1320,
        runnable=False,
    )
