"""From Start into the workspaces, and the first steps from a template to its trained model."""

from __future__ import annotations

import pytest
import torch
from PySide6.QtWidgets import QAbstractButton, QPushButton

from app import templates
from engine.project.document import replace
from engine.project.examples import mistakes
from engine.protocol import BackwardSnapshot, ForwardSnapshot, GraphSnapshot, TrainingSnapshot
from tests.gestures import click, click_button
from widgets.text import format_number

pytestmark = pytest.mark.one_program


def settle(program) -> None:
    program.bench.link.drain()


def choose(program, name: str) -> None:
    click_button(program.window.page("start"), name)
    settle(program)


def test_an_example_is_run_and_its_graph_shown(program):
    choose(program, "start_autograd_chain_rule")
    assert program.window.workspace == "autograd"
    page = program.window.page("autograd")
    assert page.currentWidget() is page.steps
    graph = program.bench.newest(GraphSnapshot)
    assert graph is not None and graph.root == "L"
    assert program.bench.newest(BackwardSnapshot) is not None


def test_a_mistake_is_shown_and_does_not_run(program):
    choose(program, "start_mistakes_detached")
    page = program.window.page("autograd")
    assert program.window.workspace == "autograd" and page.currentWidget() is page.mistakes
    assert page.mistakes.mistake == mistakes()["detached"]
    assert program.bench.project.cells == ()


# -- the first steps -------------------------------------------------------------------------------


@pytest.fixture
def short(monkeypatch):
    """The template trains for one epoch: enough to see that the loss falls."""
    load = templates.load_template

    def loaded(key: str):
        project = load(key)
        return replace(project, training=replace(project.training, epochs=1))

    monkeypatch.setattr(templates, "load_template", loaded)


def banner(program):
    return program.window.banners.banner("first_steps")


def press(program, text: str) -> None:
    buttons = banner(program).findChildren(QAbstractButton)
    click(next(b for b in buttons if b.text() == text))
    settle(program)


def test_the_first_steps_lead_from_a_template_to_what_training_changed(program, short):
    choose(program, "start_first_steps")
    assert program.window.workspace == "model"
    assert program.bench.project.model == templates.load_template("mlp").model
    assert banner(program).title == "First steps, 1 of 4: open"
    press(program, "Next: step")
    assert program.window.workspace == "autograd"
    assert banner(program).text.startswith("0 of 9 blocks have run.")
    press(program, "Run one block")
    assert banner(program).text.startswith("1 of 9 blocks have run.")
    program.bench.actions["autograd.step"].trigger()  # F10 does the same
    settle(program)
    assert banner(program).text.startswith("2 of 9 blocks have run.")
    press(program, "Run to the loss")
    first = program.bench.newest(ForwardSnapshot).loss
    shown = f"The loss of this batch is {format_number(first, 3)}."
    assert banner(program).text.startswith(shown)
    press(program, "Next: train")
    assert program.window.workspace == "train"
    assert program.bench.newest(TrainingSnapshot).state == "finished"
    assert banner(program).text.startswith("The run has finished: epoch 1 of 1, validation accu")
    press(program, "Next: look")
    assert program.window.workspace == "autograd"
    now = program.bench.newest(ForwardSnapshot).loss
    assert now < first
    assert f"was {format_number(first, 3)} and is now {format_number(now, 3)}." in (
        banner(program).text
    )
    press(program, "Finish")
    assert banner(program) is None


def test_the_loss_of_a_guess_among_ten_digits():
    guess = torch.nn.functional.cross_entropy(torch.zeros(1, 10), torch.tensor([3]))
    assert format_number(guess.item(), 4) == "2.303"


def test_another_project_ends_the_first_steps(program):
    choose(program, "start_first_steps")
    press(program, "Next: step")
    program.bench.actions["file.new"].trigger()
    assert banner(program) is None


def test_the_first_steps_that_were_closed_stay_closed(program):
    choose(program, "start_first_steps")
    press(program, "Next: step")
    banner(program).findChild(QAbstractButton, "banner_close").click()
    program.bench.actions["autograd.step"].trigger()
    settle(program)
    assert program.bench.newest(ForwardSnapshot).position == 1
    assert banner(program) is None


def test_without_an_engine_a_step_can_be_tried_again(program):
    choose(program, "start_first_steps")
    program.bench.link.close()
    press(program, "Next: step")
    assert "There is no engine" in banner(program).text
    texts = [button.text() for button in banner(program).findChildren(QPushButton)]
    assert texts == ["Try again"]
