"""Settings > Engine: where the engine runs, why it is not reached, and the connection's loss."""

from __future__ import annotations

from collections.abc import Iterator
from multiprocessing import Pipe

import pytest
from PySide6.QtWidgets import QPushButton, QWidget

from app.presenters.attaching.place import PlacePresenter
from app.presenters.engine import EnginePresenter
from app.processes.exit_reasons import explain_departure, explain_unreached
from engine.connecting.dialing import Call
from engine.connecting.engine_place import EnginePlace
from engine.connecting.greeting import About, Refused, Unwelcome, Welcome
from engine.process import Departure, Unreached
from engine.protocol import TrainingSnapshot
from tests.app.conftest import SCRIPT

WAIT_MS = 30_000
BOX = EnginePlace("ssh box", "/opt/python")
WELCOME = Welcome(About(name="tensorlab-engine", pid=4711), "steer", serves=True)


class Engines:
    """What the engines that are called answer, in order: an error, or None to take the call."""

    def __init__(self) -> None:
        self.answers: list[Unwelcome | None] = []
        self.called: list[tuple[EnginePlace, bool]] = []
        self.ends = Pipe()

    def call(self, place: EnginePlace, instead: bool = False, anew: bool = False) -> Call:
        self.called.append((place, instead))
        answer = self.answers.pop(0)
        if answer is not None:
            raise answer
        return Call(self.ends[0], WELCOME)  # pyright: ignore[reportArgumentType]


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> Iterator[Engines]:
    made = Engines()
    monkeypatch.setattr(
        EnginePlace, "call", lambda place, instead=False, anew=False: made.call(place, instead)
    )
    yield made
    for end in made.ends:
        end.close()


@pytest.fixture
def engine(bench) -> EnginePresenter:
    return EnginePresenter(bench, bench.window)


@pytest.fixture
def place(bench, engine, engines, qtbot) -> PlacePresenter:
    made = PlacePresenter(bench, engine.may_end, bench.window)
    engine.place_requested.connect(made.open)
    made.open()
    qtbot.addWidget(made.dialog)
    return made


def choose_box(place: PlacePresenter) -> None:
    view = place.dialog.engine
    view.kind.setCurrentIndex(1)
    view.host.setText(" box ")
    view.python.setText("/opt/python")
    view.use.click()


def words(place: PlacePresenter, name: str) -> str:
    return place.dialog.engine.findChild(QWidget, name).text()


def press(bench, name: str) -> None:
    banner = bench.window.banners.banner("engine")
    next(b for b in banner.findChildren(QPushButton) if b.text() == name).click()


def test_an_engine_that_answers_is_used_and_remembered(place, bench, link, engines, qtbot):
    engines.answers = [None]
    choose_box(place)
    assert words(place, "engine_use") == "Calling ssh box…" and not place.dialog.engine.isEnabled()
    qtbot.waitUntil(lambda: link.place is not None, timeout=WAIT_MS)
    assert engines.called == [(BOX, False)] and len(link.calls) == 1
    assert bench.settings.engine_place == BOX and place.dialog.engine.isEnabled()
    assert words(place, "engine_in_use") == "Starting the engine at ssh box…"
    link.get_ready()
    assert words(place, "engine_in_use") == "In use: the engine at ssh box."
    assert bench.window.engine == ("ready", "ready · torch 2.13.0 · CPU of 8 cores · ssh box")
    assert bench.actions["engine.restart"].isVisible()
    assert not bench.actions["engine.detach"].isVisible()


def test_the_next_window_begins_there(bench, engine, engines):
    bench.settings.engine_place = EnginePlace("ssh box", "/opt/python", "secret")
    PlacePresenter(bench, engine.may_end, bench.window)
    assert bench.link.place == BOX  # the key is not kept
    bench.link.start()
    assert bench.window.engine == ("starting", "calling ssh box…")


def test_why_it_is_not_reached_is_said_in_place_and_nothing_changes(
    place, bench, link, engines, qtbot
):
    link.get_ready()
    engines.answers = [Unwelcome("ssh: no route to host.")]
    choose_box(place)
    view = place.dialog.engine
    qtbot.waitUntil(view.isEnabled, timeout=WAIT_MS)
    assert words(place, "engine_error") == "ssh: no route to host."
    assert (link.state, link.place, bench.settings.engine_place) == ("ready", None, None)
    view.kind.setCurrentIndex(0)
    assert words(place, "engine_error") == ""


@pytest.mark.parametrize("agrees", [True, False])
def test_the_place_of_another_window_is_taken_only_if_the_user_says_so(
    place, bench, link, engines, qtbot, agrees
):
    bench.dialogs.agrees = agrees
    engines.answers = [Refused("Another window is attached.", is_taken=True), None]
    choose_box(place)
    qtbot.waitUntil(lambda: bool(bench.dialogs.asked), timeout=WAIT_MS)
    assert bench.dialogs.asked == ["Another window has the engine at ssh box. Take its place?"]
    if agrees:
        qtbot.waitUntil(lambda: link.place is not None, timeout=WAIT_MS)
    assert [instead for _, instead in engines.called] == [False, True][: 1 + agrees]
    assert link.place == (BOX if agrees else None)


def test_back_to_this_machine(place, bench, link, engines):
    bench.settings.engine_place = link.place = BOX
    place.dialog.engine.kind.setCurrentIndex(0)
    place.dialog.engine.use.click()
    assert link.place is None and bench.settings.engine_place is None and link.state == "starting"


def test_the_user_is_asked_before_weights_are_lost(place, bench, link, engines, monkeypatch):
    link.get_ready()
    monkeypatch.setattr(type(bench.weights), "modified", property(lambda _: True))
    bench.dialogs.agrees = False
    choose_box(place)
    assert engines.called == []
    assert bench.dialogs.asked == [
        "Use another engine? This one's weights are lost; checkpoints and files stay."
    ]


def connected(link) -> None:
    """The engine elsewhere is ready."""
    link.start_at(BOX)
    link.attached = WELCOME
    link.get_ready()


def test_a_lost_connection_starts_nothing_here_and_reconnects(place, bench, link):
    connected(link)
    link.close()
    link.lost.emit(explain_departure(Departure("tensorlab-engine (pid 4711)"), BOX))
    assert link.state == "lost" and bench.window.engine == ("lost", "no connection · ssh box")
    banner = bench.window.banners.banner("engine")
    assert banner.title == "The connection to the engine at ssh box was lost"
    assert [b.text() for b in banner.findChildren(QPushButton)][:3] == [
        "Reconnect", "Use this machine", "Settings…",
    ]  # fmt: skip
    press(bench, "Reconnect")
    assert link.starts[-1] == (False, False) and link.place == BOX
    link.is_found_again, link.attached = True, WELCOME
    link.get_ready()
    assert bench.window.banners.banner("engine") is None


def test_an_engine_that_has_ended_meanwhile_is_told_apart(
    place, bench, link, training_snapshot: type[TrainingSnapshot]
):
    connected(link)
    bench.store.take(training_snapshot(state="running"))
    link.close()
    link.lost.emit(explain_departure(Departure("tensorlab-engine (pid 4711)"), BOX))
    press(bench, "Reconnect")
    link.attached = WELCOME
    link.get_ready()
    banner = bench.window.banners.banner("engine")
    assert banner.title == "The engine at ssh box is a new one: the other has ended"
    assert banner.text.startswith("It has no variables and no weights.")


def test_an_engine_that_is_not_reached_at_the_start_is_told_with_ways_to_go_on(place, bench, link):
    link.place = BOX
    link.start()
    link.close()
    link.lost.emit(explain_unreached(Unreached("ssh box", "ssh: Permission denied.")))
    banner = bench.window.banners.banner("engine")
    assert banner.title == "The engine at ssh box was not reached"
    assert banner.text == "ssh: Permission denied."
    press(bench, "Use this machine")
    assert link.place is None and link.state == "starting"


def test_the_place_of_another_window_is_offered(place, bench, link):
    link.place = BOX
    link.lost.emit(explain_unreached(Unreached("ssh box", "Another window.", is_taken=True)))
    press(bench, "Take its place")
    assert link.starts[-1] == (True, False)


def test_restart_calls_an_engine_anew_and_asks_first(place, engine, bench, link, monkeypatch):
    connected(link)
    monkeypatch.setattr(type(bench.weights), "modified", property(lambda _: True))
    bench.dialogs.agrees = False
    engine.restart()
    assert link.state == "ready"
    bench.dialogs.agrees = True
    engine.restart()
    assert link.starts[-1] == (False, True)


def test_an_engine_that_was_started_by_hand_is_not_restarted(place, bench, link):
    link.place = EnginePlace("127.0.0.1:4711")
    link.attached = WELCOME
    link.get_ready()
    assert not bench.actions["engine.restart"].isVisible()


def test_a_run_of_a_window_before_is_a_job_of_this_one(place, bench, link, training_snapshot):
    connected(link)
    link._receive(training_snapshot(state="running", reply_to=7))
    assert bench.window.engine == ("busy", "training… · ssh box")
    link.finish(to=7)
    assert bench.window.engine[0] == "ready"


def test_the_fields_are_those_of_the_kind(place):
    view = place.dialog.engine
    assert not view.host.isVisible() and view.use.isEnabled()
    view.kind.setCurrentIndex(1)
    assert view.host.isVisible() and not view.use.isEnabled()
    view.kind.setCurrentIndex(2)
    view.address.setText("box")
    assert view.use.isEnabled() and not view.key.isEnabled() and not view.host.isVisible()
    view.address.setText("127.0.0.1:4711")
    assert view.key.isEnabled()
    view.show_place("ssh me@box", "/opt/python")
    assert (view.host.text(), view.python.text()) == ("me@box", "/opt/python")


@pytest.mark.parametrize("agrees", [True, False])
def test_words_about_another_window_go_once_its_place_is_taken(
    place, bench, monkeypatch, agrees: bool
):
    bench.dialogs.agrees = agrees
    called: list[tuple[EnginePlace, bool]] = []
    monkeypatch.setattr(EnginePlace, "call", lambda place, instead: called.append((place, instead)))
    monkeypatch.setattr(place._calling, "call", lambda way: way())
    place.choose("ssh box", "/opt/python", "secret")
    at = EnginePlace("ssh box", "/opt/python", "secret")
    assert called == [(at, False)]
    place._on_failed(Refused("Another window is attached.", is_taken=True))
    assert called[1:] == ([(at, True)] if agrees else [])
    assert words(place, "engine_error") == ("" if agrees else "Another window is attached.")
    assert place.dialog.engine.isEnabled() is not agrees
    del called[:]
    place._on_failed(Refused("No.", is_taken=False))
    assert called == [] and words(place, "engine_error") == "No."


def test_an_engine_that_may_not_end_or_is_ours_is_called_as_that(place, bench, link, monkeypatch):
    called: list[bool] = []
    monkeypatch.setattr(EnginePlace, "call", lambda place, instead: called.append(instead))
    monkeypatch.setattr(place._calling, "call", lambda way: way())
    for own, is_ours in ((None, False), (EnginePlace("ssh other"), False), (BOX, True)):
        link.place = own
        place.choose("ssh box")
        assert called[-1] is is_ours
    place._may_end = lambda question, yes: False
    place.choose("ssh box")
    assert len(called) == 3


def test_what_is_in_use_is_said_of_each_state(place, link):
    link.close()
    assert words(place, "engine_in_use") == "There is no engine now."
    link.start()
    assert words(place, "engine_in_use") == "Starting the engine on this machine…"
    link.get_ready()
    assert words(place, "engine_in_use") == "In use: the engine on this machine."
    link.attach_to(SCRIPT)
    assert words(place, "engine_in_use") == f"In use: {SCRIPT.about.title}."
