"""What every test stands on: offscreen Qt, own settings, and nothing left behind.

`pytest` alone is enough: no test depends on the machine's fonts, theme, locale, time zone, home,
terminal, handling of SIGINT, or speed.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import multiprocessing.resource_tracker
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from hypothesis import HealthCheck, settings
from PySide6.QtCore import QSettings

# All are read when torch is imported, the application made or a process started: later than this.
for _name in [name for name in os.environ if name.startswith(("QT_", "LC_"))]:
    del os.environ[_name]
os.environ |= {
    "QT_QPA_PLATFORM": "offscreen",
    "OMP_WAIT_POLICY": "PASSIVE",
    "FONTCONFIG_FILE": str(Path(__file__).with_name("fonts.conf")),
    "LC_ALL": "C.UTF-8",
    "LANGUAGE": "C",
    "TZ": "UTC",
    "COLUMNS": "80",
    "PYTHON_COLORS": "0",
}
if hasattr(time, "tzset"):
    time.tzset()

# A slow or busy machine is no failure.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def qapp(qapp):
    """pytest-qt's application, in the light theme and the program's own font."""
    from widgets import theme

    theme.apply(qapp, theme.LIGHT)
    qapp.setCursorFlashTime(0)  # a caret that stands still in pictures
    yield qapp
    # Offscreen, Qt frees the clipboard when the process exits, after Python has gone: data that
    # was made in Python would then crash it.
    qapp.clipboard().clear()


def pytest_collection_finish() -> None:
    """What the modules made stays: no collection of garbage looks through it again."""
    gc.collect()
    gc.freeze()


_homes = itertools.count()


def _own_home(tmp_path_factory: pytest.TempPathFactory, patch: pytest.MonkeyPatch) -> Path:
    # Not by mktemp: it looks through all earlier folders for the next number.
    home = tmp_path_factory.getbasetemp() / f"home-{next(_homes)}"
    home.mkdir()
    patch.setenv("HOME", str(home))
    patch.setenv("XDG_CONFIG_DIRS", str(home))
    for kind in ("CONFIG", "CACHE", "DATA", "STATE"):
        patch.setenv(f"XDG_{kind}_HOME", str(home / kind.lower()))
    for form in (QSettings.Format.IniFormat, QSettings.Format.NativeFormat):
        QSettings.setPath(form, QSettings.Scope.UserScope, str(home / "config"))
    return home


@pytest.fixture(scope="session", autouse=True)
def session_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The home of what a module's tests share, an engine say: it starts before the first test."""
    with pytest.MonkeyPatch.context() as patch:
        yield _own_home(tmp_path_factory, patch)


@pytest.fixture(autouse=True)
def own_settings(
    session_home: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Home, settings, caches and data of this test are a folder of its own, which is returned."""
    return _own_home(tmp_path_factory, monkeypatch)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl+C interrupts this process and those it starts, though a shell script that starts the
    suite in the background makes it ignore SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def nothing_left_behind(own_settings: Path) -> Iterator[None]:
    """Fail a test that leaves top-level widgets, threads or child processes behind.

    Runs around all other fixtures of the test, so what they clean up is no fault.
    """
    threads = set(threading.enumerate())
    processes = _child_processes()
    widgets = _top_level_widgets()
    yield
    faults: list[str] = []
    left_widgets = _left_widgets(widgets)
    if left_widgets:
        faults.append("top-level widgets: " + ", ".join(sorted(map(_described, left_widgets))))
        _delete(left_widgets)
    # torch.fx starts tqdm's monitor once a process, where tqdm is installed (the bench's peers).
    left_threads = {
        thread
        for thread in set(threading.enumerate()) - threads
        if type(thread).__module__ != "tqdm._monitor"
    }
    if left_threads:
        faults.append("threads: " + ", ".join(sorted(thread.name for thread in left_threads)))
    left_processes = _child_processes() - processes
    if left_processes:
        faults.append("processes: " + ", ".join(str(process) for process in left_processes))
        for process in left_processes:
            process.kill()
    _restore_theme()
    _release_mouse()
    if faults:
        pytest.fail("left behind: " + "; ".join(faults), pytrace=False)


def _child_processes() -> set[psutil.Process]:
    """All live descendants but multiprocessing's resource tracker, which serves the session."""
    tracker = getattr(multiprocessing.resource_tracker._resource_tracker, "_pid", None)
    if set(_child_pids()) <= {tracker}:
        return set()
    return {
        process
        for process in psutil.Process().children(recursive=True)
        if process.pid != tracker and process.status() != psutil.STATUS_ZOMBIE
    }


def _child_pids() -> list[int]:
    """The direct children. Linux lists them by thread; psutil reads every process's file."""
    lists = list(Path("/proc/self/task").glob("*/children"))
    if not lists:
        return [process.pid for process in psutil.Process().children()]
    pids: list[int] = []
    for path in lists:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended
            pids += map(int, path.read_text().split())
    return pids


def _application():
    widgets = sys.modules.get("PySide6.QtWidgets")
    return widgets.QApplication.instance() if widgets else None


def _top_level_widgets() -> set:
    application = _application()
    # Qt keeps one tool tip for the program and a container for each combo box that was opened.
    own = ("QTipLabel", "QComboBoxPrivateContainer")
    if application is None:
        return set()
    return {w for w in application.topLevelWidgets() if w.metaObject().className() not in own}


def _left_widgets(before: set) -> set:
    """New top-level widgets after deferred deletions, and after Python's cycles if any are new."""
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

    for widget in widgets:
        if shiboken6.isValid(widget):
            shiboken6.delete(widget)


def _restore_theme() -> None:
    theme = sys.modules.get("widgets.theme")
    application = _application()
    if theme is not None and application is not None and theme.current() is not theme.LIGHT:
        theme.apply(application, theme.LIGHT)


def _release_mouse() -> None:
    """Qt remembers a button that a test pressed (a double click leaves one too): the next test's
    mouse would drag."""
    application = _application()
    if application is not None and application.mouseButtons().value:
        from PySide6.QtCore import Qt
        from PySide6.QtTest import QTest
        from PySide6.QtWidgets import QWidget

        for button in (Qt.MouseButton.LeftButton, Qt.MouseButton.RightButton):
            if button & application.mouseButtons():
                QTest.mouseRelease(QWidget(), button)
