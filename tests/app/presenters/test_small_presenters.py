"""Presenters of one switch or one question each: recording, notes of advice."""

from __future__ import annotations

import pytest

from app.presenters.advice import AdvicePresenter
from app.presenters.recording import RecordingPresenter
from engine.protocol import (
    Finding,
    FindingSnapshot,
    RecordCommand,
)
from tests.app.conftest import SCRIPT
from widgets.advice.kinds import KINDS
from widgets.recording_note import RecordingNote

ONE, OTHER = list(KINDS)[:2]


# -- recording -------------------------------------------------------------------------------------


def switches(link) -> list[bool]:
    return [each.on for each in link.sent if isinstance(each, RecordCommand)]


@pytest.fixture
def recording(bench, link) -> RecordingPresenter:
    link.get_ready()
    return RecordingPresenter(bench, bench.window)


def test_the_switch_is_sent_once_and_shown_by_every_view(recording, link, qtbot) -> None:
    first, second = RecordingNote("a", "None."), RecordingNote("b", "None.")
    for view in (first, second):
        qtbot.addWidget(view)
    shown: list[tuple[str, bool]] = []
    first.show_recording = lambda on: shown.append(("first", on))
    second.show_recording = lambda on: shown.append(("second", on))
    recording.show_in(first, second)
    assert recording.is_on and shown == [("first", True), ("second", True)]
    second.record_wanted.emit(False)
    assert not recording.is_on and shown[2:] == [("first", False), ("second", False)]
    recording.switch(False)
    assert switches(link) == [False] and len(shown) == 4
    first.record_wanted.emit(True)
    assert switches(link) == [False, True] and recording.is_on


def test_a_new_engine_is_told_only_what_it_does_not_begin_with(recording, link) -> None:
    link.close()
    link.get_ready()
    assert switches(link) == []
    recording.switch(False)
    link.close()
    link.get_ready()
    assert switches(link) == [False, False]


def test_a_script_is_not_told(recording, link) -> None:
    recording.switch(False)
    link.sent.clear()
    link.attach_to(SCRIPT)
    link.became_ready.emit()
    assert switches(link) == []


# -- advice ----------------------------------------------------------------------------------------


class Notes:
    def __init__(self, bench) -> None:
        self.shown: list[tuple[Finding, bool]] = []
        self.dropped: list[str] = []
        self.presenter = AdvicePresenter(
            bench, lambda finding, beside: self.shown.append((finding, beside)),
            self.dropped.append, bench.window,
        )  # fmt: skip


def finding(kind: str, run: str = "") -> FindingSnapshot:
    found = Finding(kind, "It is so.", (), "x = 1")  # pyright: ignore[reportArgumentType]
    return FindingSnapshot(finding=found, run=run)


def test_a_note_is_shown_beside_its_run_or_in_the_console(bench) -> None:
    notes = Notes(bench)
    bench.store.take(finding(ONE))
    bench.store.take(finding(OTHER, run="r"))
    assert [(each.kind, beside) for each, beside in notes.shown] == [(ONE, False), (OTHER, True)]


def test_muted_kinds_are_not_shown_until_all_are_shown_again(bench) -> None:
    notes, action = Notes(bench), bench.actions["tensors.show_muted_advice"]
    assert not action.isEnabled()
    notes.presenter.mute(ONE)
    assert notes.dropped == [ONE] and action.isEnabled()
    assert bench.window.said == [f"Notes about {KINDS[ONE]} are muted."]
    bench.store.take(finding(ONE))
    bench.store.take(finding(OTHER))
    assert [each.kind for each, _ in notes.shown] == [OTHER]
    notes.presenter.mute(OTHER)
    assert bench.settings.muted_advice == (ONE, OTHER)
    assert action.isEnabled()
    notes.presenter.unmute_all()
    assert bench.settings.muted_advice == () and not action.isEnabled()
    assert bench.window.said[-1] == "Notes of all kinds are shown again."
    bench.store.take(finding(ONE))
    assert [each.kind for each, _ in notes.shown] == [OTHER, ONE]


def test_what_was_muted_at_the_last_start_can_be_shown_again(bench) -> None:
    bench.settings.muted_advice = (ONE,)
    Notes(bench)
    assert bench.actions["tensors.show_muted_advice"].isEnabled()
