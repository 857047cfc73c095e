"""The bar of a run by itself: a run of another subject, code that is held, a script that left."""

from __future__ import annotations

from typing import Any

import pytest

from engine.protocol import BestSoFar, EpochRow, HeldSnapshot, StepColumns, TrainingSnapshot
from tests.labels import said
from widgets.training.run_bar import RunBar

BUTTONS = (
    "train", "pause", "step", "stop", "back", "line", "own_backward", "resume", "best", "averaged",
    "export", "check", "predictions",
)  # fmt: skip


def run(state: str = "finished", **changes: Any) -> TrainingSnapshot:
    told = {
        "run": "a", "state": state, "step": 30, "total_steps": 120, "epoch": 4, "epochs": 12,
        "steps_per_second": 1500.0, "remaining_s": None, "steps": StepColumns(), "epoch_rows": (),
        "device": "cpu",
    }  # fmt: skip
    return TrainingSnapshot(**{**told, **changes})


def row(epoch: int) -> EpochRow:
    return EpochRow(epoch, 10 * epoch, 0.5, 0.9, 0.6, 0.8)


def best(epoch: int) -> BestSoFar:
    return BestSoFar(figure="validation loss", epoch=epoch, value=0.5)


@pytest.fixture
def bar(qtbot) -> RunBar:
    bar = RunBar()
    qtbot.addWidget(bar)
    bar.show()
    bar.show_engine_state("ready")
    return bar


def can(bar: RunBar) -> set[str]:
    """The buttons that are shown and enabled."""
    found = {name: getattr(bar, name) for name in BUTTONS}
    return {name for name, each in found.items() if each.isVisibleTo(bar) and each.isEnabled()}


AT_FIRST = {"train", "step", "check", "predictions"}


def test_nothing_goes_on_from_a_run_of_another_subject(bar) -> None:
    assert can(bar) == AT_FIRST
    done = run("stopped", checkpoint="/c", checkpoint_step=20, best=best(2), averaged=True)
    bar.show_progress(done, row(4), row(2))
    own = AT_FIRST | {"back", "resume", "best", "averaged", "export"}
    assert can(bar) == own
    words = said(bar, "train_result")
    bar.show_other("This run is of another model.")
    assert can(bar) == AT_FIRST | {"averaged"}
    assert said(bar, "train_result") == "This run is of another model."
    bar.offer_resume("There is a checkpoint.")
    assert can(bar) == AT_FIRST | {"averaged", "resume"}
    assert said(bar, "train_result") == "This run is of another model. There is a checkpoint."
    bar.offer_resume("")
    bar.show_other("")
    assert can(bar) == own and said(bar, "train_result") == words
    bar.show_other("This run is of another model.")
    bar.clear()
    assert can(bar) == AT_FIRST and said(bar, "train_result") == ""


def test_a_failed_run_of_another_subject_is_no_error(bar) -> None:
    bar.show_progress(run("failed"), None, None)
    assert bar._result.property("role") == "error"
    bar.show_other("Another.")
    assert bar._result.property("role") == ""


def held(at: str = "line", **told: Any) -> HeldSnapshot:
    return HeldSnapshot(**{"at": at, "file": "net.py", "line": 3, **told})


def test_code_that_is_held_goes_on_by_its_own_buttons(bar, qtbot) -> None:
    bar.show_held(held())
    assert can(bar) == {"train", "step", "line", "own_backward", "stop", "predictions"}
    assert bar.train.text() == "Continue" == bar.train.accessibleName()
    assert bar.train.toolTip() == "Continue the run"
    assert said(bar, "train_result") == (
        "Held at line 3, in net.py. Tensors shows it; Continue lets it go on."
    )
    assert said(bar, "train_line") == ""
    with qtbot.waitSignal(bar.continue_requested):
        bar.train.click()
    bar.show_held(held("backward"))
    assert said(bar, "train_result").endswith("Autograd steps it; Continue lets it go on.")
    for at in ("step", "update"):
        bar.show_held(held(at))
        assert said(bar, "train_result") == ""
    bar.show_held(held(after="forward"))  # in a run of Train
    assert "line" not in can(bar) and "own_backward" not in can(bar)
    bar.show_held(None)
    assert can(bar) == AT_FIRST and bar.train.text() == "Train"
    with qtbot.waitSignal(bar.train_requested):
        bar.train.click()


def test_what_happened_to_a_script_is_told_until_its_next_word(bar) -> None:
    bar.show_progress(run("stopped"), None, None)
    words = said(bar, "train_result")
    for is_error, role in ((False, ""), (True, "error")):
        bar.show_left("The script has ended.", is_error)
        assert said(bar, "train_result") == "The script has ended."
        assert bar._result.property("role") == role
    bar.show_problem("No data.")
    assert said(bar, "train_result") == "No data."
    bar.show_progress(run("stopped"), None, None)
    assert said(bar, "train_result") == words and bar._result.property("role") == ""


@pytest.mark.parametrize(
    ("state", "cut_off"), [("running", True), ("paused", True), ("finished", False)]
)
def test_a_run_is_cut_off_when_its_engine_is_lost(bar, state, cut_off) -> None:
    bar.show_progress(run(state), None, None)
    bar.show_engine_state("lost")
    assert bar._cut_off == cut_off == (bar._result.property("role") == "error")
    assert can(bar) == {"predictions"}


def test_the_weights_of_the_best_and_of_the_last_epoch_take_turns(bar) -> None:
    asked: list[str] = []
    bar.weights_requested.connect(asked.append)
    bar.show_progress(run(best=best(2)), row(4), row(2))
    assert bar.best.text() == "Best weights" and "epoch 2" in bar.best.toolTip()
    bar.best.click()
    assert bar.best.text() == bar.best.accessibleName() == "Last weights"
    assert bar.best.toolTip() == "Load the weights with which the run ended"
    bar.show_progress(run(best=best(2)), row(4), row(2))  # the same end of the same run
    assert bar.best.text() == "Last weights"
    bar.best.click()
    assert asked == ["best", "last"] and bar.best.text() == "Best weights"
    bar.best.click()
    bar.show_progress(run(best=best(2), step=31), row(4), row(2))
    assert bar.best.text() == "Best weights"
    bar.show_progress(run(best=best(4)), row(4), row(4))
    assert "best" not in can(bar)
    bar.show_progress(run("running", best=best(2)), row(4), row(2))
    assert "best" not in can(bar)


def test_back_undoes_a_step_or_goes_to_its_start(bar, qtbot) -> None:
    asked: list[int] = []
    bar.step_asked.connect(asked.append)
    bar.show_progress(run("paused"), None, None)
    assert (bar.to_step.value(), bar.to_step.maximum()) == (30, 120)
    bar.back.click()
    bar.show_progress(run("paused", is_in_step=True), None, None)
    bar.back.click()
    bar.to_step.lineEdit().setText("step 7")
    bar.to_step.lineEdit().returnPressed.emit()
    assert asked == [29, 30, 7]
    bar.show_progress(run("paused", step=0), None, None)
    assert not bar.back.isEnabled()
    bar.show_progress(run("paused", step=0, is_in_step=True), None, None)
    assert bar.back.isEnabled()
    bar.show_progress(run("running"), None, None)
    assert not bar.back.isEnabled() and not bar.to_step.isEnabled()
