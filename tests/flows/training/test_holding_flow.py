"""Train by hand: the phases of a step, a watchpoint that holds, and the part at fault."""

from __future__ import annotations

import pytest
import torch
from PySide6.QtWidgets import QApplication, QMenu

from app import templates
from app.selection.references import Parameter
from engine.project.document import HoldWhen, replace
from engine.project.step_order import PHASES
from engine.protocol import TrainingSnapshot
from widgets.text import format_number

pytestmark = pytest.mark.one_program


@pytest.fixture
def mlp(program):
    """The MLP template, set to one epoch of 22 steps."""
    program.bench.files.new(templates.load_template("mlp"))
    program.window.show_workspace("train")
    set_up(program, epochs=1, batch_size=64)
    return program


def set_up(program, **changes) -> None:
    setup = replace(program.bench.store.project.training, **changes)
    view(program).form.setup_edited.emit(setup, "Set")
    program.bench.link.drain()


def view(program):
    return program.window.page("train")


def run_of(program) -> TrainingSnapshot:
    run = program.bench.store.newest(TrainingSnapshot)
    assert run is not None
    return run


def test_the_phases_of_a_step_by_hand_and_back_to_its_start(mlp) -> None:
    strip = view(mlp).strip
    view(mlp).bar.step_requested.emit()
    mlp.bench.link.drain()
    assert strip.isVisible()
    assert all(cell.is_done for cell in strip.cells.values())
    for done in range(1, 5):
        strip.buttons["phase"].click()
        mlp.bench.link.drain()
        assert [strip.cells[phase].is_done for phase in PHASES] == [i < done for i in range(5)]
    assert (run_of(mlp).step, run_of(mlp).is_in_step) == (1, True)
    mlp.bench.actions["train.back"].trigger()
    mlp.bench.link.drain()
    assert (run_of(mlp).step, run_of(mlp).is_in_step) == (1, False)
    mlp.bench.actions["train.phase"].trigger()
    mlp.bench.link.drain()
    assert "Paused inside step 2" in view(mlp).bar._result.text()
    view(mlp).bar.back.click()
    mlp.bench.link.drain()
    assert (run_of(mlp).step, run_of(mlp).is_in_step) == (1, False)


def test_a_number_that_was_not_measured_is_not_said_to_be_zero(mlp) -> None:
    cells = view(mlp).strip.cells
    mlp.workspaces.train.train(paused=True)
    mlp.workspaces.train.train(to_step=3)  # at full speed
    mlp.bench.link.drain()
    assert run_of(mlp).step == 3
    assert cells["step"].number.text() == "not measured"
    parameters = mlp.bench.link._session.lab.models.live.module.parameters()
    before = [(p, p.detach().clone()) for p in parameters]
    for phase in PHASES:
        mlp.workspaces.train.step("phase")
        mlp.bench.link.drain()
        assert cells["step"].number.text() == "" or phase == "step"
    moved = torch.stack([(p.detach() - was).norm() for p, was in before]).norm()
    assert cells["step"].number.text() == f"update {format_number(moved.item(), 4)}"


def test_a_run_is_held_and_the_parameter_is_shown_in_other_views(mlp) -> None:
    set_up(mlp, hold=HoldWhen(gradient_norm=1e-4))
    view(mlp).bar.train_requested.emit()
    mlp.bench.link.drain()
    hold = run_of(mlp).hold
    assert run_of(mlp).state == "paused" and hold is not None
    note = view(mlp).hold
    assert note.isVisible() and hold.text in note._text.text()
    note._part.click()
    assert mlp.bench.selection.current == Parameter(hold.parameter)
    menu = QApplication.activePopupWidget()
    assert isinstance(menu, QMenu) and f"Show {hold.parameter} in" in menu.actions()[0].text()
    menu.close()
    set_up(mlp, hold=HoldWhen())
    view(mlp).bar.continue_requested.emit()
    mlp.bench.link.drain()
    assert run_of(mlp).state == "finished" and not note.isVisible()


def test_a_run_that_diverged_is_held_where_it_began(mlp) -> None:
    set_up(mlp, optimizer="optim.SGD", optimizer_params={"lr": 1e20})
    view(mlp).bar.train_requested.emit()
    mlp.bench.link.drain()
    note = view(mlp).hold
    assert run_of(mlp).state == "failed" and note._find.isVisible()
    note._find.click()
    mlp.bench.link.drain()
    assert run_of(mlp).state == "paused" and run_of(mlp).hold is not None
    assert "Held in step" in note._text.text()


def test_an_order_without_zero_grad_is_trained_and_told(mlp) -> None:
    set_up(mlp, order=PHASES[1:])
    view(mlp).bar.step_requested.emit()
    mlp.bench.link.drain()
    strip = view(mlp).strip
    assert strip.cells["zero_grad"].number.text() == "left out"
    assert "added to those of all steps before" in strip._words.text()
