"""The console and the other workspaces work on one and the same model of blocks."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import load_file

from app import templates
from engine.project import edits
from engine.protocol import CellSnapshot, TrainingSnapshot
from widgets.console.console_view import ConsoleView

pytestmark = pytest.mark.one_program


def run(program, source: str) -> None:
    program.workspaces.run_python(source)
    program.bench.link.drain()
    cell = program.bench.store.newest(CellSnapshot)
    assert cell is not None and cell.ok, cell


def value(program, expression: str):
    run(program, f"value = {expression}")
    return program.bench.link._session.lab.console.namespace.variables["value"]


def test_the_console_prints_what_train_has_trained_and_train_goes_on_from_the_console(
    program,
) -> None:
    bench = program.bench
    bench.files.new(templates.load_template("mlp"))
    bench.link.drain()
    run(program, "before = {k: v.clone() for k, v in canvas.model.state_dict().items()}")
    assert not bench.weights.modified
    program.window.show_workspace("train")
    program.window.page("train").bar.step_requested.emit()
    bench.link.drain()
    trained = bench.newest(TrainingSnapshot)
    assert trained is not None and trained.step == 1 and bench.weights.modified
    now = value(program, "canvas.model.state_dict()")
    before = value(program, "before")
    assert not any(torch.equal(before[name], now[name]) for name in before)
    session = bench.link._session
    assert value(program, "canvas.model") is session.lab.run.loop.model


def test_weights_that_the_console_changed_are_saved_with_the_project(program, tmp_path) -> None:
    bench = program.bench
    bench.files.new(templates.load_template("mlp"))
    bench.link.drain()
    run(program, "for p in canvas.model.parameters(): p.data.zero_()")
    assert bench.weights.modified and bench.weights.learnt
    message = program.window.statusBar().currentMessage()
    assert message == "The console has changed the canvas's weights."
    path = tmp_path / "net.tlab"
    assert bench.files.save_as(str(path))
    bench.link.drain()
    assert not bench.weights.modified
    saved = load_file(path.with_suffix(".safetensors"))
    assert saved and not any(torch.count_nonzero(t) for t in saved.values())


def test_an_edit_of_the_canvas_is_known_to_the_very_next_cell(program) -> None:
    bench = program.bench
    bench.files.new(templates.load_template("mlp"))
    bench.link.drain()
    block = next(b for b in bench.project.model.blocks if b.kind == "nn.Linear")
    assert bench.edit("Rename", lambda project: edits.rename(project, block.id, "first"))
    run(program, "weight = canvas.model.first.weight")


def test_without_a_model_the_console_says_what_to_do(program) -> None:
    program.workspaces.run_python("canvas.model")
    program.bench.link.drain()
    shown = program.window.findChild(ConsoleView).output.toPlainText()
    assert "The canvas has no model yet." in shown
    assert "Drag blocks from the palette of Model" in shown
