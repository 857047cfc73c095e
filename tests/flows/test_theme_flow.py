"""A change of theme while the program runs leaves nothing in the colours of the other theme."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QSettings
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication, QMainWindow

from app import templates
from app.application import Application, build
from app.processes.inline_link import InlineLink
from app.settings import Settings, ThemeChoice
from engine.project.examples import trace_examples
from tests.pictures import differing_spots

WORKSPACES = ("start", "tensors", "model", "train")


@pytest.fixture
def made(tmp_path, answers) -> Iterator:
    """Builds programs, each with something to see in every workspace."""
    applications: list[Application] = []

    def make(choice: ThemeChoice) -> Application:
        folder = tmp_path / str(len(applications))
        settings = Settings(QSettings(str(folder / "settings.ini"), QSettings.Format.IniFormat))
        settings.theme = choice
        application = build(InlineLink, answers, settings, folder / "recovery")
        applications.append(application)
        application.window.resize(1440, 900)
        application.window.show()
        application.start()
        application.bench.files.new(templates.load_template("mlp"))
        application.workspaces.run_python("x = torch.arange(6.).view(2, 3)  # a view\nx.view(7)")
        trace = application.window.page("autograd").trace
        trace.source.input.set_source(trace_examples()["custom_function"].code)
        trace.start()
        steps = application.window.page("autograd").steps
        steps.forward.start_requested.emit(0)
        steps.forward.move_requested.emit("end", "")
        steps.backward.start_requested.emit()
        application.bench.link.drain()
        return application

    yield make
    for application in applications:
        application.window.close()
        application.window.deleteLater()
        application.deleteLater()


def pictures(application: Application, qtbot) -> dict[str, QImage]:
    window = application.window
    found = {}
    for name in WORKSPACES:
        window.show_workspace(name)
        settle(application)
        found[name] = taken(window)
    window.show_workspace("autograd")
    page = window.page("autograd")
    for place in range(page.count()):
        page.setCurrentIndex(place)
        settle(application)
        if page.widget(place) is page.steps:
            qtbot.waitUntil(lambda: page.steps.graph.laid_out, timeout=30_000)
            settle(application)
        found[page.tabText(place)] = taken(window)
    return found


def taken(window: QMainWindow) -> QImage:
    """The window without a caret and without a message that passes: which window is active, and how
    long ago something was told, have nothing to do with the theme."""
    window.statusBar().clearMessage()
    focused = window.focusWidget()
    if focused is not None:
        focused.clearFocus()
    return window.grab().toImage()


def settle(application: Application) -> None:
    for _ in range(3):
        application.bench.link.drain()
        QApplication.processEvents()
    application.bench.link.drain()  # what the last events have asked for: no picture says "busy"


def test_all_that_is_seen_follows_the_theme(made, qtbot) -> None:
    switched = made("light")
    light = pictures(switched, qtbot)
    switched.bench.actions["view.theme_dark"].trigger()
    shown = pictures(switched, qtbot)
    fresh = pictures(made("dark"), qtbot)
    assert len(fresh) == len(WORKSPACES) + 5
    for name, image in fresh.items():
        ground = differing_spots(light[name], image)[0]
        assert ground.width() * ground.height() > image.width() * image.height() / 2, name
        spots = differing_spots(shown[name], image)
        assert not spots, f"{name} has other colours in {len(spots)} spots: {spots[:5]}"
