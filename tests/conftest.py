"""Fixtures for all tests: offscreen Qt, a home for each test, and a check that it leaves nothing.

`pytest` alone is enough to run tests: none depends on the machine's fonts, theme, locale, time
zone, home, terminal, handling of SIGINT, or speed.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import multiprocessing.resource_tracker
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import psutil
import pytest
from hypothesis import HealthCheck, settings
from PySide6.QtCore import QPoint, QSettings

from app.python_imports import import_plainly
from app.window.garbage import collect_due
from engine.system.current_modules import no_modules

import_plainly()

# Torch, Qt and child processes read these variables when they start, which is after this.
for _name in [name for name in os.environ if name.startswith(("QT_", "LC_"))]:
    del os.environ[_name]
os.environ |= {
    "QT_QPA_PLATFORM": "offscreen",
    "OMP_WAIT_POLICY": "PASSIVE",
    "OPENBLAS_NUM_THREADS": "1",  # a thread of numpy spins at each start of a process
    "FONTCONFIG_FILE": str(Path(__file__).with_name("fonts.conf")),
    "LC_ALL": "C.UTF-8",
    "LANGUAGE": "C",
    "TZ": "UTC",
    "COLUMNS": "80",
    "PYTHON_COLORS": "0",
}
# With bytecode, the many processes that tests start do not compile the program again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
if hasattr(time, "tzset"):
    time.tzset()

# A slow or busy machine must not fail a test.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


@pytest.fixture(autouse=True)
def modules_of_folders() -> Iterator[None]:
    """The modules that a test's files import are current in that test only."""
    with no_modules():
        yield


@pytest.fixture(scope="session")
def qapp(qapp):
    """pytest-qt's application, in the light theme and the program's own font."""
    from widgets import theme

    theme.apply(qapp, theme.LIGHT)
    qapp.setCursorFlashTime(0)  # pictures have a caret that does not blink
    _move_mouse_away()
    yield qapp
    # Offscreen, Qt frees the clipboard at the exit of the process, after Python has ended. Data
    # from Python would then crash it.
    qapp.clipboard().clear()


@pytest.fixture
def qtbot(qtbot):
    """pytest-qt's robot, which gives each widget under test the style of the main window."""
    from widgets import theme

    add = qtbot.addWidget

    def add_dressed(widget, **options) -> None:
        theme.dress(widget)
        add(widget, **options)

    qtbot.addWidget = add_dressed
    return qtbot


def pytest_collection() -> None:
    """Collect no garbage while the tests and all that they import are read: all of it stays."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Exclude the objects of all imported modules from garbage collection, to make it faster.
    Garbage is collected between tests, in this thread, as in the program."""
    gc.collect()
    gc.freeze()


_homes = itertools.count()


def _new_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # mktemp would search all earlier folders for the next number.
    home = tmp_path_factory.getbasetemp() / f"home-{next(_homes)}"
    (home / "run").mkdir(mode=0o700, parents=True)
    return home


def _is_untouched(home: Path) -> bool:
    return os.listdir(home) == ["run"] and not os.listdir(home / "run")


def _use_home(home: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("HOME", str(home))
    patch.setenv("XDG_CONFIG_DIRS", str(home))
    for kind in ("CONFIG", "CACHE", "DATA", "STATE"):
        patch.setenv(f"XDG_{kind}_HOME", str(home / kind.lower()))
    # The sockets of scripts that a window can attach to.
    patch.setenv("XDG_RUNTIME_DIR", str(home / "run"))
    for form in (QSettings.Format.IniFormat, QSettings.Format.NativeFormat):
        QSettings.setPath(form, QSettings.Scope.UserScope, str(home / "config"))


@pytest.fixture(scope="session", autouse=True)
def session_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home for fixtures that several tests share (an engine process): they start before the
    first test has its own home."""
    home = _new_home(tmp_path_factory)
    with pytest.MonkeyPatch.context() as patch:
        _use_home(home, patch)
        yield home


@pytest.fixture(scope="session")
def homes() -> list[Path]:
    """The newest home of a test."""
    return []


@pytest.fixture(autouse=True)
def own_settings(
    session_home: Path,
    homes: list[Path],
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """An empty folder for the home, settings, caches and data of this test: a new one, if an
    earlier test has written into the last one. Returns the folder."""
    if not homes or not _is_untouched(homes[0]):
        homes[:] = [_new_home(tmp_path_factory)]
    _use_home(homes[0], monkeypatch)
    return homes[0]


@pytest.fixture(scope="session")
def process_server() -> Iterator[None]:
    """The server of `tests/forking.py`, ready to fork."""
    from tests import forking

    with forking.server():
        yield


@pytest.fixture(scope="module")
def forked_processes(process_server: None) -> Iterator[None]:
    """Engines, layout workers and Python programs of this module are forked, not started, and so is
    all that they start: that is cheap."""
    from tests import forked_pythons

    with forked_pythons.forked():
        yield


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let SIGINT interrupt this process and those that it starts, and SIGHUP end them. A shell that
    runs the suite in the background would make them ignore the one, `nohup` the other."""
    handlers: dict[int, Any] = {signal.SIGINT: signal.default_int_handler}
    if hasattr(signal, "SIGHUP"):
        handlers[signal.SIGHUP] = signal.SIG_DFL
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


ENDING_S = 20.0
"""As long may threads and processes take that were told to end, on a machine with much to do."""


@pytest.fixture(autouse=True)
def nothing_left_behind(request: pytest.FixtureRequest, own_settings: Path) -> Iterator[None]:
    """Fail a test that leaves top-level widgets, threads, child processes or an entered random
    stream behind.

    This runs around all other fixtures of the test: they may clean up first.
    """
    threads = set(threading.enumerate())
    processes = _child_processes()
    widgets = _top_level_widgets()
    with _watched_streams() as streams:
        yield
        if streams:
            gc.collect()
    collect_due()
    faults: list[str] = []
    if streams:
        faults.append("a RandomStream that was not left: close the generator that entered it")
    left_widgets = _left_widgets(widgets)
    if request.node.get_closest_marker("one_program"):  # that keeps its popups
        left_widgets = {widget for widget in left_widgets if widget.isVisible()}
    if left_widgets:
        faults.append("top-level widgets: " + ", ".join(sorted(map(_described, left_widgets))))
        _delete(left_widgets)
    # torch.fx starts the thread of tqdm's monitor if tqdm is installed (with the bench's peers).
    left_threads = {
        thread
        for thread in set(threading.enumerate()) - threads
        if type(thread).__module__ != "tqdm._monitor"
    }
    # A DataLoader, for one, does not wait for the threads of its queues.
    for thread in left_threads:
        # One that another thread starts at this moment cannot be joined yet.
        thread._started.wait(ENDING_S)  # pyright: ignore[reportAttributeAccessIssue]
        thread.join(ENDING_S)
    left_threads = {thread for thread in left_threads if thread.is_alive()}
    if left_threads:
        faults.append("threads: " + ", ".join(sorted(thread.name for thread in left_threads)))
    left_processes = _child_processes() - processes
    if left_processes:
        _, left_processes = psutil.wait_procs(left_processes, timeout=ENDING_S)
    if left_processes:
        faults.append("processes: " + ", ".join(str(process) for process in left_processes))
        for process in left_processes:
            process.kill()
    _restore_theme()
    _release_mouse()
    _move_mouse_away()
    if faults:
        pytest.fail("left behind: " + "; ".join(faults), pytrace=False)


@contextlib.contextmanager
def _watched_streams() -> Iterator[set]:
    """The random streams that are entered in this context and not left. torch's generator keeps
    the numbers of such a stream until garbage collection ends it, during some later test."""
    randomness, streams = sys.modules.get("engine.restoring.randomness"), set()
    if randomness is None:
        yield streams
        return
    swap = randomness.RandomStream._swap

    def watched(stream) -> None:
        swap(stream)
        (streams.add if stream._active else streams.discard)(stream)

    with mock.patch.object(randomness.RandomStream, "_swap", watched):
        yield streams


def _child_processes() -> set[psutil.Process]:
    """All live descendants of this process, except the two that multiprocessing keeps for the whole
    session: its resource tracker and its fork server."""
    tracker = multiprocessing.resource_tracker._resource_tracker
    server = getattr(sys.modules.get("multiprocessing.forkserver"), "_forkserver", None)
    own = {getattr(tracker, "_pid", None), getattr(server, "_forkserver_pid", None)}
    processes: set[psutil.Process] = set()
    for pid in set(_descendants(os.getpid())) - own:
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            if process.status() != psutil.STATUS_ZOMBIE:
                processes.add(process)
    return processes


_CHILDREN_ARE_LISTED = Path(f"/proc/self/task/{os.getpid()}/children").exists()


def _descendants(pid: int) -> list[int]:
    """The ids of all descendants. Linux lists the children of each thread; psutil, which is slower,
    reads a file of every process."""
    if not _CHILDREN_ARE_LISTED:
        return [process.pid for process in psutil.Process(pid).children(recursive=True)]
    children: list[int] = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the process has ended
        for thread in os.listdir(f"/proc/{pid}/task"):
            with (
                contextlib.suppress(FileNotFoundError, ProcessLookupError),  # the thread has ended
                open(f"/proc/{pid}/task/{thread}/children") as listed,
            ):
                children += map(int, listed.read().split())
    return children + [pid for child in children for pid in _descendants(child)]


def _application():
    widgets = sys.modules.get("PySide6.QtWidgets")
    return widgets.QApplication.instance() if widgets else None


def _top_level_widgets() -> set:
    application = _application()
    # Qt itself keeps one tool tip, and a container for each combo box that was opened.
    own = ("QTipLabel", "QComboBoxPrivateContainer")
    if application is None:
        return set()
    return {w for w in application.topLevelWidgets() if w.metaObject().className() not in own}


def _left_widgets(before: set) -> set:
    """The top-level widgets that are not in `before`. Deferred deletions are done first, and if
    widgets remain, Python's garbage is collected."""
    application = _application()
    if application is None:
        return set()
    from PySide6.QtCore import QEvent

    application.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    if _top_level_widgets() - before:
        gc.collect()
        application.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    return _top_level_widgets() - before


def _described(widget) -> str:
    return f"{type(widget).__name__}({widget.objectName()!r})"


def _delete(widgets: set) -> None:
    import shiboken6
    from PySide6.QtCore import QEvent

    for widget in widgets:
        if shiboken6.isValid(widget):
            widget.hide()
            widget.deleteLater()
    application = _application()
    assert application is not None
    application.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def _restore_theme() -> None:
    theme = sys.modules.get("widgets.theme")
    application = _application()
    if theme is not None and application is not None and theme.current() is not theme.LIGHT:
        theme.apply(application, theme.LIGHT)


def _release_mouse() -> None:
    """Release a mouse button that a test left pressed, as a double click does. In the next test,
    Qt would take a move of the mouse for a drag."""
    application = _application()
    if application is not None and application.mouseButtons().value:
        from PySide6.QtCore import Qt
        from PySide6.QtTest import QTest
        from PySide6.QtWidgets import QWidget

        for button in (Qt.MouseButton.LeftButton, Qt.MouseButton.RightButton):
            if button & application.mouseButtons():
                QTest.mouseRelease(QWidget(), button)


OUTSIDE = (-1, -1)
"""A place of the pointer at which no window is: they open at 0, 0."""


def _move_mouse_away() -> None:
    """Move the pointer off the widgets of the next test, which Qt would draw as pointed at."""
    application = _application()
    if application is not None:
        from PySide6.QtGui import QCursor

        if QCursor.pos() != QPoint(*OUTSIDE):
            QCursor.setPos(*OUTSIDE)


@pytest.fixture
def sockets(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the sockets of processes that listen: one of the test's own, with a short
    path."""
    with tempfile.TemporaryDirectory(prefix="tl") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield Path(folder) / "tensorlab"


@pytest.fixture
def machine(sockets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Another machine is this one: a stand-in for ssh runs the command here. Its engines end."""
    from engine.connecting.places import listening

    stand_in = tmp_path / "ssh"
    stand_in.write_text('#!/bin/sh\nfor last; do :; done\nexec sh -c "exec $last"\n')
    stand_in.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.chdir(Path(__file__).parents[1])
    yield
    engines = [psutil.Process(place.about.pid) for place in listening()]
    for engine in engines:
        engine.kill()
    psutil.wait_procs(engines)
