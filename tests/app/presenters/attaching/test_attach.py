"""Which processes the window may attach to, calling one, and what is remembered of it: without
processes."""

from __future__ import annotations

import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PySide6.QtCore import QTimer

from app.presenters.attaching import attach as module
from app.presenters.attaching.attach import LOOK_MS, AttachPresenter
from engine.connecting.greeting import About, Unwelcome, Welcome
from engine.system.program import version
from tests.app.presenters.attaching.test_siblings import Asked
from widgets.start.attach_view import AttachView, Running

ABOUT = About(name="train.py", pid=7, script="/a/train.py", started_s=1_700_000_000.0)


def call_of(through: object = None) -> Any:
    return SimpleNamespace(welcome=Welcome(ABOUT, "steer"), through=through)


class Desk:
    def __init__(self, bench: Any, qtbot: Any, agrees: list[tuple[str, str]]) -> None:
        self.bench, self.agrees = bench, True
        self.asked: list[tuple[str, str]] = agrees
        self.presenter = AttachPresenter(bench, self.may_end, bench.window)
        (self.calling,) = Asked.made
        self.view = AttachView()
        qtbot.addWidget(self.view)
        self.told: list[Any] = []
        self.view.tell = lambda words: self.told.append(("tell", words))
        self.view.show_calling = lambda address: self.told.append(("calling", address))
        self.view.show_running = lambda found: self.told.append(("running", list(found)))
        self.view.show_unlisted = lambda: self.told.append("unlisted")
        self.view.show_address = lambda address: self.told.append(("address", address))
        bench.link.attach = lambda call: self.told.append(("attach", call))

    def may_end(self, question: str, yes: str) -> bool:
        self.asked.append((question, yes))
        return self.agrees

    def show(self) -> None:
        self.presenter.show_in(self.view)
        self.view.show()
        self.told.clear()


@pytest.fixture
def desk(bench, qtbot, monkeypatch) -> Desk:
    monkeypatch.setattr(module, "Calling", Asked)
    Asked.made = []
    return Desk(bench, qtbot, [])


# -- which there are -------------------------------------------------------------------------------


def test_processes_are_listed_while_the_list_is_seen(desk: Desk, monkeypatch) -> None:
    place = SimpleNamespace(about=ABOUT, socket=Path("/run/7.sock"))
    typed = SimpleNamespace(
        about=About(name="python", pid=8, started_s=0.0), socket=Path("/run/8.sock")
    )
    monkeypatch.setattr("engine.connecting.places.has_sockets", lambda: True)
    monkeypatch.setattr("engine.connecting.places.listening", lambda: [place, typed])
    desk.presenter.look()  # there is no list
    desk.bench.settings.attach_address = "box:4000"
    desk.presenter.show_in(desk.view)
    assert desk.told == [("address", "box:4000")]
    timer = desk.presenter.findChild(QTimer)
    assert timer.isActive() and timer.interval() == LOOK_MS
    timer.timeout.emit()
    assert len(desk.told) == 1  # it is not seen
    desk.view.show()
    timer.timeout.emit()
    then = datetime.datetime.fromtimestamp(ABOUT.started_s)
    first = Running(
        "/run/7.sock", ABOUT.title, f"since {then:%H:%M:%S}",
        f"/a/train.py\nListens since {then:%d %b %Y, %H:%M:%S}.",
    )  # fmt: skip
    ((kind, found),) = desk.told[1:]
    assert kind == "running" and found[0] == first
    assert found[1].address == "/run/8.sock" and found[1].tip.startswith("Typed at a prompt\n")


def test_where_none_can_be_listed_that_is_said(desk: Desk, monkeypatch) -> None:
    monkeypatch.setattr("engine.connecting.places.has_sockets", lambda: False)
    monkeypatch.setattr("engine.connecting.places.listening", list)
    desk.show()
    desk.presenter.look()
    assert desk.told == ["unlisted", ("running", [])]


@pytest.mark.parametrize("error", [OSError("No folder."), Unwelcome("It is of another user.")])
def test_why_they_cannot_be_listed_is_said(desk: Desk, monkeypatch, error: Exception) -> None:
    def refuse() -> Any:
        raise error

    monkeypatch.setattr("engine.connecting.places.has_sockets", lambda: True)
    monkeypatch.setattr("engine.connecting.places.listening", refuse)
    desk.show()
    desk.presenter.look()
    assert desk.told == [("running", []), ("tell", str(error))]


# -- calling one -----------------------------------------------------------------------------------


def test_an_address_is_called_once_the_user_agrees(desk: Desk, monkeypatch) -> None:
    called: list[Any] = []
    monkeypatch.setattr("engine.connecting.ssh.call_at", lambda *to: called.append(to))
    desk.show()
    desk.agrees = False
    desk.view.attach_requested.emit("box:4000", "key")
    assert desk.asked == [("Attach to another process? This engine's", "Attach")]
    assert desk.calling.ways == [] and desk.told == []
    desk.agrees = True
    desk.view.attach_requested.emit("box:4000", "key")
    (way,) = desk.calling.ways
    way()
    assert called == [("box:4000", version(), "key")]
    assert desk.told == [("tell", ""), ("calling", "box:4000")]
    desk.presenter.reconnect()
    assert desk.calling.ways == [way, way]


def test_a_process_that_answers_is_shown_in_train(desk: Desk, bench) -> None:
    desk.show()
    for key in ("engine", "attach"):
        bench.window.banners.show_banner(key, "error", "It was lost.")
    desk.presenter.attach("7", way=lambda: call_of())
    desk.told.clear()
    call = call_of()
    desk.calling.answered.emit(call)
    assert desk.told == [("calling", ""), ("attach", call)]
    assert bench.window.workspace == "train" and desk.presenter.is_here
    for key in ("engine", "attach"):
        assert bench.window.banners.banner(key) is None


@pytest.mark.parametrize(
    ("address", "call", "remembered", "is_here"),
    [
        ("7", call_of(), "train.py", True),
        ("box:4000", call_of(), "box:4000", True),
        ("ssh box 7", call_of(through=object()), "ssh box 7", False),
    ],
)
def test_what_is_called_again_in_the_next_window(
    desk: Desk, bench, address: str, call: Any, remembered: str, is_here: bool
) -> None:
    desk.presenter.attach(address, way=lambda: call)
    desk.calling.answered.emit(call)
    assert bench.settings.attach_address == remembered and desk.presenter.is_here == is_here


def test_why_none_answers_is_said_where_it_is_seen(desk: Desk, bench) -> None:
    desk.presenter.attach("7", way=lambda: call_of())
    desk.calling.failed.emit(Unwelcome("Nobody listens."))
    banner = bench.window.banners.banner("attach")
    assert (banner.title, banner.text) == ("No process was attached to", "Nobody listens.")
    desk.show()
    desk.presenter.attach("7", way=lambda: call_of())
    desk.told.clear()
    desk.calling.failed.emit(Unwelcome("Nobody listens."))
    assert desk.told == [("calling", ""), ("tell", "Nobody listens.")]
    desk.view.hide()
    bench.window.banners.dismiss("attach")
    desk.calling.failed.emit(Unwelcome("Nobody listens."))
    assert bench.window.banners.banner("attach") is not None


def test_a_process_that_was_called_already_can_be_called_again(desk: Desk) -> None:
    desk.presenter.reconnect()
    assert desk.calling.ways == []  # none was called
    call = call_of(through=object())
    desk.presenter.use(call, "way")  # pyright: ignore[reportArgumentType]
    assert not desk.presenter.is_here and desk.told == [("attach", call)]
    desk.presenter.reconnect()
    assert desk.calling.ways == ["way"]


def test_an_engine_that_the_settings_named_is_told_once_and_can_be_attached_to(
    desk: Desk, bench
) -> None:
    desk.presenter.tell_former_engine()
    assert bench.window.banners.banner("former_engine") is None
    bench.settings._store.setValue("engine/address", "ssh box")
    desk.presenter.tell_former_engine()
    banner = bench.window.banners.banner("former_engine")
    assert banner.title == "The engine runs on this machine now, not at ssh box"
    assert "`tensorlab attach --ssh HOST`" in banner.text
    assert bench.settings.attach_address == "ssh box"
    bench.window.banners.dismiss("former_engine")
    desk.presenter.tell_former_engine()
    assert bench.window.banners.banner("former_engine") is None
