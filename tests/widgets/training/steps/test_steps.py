"""The strip of a step's phases, and the note that says why a run is held."""

from __future__ import annotations

from typing import Any

import pytest

from engine.project.step_order import PHASES
from engine.protocol import Hold, StepColumns, StepNumbers, TrainingSnapshot
from tests.pictures import assert_same_picture
from widgets import make, theme
from widgets.training.steps.hold_note import HoldNote
from widgets.training.steps.phase_strip import PhaseStrip

HOLD = Hold(
    "not_finite",
    12,
    "The gradient of `first.weight` is not finite. In backward, SqrtBackward0 of `Tensor.sqrt` in"
    " the model (<cell 1>, line 7) gave the first gradient that is not finite. It is held before"
    " the update.",
    "The square root is NaN below 0, and its gradient is infinite at 0: add a small number under"
    " the root.",
    parameter="first.weight",
)
NUMBERS = StepNumbers(12, PHASES[:4], PHASES, 1, 1, (64, 10), 0.6931, 1.25)


def run(state: str = "paused", **changes) -> TrainingSnapshot:
    return TrainingSnapshot(
        run="a",
        state=state,  # type: ignore[arg-type]
        step=11,
        total_steps=100,
        steps_per_second=0.0,
        steps=StepColumns(),
        device="cpu",
        **changes,
    )


@pytest.fixture
def strip(qtbot) -> PhaseStrip:
    strip = PhaseStrip()
    qtbot.addWidget(strip)
    return strip


@pytest.fixture
def note(qtbot) -> HoldNote:
    note = HoldNote()
    qtbot.addWidget(note)
    return note


def numbers(strip: PhaseStrip) -> dict[str, str]:
    return {phase: cell.number.text() for phase, cell in strip.cells.items()}


def test_the_strip_is_there_while_a_run_is_paused(strip: PhaseStrip) -> None:
    assert strip.isHidden()
    strip.show_run(run("running"))
    assert strip.isHidden()
    strip.show_run(run())
    assert not strip.isHidden() and strip.buttons["op"].isEnabled()
    assert set(numbers(strip).values()) == {""}


def test_the_strip_shows_the_numbers_of_the_phases_that_have_run(strip: PhaseStrip) -> None:
    strip.show_run(run(step_numbers=NUMBERS, is_in_step=True))
    assert numbers(strip) == {
        "zero_grad": "cleared",
        "forward": "(64, 10)",
        "loss": "0.6931",
        "backward": "grad 1.25",
        "step": "",
    }
    assert [cell.is_done for cell in strip.cells.values()] == [True] * 4 + [False]
    assert strip._words.text() == "Inside step 12."
    assert {phase: cell.accessibleDescription() for phase, cell in strip.cells.items()} == {
        "zero_grad": "done cleared",
        "forward": "done (64, 10)",
        "loss": "done 0.6931",
        "backward": "done grad 1.25",
        "step": "not run yet",
    }


def test_an_unusual_order_is_in_its_order_and_its_effect_is_told(strip: PhaseStrip) -> None:
    order = ("step", "forward", "loss", "backward")
    told = StepNumbers(3, order[:2], order, 1, 4, (2, 3), update_norm=0.5)
    strip.show_run(run(step_numbers=told))
    places = {phase: strip._row.indexOf(cell) for phase, cell in strip.cells.items()}
    assert sorted(places, key=lambda phase: places[phase]) == [*order, "zero_grad"]
    assert numbers(strip)["zero_grad"] == "left out"
    assert numbers(strip)["step"] == "update 0.5"
    words = strip._words.text()
    assert words.startswith(
        "After step 3, 1 of 4 batches. Without zero_grad each gradient is added"
    )
    assert "each step uses the gradient of the batch before" in words


def test_what_was_not_measured_is_neither_zero_nor_missing(strip: PhaseStrip) -> None:
    def told(**norms: Any) -> tuple[str, str]:
        strip.show_run(run(step_numbers=StepNumbers(3, PHASES, **norms)))
        return numbers(strip)["backward"], numbers(strip)["step"]

    assert told(unmeasured=("backward", "step")) == ("not measured", "not measured")
    assert told(gradient_norm=0.25, unmeasured=("step",)) == ("grad 0.25", "not measured")
    assert told(gradient_norm=0.0, update_norm=0.0) == ("grad 0", "update 0")
    assert told(update_norm=0.0) == ("no grad", "update 0")


def test_batches_are_offered_where_a_step_has_several(strip: PhaseStrip, qtbot) -> None:
    button = strip.buttons["batch"]
    strip.show_run(run())
    assert button.isHidden()
    strip.show_run(run(step_numbers=NUMBERS, is_in_step=True))
    assert button.isHidden()
    several = StepNumbers(3, ("zero_grad",), PHASES, 1, 4, (2, 3))
    strip.show_run(run(step_numbers=several, is_in_step=True))
    assert not button.isHidden()
    with qtbot.waitSignal(strip.step_requested, check_params_cb=lambda unit: unit == "batch"):
        button.click()
    strip.show_run(run(step_numbers=several, processes=2))
    assert button.isHidden()


def test_the_button_asks_for_the_next_phase(strip: PhaseStrip, qtbot) -> None:
    strip.show_run(run())
    with qtbot.waitSignal(strip.step_requested, check_params_cb=lambda unit: unit == "phase"):
        strip.buttons["phase"].click()


def test_the_note_says_why_and_asks_for_the_part(note: HoldNote, qtbot) -> None:
    assert note.isHidden()
    note.show_run(run(hold=HOLD))
    assert note._text.text() == f"Held in step 12. {HOLD.text}"
    assert note._part.text() == "Show first.weight in…"
    assert note.accessibleDescription() == HOLD.text
    with qtbot.waitSignal(note.part_wanted) as asked:
        note._part.click()
    assert asked.args == [HOLD]
    note.show_run(run("running"))
    assert note.isHidden()


def test_a_run_that_failed_offers_to_find_where(note: HoldNote, qtbot) -> None:
    note.show_run(run("failed", can_find_divergence=True))
    assert not note.isHidden() and note._part.isHidden()
    with qtbot.waitSignal(note.divergence_wanted):
        note._find.click()
    note.show_run(run(hold=HOLD))
    assert note._find.isHidden()


@pytest.mark.parametrize("name", ["light", "dark"])
def test_pictures(qtbot, qapp, name: str) -> None:
    theme.apply(qapp, {"light": theme.LIGHT, "dark": theme.DARK}[name])
    strip, note = PhaseStrip(), HoldNote()
    page = make.page(strip, note, margins=8)
    qtbot.addWidget(page)
    page.resize(760, 240)
    strip.show_run(run(step_numbers=NUMBERS, is_in_step=True))
    note.show_run(run(hold=HOLD))
    assert_same_picture(page, f"phases_{name}")
