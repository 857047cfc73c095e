"""After Arrange, no wire runs behind a block."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.project import edits, files
from engine.project.document import Model, Wire, replace
from widgets.canvas.scene import ModelScene
from widgets.layout.model_layout import layout_model

TEMPLATES = sorted(Path("assets/templates").glob("*.tlab"))
ROOMS = (None, (900.0, 600.0), (600.0, 700.0), (1100.0, 500.0), (500.0, 400.0))


def with_loss(path: Path) -> Model:
    """A template's model with a loss beside its Output."""
    project = files.load(path)
    ends = {block.id for block in project.model.blocks if block.kind == "Output"}
    wire = next(wire for wire in project.model.wires if wire.target in ends)
    project, loss = edits.add_block(project, "nn.CrossEntropyLoss", 0, 0)
    return edits.connect(project, Wire(wire.source, wire.source_port, loss, "input")).model


@pytest.mark.parametrize("room", ROOMS)
@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_no_wire_runs_behind_a_block(qapp, path: Path, room) -> None:
    for model in (files.load(path).model, with_loss(path)):
        places = layout_model(model, room)
        scene = ModelScene()
        scene.show_model(
            replace(
                model,
                blocks=tuple(
                    replace(b, x=places[b.id][0], y=places[b.id][1]) for b in model.blocks
                ),
            )
        )
        for wire, item in scene.wires.items():
            for block_id, block in scene.blocks.items():
                body = block.rect()
                if block_id in (wire.source, wire.target):
                    body.adjust(4, 4, -4, -4)  # the wire touches its ends
                inside = [
                    (x, y)
                    for x, y in item.points
                    if body.left() < x < body.right() and body.top() < y < body.bottom()
                ]
                assert not inside, (wire, block_id)
