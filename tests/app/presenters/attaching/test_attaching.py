"""Attaching to a script: the list of those that listen, calling one, why it fails, leaving it."""

from __future__ import annotations

import os
import queue
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection

import pytest
from PySide6.QtWidgets import QLabel, QPushButton

from app.presenters.attaching import attach as attaching
from app.presenters.attaching.attach import AttachPresenter
from app.presenters.engine import EnginePresenter
from app.processes.exit_reasons import explain_departure
from engine.connecting.dialing import dial
from engine.connecting.greeting import About, Hello, Refusal, Welcome
from engine.connecting.listener import Listener
from engine.process import Departure
from engine.system.program import version
from widgets.start.attach_view import AttachView

WAIT_MS = 30_000


class Script:
    """Stands for a script that listens."""

    def __init__(self) -> None:
        self.about = About(name="train.py", pid=os.getpid(), started_s=time.time())
        self.refuses, self.serves = "", False
        self.came: queue.SimpleQueue[Connection] = queue.SimpleQueue()
        self.listener = Listener(
            self.about, self._admit, lambda connection, _: self._keep(connection)
        )
        self._kept: list[Connection] = []

    def _admit(self, hello: Hello) -> Welcome | Refusal:
        return Refusal(self.refuses) if self.refuses else self._welcome(hello)

    def _welcome(self, hello: Hello) -> Welcome:
        return Welcome(self.about, hello.wants, serves=self.serves)

    def _keep(self, connection: Connection) -> None:
        self._kept.append(connection)
        self.came.put(connection)

    def close(self) -> None:
        self.listener.close()
        for connection in self._kept:
            connection.close()


@pytest.fixture
def script() -> Iterator[Script]:
    listening = Script()
    yield listening
    listening.close()


@pytest.fixture
def view(qtbot) -> AttachView:
    shown = AttachView()
    qtbot.addWidget(shown)
    shown.show()
    return shown


@pytest.fixture
def presenter(bench, view) -> Iterator[AttachPresenter]:
    engine = EnginePresenter(bench, bench.window)
    made = AttachPresenter(bench, engine.may_end, bench.window)
    engine.reconnect_requested.connect(made.reconnect)
    made.show_in(view)
    yield made
    for call in bench.link.calls:
        call.connection.close()


def lines(view: AttachView) -> list[str]:
    return [line.text() for line in view.findChildren(QPushButton, "attach_running")]


def attached(link, qtbot) -> None:
    qtbot.waitUntil(lambda: link.attached is not None, timeout=WAIT_MS)


def test_scripts_that_listen_are_listed_until_they_end(presenter, view, script):
    presenter.look()
    since = time.strftime("%H:%M:%S", time.localtime(script.about.started_s))
    assert lines(view) == [f"train.py (pid {os.getpid()})    since {since}"]
    assert not view.findChild(QPushButton, "attach").isEnabled()
    script.close()
    presenter.look()
    assert [
        line for line in view.findChildren(QPushButton, "attach_running") if line.isVisible()
    ] == []


def test_where_scripts_cannot_be_listed_the_page_says_so(presenter, view, monkeypatch):
    """As on Windows, where they listen on TCP only."""
    none = view.findChild(QLabel, "attach_none")
    presenter.look()
    assert none.isVisible() and "is listed here" in none.text()
    monkeypatch.setattr("engine.connecting.places.has_sockets", lambda: False)
    presenter.look()
    assert none.isVisible() and none.text().startswith("On this system scripts are not listed.")


def test_it_looks_by_itself_while_the_list_is_seen(presenter, view, script, qtbot, monkeypatch):
    assert presenter._timer.interval() == attaching.LOOK_MS
    qtbot.waitUntil(lambda: lines(view) != [], timeout=WAIT_MS)
    view.hide()
    monkeypatch.setattr(view, "show_running", lambda _: pytest.fail("nobody sees it"))
    presenter.look()


def test_a_line_of_the_list_attaches(presenter, view, script, bench, link, qtbot):
    presenter.look()
    view.findChild(QPushButton, "attach_running").click()
    assert view.button.text().startswith("Calling ") and not view.isEnabled()
    attached(link, qtbot)
    assert link.attached == Welcome(script.about, "steer")
    assert bench.window.workspace == "train"
    assert view.isEnabled() and view.button.text() == "Attach"
    assert bench.settings.attach_address == "train.py"  # the next run has another socket


def test_an_address_that_is_typed_attaches_and_is_remembered(
    presenter, view, script, bench, link, qtbot
):
    view.address.setText(" train.py ")
    view.button.click()
    attached(link, qtbot)
    assert bench.settings.attach_address == "train.py"
    again = AttachView()
    qtbot.addWidget(again)
    AttachPresenter(bench, lambda *_: True, bench.window).show_in(again)
    assert again.address.text() == "train.py"


def test_why_nothing_answers_is_said_beside_the_list(presenter, view, bench, link, qtbot):
    view.address.setText("nobody")
    view.button.click()
    qtbot.waitUntil(lambda: view.isEnabled(), timeout=WAIT_MS)
    assert view._error.text().startswith("No process nobody listens.")
    assert link.attached is None and bench.settings.attach_address == ""


def test_a_refusal_is_said_in_its_own_words(presenter, view, script, qtbot):
    script.refuses = "Not today."
    presenter.attach("train.py")
    qtbot.waitUntil(lambda: view._error.text() == "Not today.", timeout=WAIT_MS)


def test_the_user_is_asked_before_weights_are_lost(
    presenter, script, bench, link, qtbot, monkeypatch
):
    link.get_ready()
    monkeypatch.setattr(type(bench.weights), "modified", property(lambda _: True))
    bench.dialogs.agrees = False
    presenter.attach("train.py")
    assert link.state == "ready" and script.came.empty()
    assert bench.dialogs.asked == [
        "Attach to another process? This engine's weights are lost; checkpoints and files stay."
    ]


def test_a_connection_that_was_lost_can_be_made_again(presenter, view, script, bench, link, qtbot):
    presenter.attach("train.py")
    attached(link, qtbot)
    link.attached = None
    link.close()
    link.lost.emit(explain_departure(Departure(script.about.title, lives=True)))
    assert link.state == "starting"  # an engine of the window's own
    banner = bench.window.banners.banner("engine")
    assert banner.title == f"The connection to train.py (pid {os.getpid()}) was lost"
    banner.findChild(QPushButton).click()
    attached(link, qtbot)
    assert len(link.calls) == 2 and bench.window.banners.banner("engine") is None


def test_a_reconnection_that_fails_says_so_where_it_is_seen(
    presenter, view, script, bench, link, qtbot
):
    presenter.use(dial("train.py", version()), lambda: dial("train.py", version()))
    script.close()
    view.hide()
    presenter.reconnect()
    qtbot.waitUntil(lambda: bench.window.banners.banner("attach") is not None, timeout=WAIT_MS)
    assert "No process train.py listens." in bench.window.banners.banner("attach").text


def test_the_engines_place_says_what_it_is_attached_to(presenter, script, bench, link):
    presenter.use(dial("train.py", version(), wants="watch"), lambda: None)
    title = f"train.py (pid {os.getpid()})"
    assert bench.window.engine == ("starting", f"attaching to {title}…")
    link.get_ready()
    assert bench.window.engine == ("ready", f"watching {title}")
    assert bench.actions["engine.detach"].isEnabled()
    assert not bench.actions["engine.restart"].isVisible()


def test_detaching_starts_an_engine_of_the_windows_own(presenter, script, bench, link):
    engine = bench.window.findChild(EnginePresenter)
    presenter.use(dial("train.py", version()), lambda: None)
    link.get_ready()
    engine.detach()
    link.get_ready()
    assert link.attached is None and bench.window.engine[1].startswith("ready · torch")
    assert not bench.actions["engine.detach"].isVisible()
    assert bench.actions["engine.restart"].isEnabled()


def test_an_engine_that_serves_windows_is_as_one_of_the_windows_own(presenter, script, bench, link):
    script.serves = True
    presenter.use(dial("train.py", version()), lambda: None)
    link.get_ready()
    title = f"train.py (pid {os.getpid()})"
    assert bench.window.engine == ("ready", f"ready · torch 2.13.0 · CPU of 8 cores · {title}")
    assert link.script is None and bench.actions["engine.detach"].isEnabled()
