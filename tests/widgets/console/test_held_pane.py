"""Where code is held: its line, its words and the ways on, in the console, Train and Autograd."""

from __future__ import annotations

import pytest

from engine.protocol import ErrorReport, HeldAt, HeldSnapshot
from tests.labels import said
from widgets.autograd.own_call import OwnCall
from widgets.console.console_view import ConsoleView
from widgets.console.held_pane import HeldPane
from widgets.training.run_bar import RunBar

SOURCE = "def train():\n    for i in range(3):\n        loss.backward()\n        step()\n"


def held(at: HeldAt = "line", line: int = 3) -> HeldSnapshot:
    return HeldSnapshot(
        at=at, title="loop.py", file="loop.py", function="train", line=line, source=SOURCE
    )


@pytest.fixture
def pane(qtbot) -> HeldPane:
    made = HeldPane()
    qtbot.addWidget(made)
    return made


@pytest.mark.parametrize(
    ("at", "words"),
    [
        ("line", "Held at line 3 of train, in loop.py"),
        ("step", "Held after the step of line 3 of train, in loop.py"),
        ("backward", "Held in the backward() of line 3 of train, in loop.py"),
    ],
)
def test_it_says_where(pane: HeldPane, at: HeldAt, words: str) -> None:
    assert pane.isHidden()
    pane.show_held(held(at))
    assert not pane.isHidden() and said(pane, "held_title") == words
    assert pane.editor.toPlainText() == SOURCE and pane.editor.marked_lines() == (3,)
    pane.show_held(held(at, line=4))
    assert pane.editor.marked_lines() == (4,)
    pane.show_held(None)
    assert pane.isHidden()


def test_each_button_asks_for_its_way_on(pane: HeldPane) -> None:
    asked: list[str] = []
    for name in ("continue", "line", "step", "stop"):
        getattr(pane, f"{name}_requested").connect(lambda name=name: asked.append(name))
    pane.show_held(held())
    for button in (pane.continues, pane.line, pane.step, pane.stop):
        button.click()
    assert asked == ["continue", "line", "step", "stop"]


def test_the_console_runs_what_is_typed_where_code_is_held(qtbot) -> None:
    console = ConsoleView()
    qtbot.addWidget(console)
    cells, typed = [], []
    console.run_requested.connect(lambda source, name: cells.append(source))
    console.held_run_requested.connect(typed.append)
    console.submit("train()")
    console.show_held(held())
    console.submit("loss")
    assert (cells, typed) == (["train()"], ["loss"])
    console.finish_held(ErrorReport(type="NameError", message="name 'loss' is not defined"))
    assert "NameError: name 'loss' is not defined" in console.output.toPlainText()
    assert console.busy  # the cell goes on
    console.show_held(None)
    console.submit("1 + 1")
    assert cells == ["train()"]  # it waits for the cell
    console.finish_cell(None)
    assert cells == ["train()", "1 + 1"]


def test_train_offers_the_ways_on_while_code_is_held(qtbot) -> None:
    bar = RunBar()
    qtbot.addWidget(bar)
    bar.show_engine_state("ready")
    assert bar.line.isHidden() and bar.own_backward.isHidden()
    asked: list[str] = []
    bar.continue_requested.connect(lambda: asked.append("continue"))
    bar.train_requested.connect(lambda: asked.append("train"))
    bar.show_held(held())
    assert bar.train.text() == "Continue" and not bar.line.isHidden()
    assert bar.step.isEnabled() and bar.stop.isEnabled() and not bar.pause.isEnabled()
    assert said(bar, "train_result").startswith("Held at line 3 of train, in loop.py. ")
    bar.train.click()
    bar.show_held(None)
    bar.train.click()
    assert asked == ["continue", "train"] and bar.line.isHidden()


def test_autograd_says_which_backward_is_held_and_lets_it_go_on(qtbot) -> None:
    strip = OwnCall()
    qtbot.addWidget(strip)
    assert strip.isHidden()
    strip.show_held(held("backward"))
    assert said(strip, "own_call_where") == "Held in the backward() of line 3 of train, in loop.py"
    with qtbot.waitSignal(strip.continue_requested, timeout=1000):
        strip.continues.click()
    with qtbot.waitSignal(strip.stop_requested, timeout=1000):
        strip.stop.click()
    strip.show_held(None)
    assert strip.isHidden()
