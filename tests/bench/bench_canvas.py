"""One frame of the model canvas, against a plain scene of one rectangle and one line per block.

The whole model is in view, so nothing is culled: the worst case. Painted into an image by Qt's
raster engine, as on a screen without OpenGL.
"""

from __future__ import annotations

import itertools
import json
import statistics
from collections.abc import Callable
from time import perf_counter

from PySide6.QtGui import QImage, QPainter
from PySide6.QtWidgets import QApplication, QGraphicsScene, QGraphicsView

from engine.project.document import Block, Model, Wire
from widgets.canvas.model_canvas import ModelCanvas

ROUNDS = 15
COLUMNS = 20
GAP_X, GAP_Y = 220, 120


def make_model(count: int) -> Model:
    """A chain of `count` linear blocks in rows of COLUMNS."""
    blocks = tuple(
        Block(
            f"b{i}",
            "nn.Linear",
            f"linear{i}",
            {"in_features": 8, "out_features": 8},
            i % COLUMNS * GAP_X,
            i // COLUMNS * GAP_Y,
        )
        for i in range(count)
    )
    wires = tuple(Wire(a.id, "output", b.id, "input") for a, b in itertools.pairwise(blocks))
    return Model(blocks, wires)


def frame_ms(view: QGraphicsView) -> float:
    image = QImage(view.viewport().size(), QImage.Format.Format_ARGB32_Premultiplied)
    painter = QPainter(image)
    started = perf_counter()
    view.render(painter)
    elapsed = perf_counter() - started
    painter.end()
    return elapsed * 1e3


def our_view(model: Model) -> QGraphicsView:
    canvas = ModelCanvas()
    canvas.show_model(model)
    return canvas


def plain_view(model: Model) -> QGraphicsView:
    scene = QGraphicsScene()
    for block in model.blocks:
        scene.addRect(block.x, block.y, 160, 64)
    for wire in model.wires:
        source, target = model.block(wire.source), model.block(wire.target)
        scene.addLine(source.x + 160, source.y + 32, target.x, target.y + 32)
    view = QGraphicsView(scene)
    scene.setParent(view)
    return view


def prepared(make: Callable[[Model], QGraphicsView], model: Model) -> QGraphicsView:
    view = make(model)
    view.resize(1440, 900)
    view.show()
    QApplication.processEvents()
    view.fitInView(view.scene().itemsBoundingRect())
    return view


def measure(count: int) -> dict[str, float | int | str]:
    model = make_model(count)
    ours, plain = prepared(our_view, model), prepared(plain_view, model)
    frame_ms(ours), frame_ms(plain)  # warm up
    pairs = [(frame_ms(ours), frame_ms(plain)) for _ in range(ROUNDS)]
    return {
        "bench": "canvas",
        "blocks": count,
        "frame_ms": statistics.median(a for a, _ in pairs),
        "plain_frame_ms": statistics.median(b for _, b in pairs),
        "frame_over_plain": statistics.median(a / b for a, b in pairs),
    }


def main() -> None:
    application = QApplication([])
    for count in (20, 200, 1000):
        print(json.dumps(measure(count)), flush=True)
    application.quit()


if __name__ == "__main__":
    main()
