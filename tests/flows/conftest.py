"""The whole program with its engine in this process, and a person who answers its dialogs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest
import shiboken6
from PySide6.QtWidgets import (
    QAbstractButton,
    QComboBox,
    QLineEdit,
    QPlainTextEdit,
    QSplitter,
    QTabWidget,
    QWidget,
)

from app.application import Application
from app.processes.engine_link import EngineLink
from app.processes.inline_link import InlineLink
from app.processes.worker_processes import WorkerProcesses
from app.window.main_window import MainWindow
from engine.project.document import Workspace
from tests.gestures import Answers, started


@pytest.fixture(scope="module")
def shared_answers() -> Answers:
    return Answers()


@pytest.fixture
def answers(shared_answers: Answers) -> Answers:
    """Without an answer of an earlier test."""
    vars(shared_answers).clear()
    shared_answers.__init__()
    return shared_answers


@pytest.fixture
def program(request: pytest.FixtureRequest) -> Application:
    """The program, shown and started; `program.bench.link.drain()` lets the engine work. The tests
    of a module that is marked `one_program` get the same, but those marked `own_program`."""
    marked = request.node.get_closest_marker
    shared = marked("one_program") and not marked("own_program")
    return request.getfixturevalue("program_again" if shared else "new_program")


@pytest.fixture
def new_program(forked_processes, qtbot, tmp_path, answers) -> Iterator[Application]:
    with started(InlineLink, answers, tmp_path) as application:
        application.bench.link.drain()
        yield application


@pytest.fixture
def program_again(shared_program, qtbot, answers) -> Iterator[Application]:
    application, as_built = shared_program
    application.window.activateWindow()
    yield application
    answers.leave = "discard"
    begin_again(application, as_built)


@pytest.fixture(scope="module", autouse=True)
def shared_program(
    request: pytest.FixtureRequest, qapp, tmp_path_factory, shared_answers
) -> Iterator[tuple[Application, AsBuilt] | None]:
    """The program of a module that is marked `one_program`: to build its pages takes longer than
    most tests."""
    if not request.node.get_closest_marker("one_program"):
        yield None
        return
    request.getfixturevalue("forked_processes")
    with started(InlineLink, shared_answers, tmp_path_factory.mktemp("program")) as application:
        application.bench.link.drain()
        yield application, AsBuilt(application.window)


class AsBuilt:
    """What each page's boxes, fields and tabs were when it was built, to set them so again."""

    def __init__(self, window: MainWindow) -> None:
        self._undo: list[tuple[QWidget, Callable[[], object]]] = []
        for page in (window, *window.pages.values()):
            self._keep(page)
        add = window.add_page

        def add_and_keep(name: Workspace, page: QWidget) -> None:
            add(name, page)
            self._keep(page)

        window.add_page = add_and_keep

    def _keep(self, page: QWidget) -> None:
        for widget in page.findChildren(QWidget):
            match widget:
                case QComboBox() | QTabWidget():
                    undo = partial(widget.setCurrentIndex, widget.currentIndex())
                case QLineEdit():
                    undo = partial(widget.setText, widget.text())
                case QPlainTextEdit() if not widget.isReadOnly():  # others follow what they show
                    undo = partial(widget.setPlainText, widget.toPlainText())
                case QAbstractButton() if widget.isCheckable():
                    undo = partial(widget.setChecked, widget.isChecked())
                case QSplitter():
                    undo = partial(widget.restoreState, widget.saveState())
                case _:
                    continue
            self._undo.append((widget, undo))

    def restore(self) -> None:
        for widget, undo in self._undo:
            if shiboken6.isValid(widget):
                undo()


def begin_again(application: Application, as_built: AsBuilt) -> None:
    """Leave the project and all that was done with it: a new engine, an empty document, no
    settings, the pages as they were built."""
    bench, window = application.bench, application.window
    bench.link.drain()
    as_built.restore()
    bench.link.restart()
    bench.link.drain()
    bench.files.new()
    bench.settings._store.clear()
    bench.layout.close()
    bench.layout._workers = WorkerProcesses()
    vars(bench.layout).pop("_threads", None)
    for key in list(window.banners._banners):
        window.banners.dismiss(key)
    window.show_workspace("start")
    window.resize(1440, 900)


@pytest.fixture
def real_program(forked_processes, qtbot, tmp_path, answers) -> Iterator[Application]:
    """The program with an engine process, ready."""
    with started(EngineLink, answers, tmp_path) as application:
        qtbot.waitUntil(lambda: application.bench.link.state == "ready", timeout=60_000)
        yield application
