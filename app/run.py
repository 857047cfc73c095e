"""The program with a window, from its first picture to its end.

The Start page, or the Model page of a project, is painted before the rest of the program is loaded,
and before the engine starts, which takes a processor for a second.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from app.settings import Settings
from app.window.first_picture import after_first_picture
from app.window.garbage import collect_in_this_thread
from app.window.main_window import MainWindow
from app.window.new_window import fit_screen, make_window
from engine.project.files import SUFFIX

if TYPE_CHECKING:
    from app.application import Application
    from engine.connecting.dialing import Call


def run(path: str = "", attached: tuple[Call, Callable[[], Call]] | None = None) -> int:
    """Open the window and return the exit code once it is closed. `attached` is a process that was
    called to be shown, and how to call it again."""
    qt = QApplication.instance() or QApplication([*sys.argv[:1], "-style", "Fusion"])
    assert isinstance(qt, QApplication)
    qt.setApplicationName("tensorlab")
    qt.setApplicationDisplayName("Tensor Lab")
    settings = Settings()
    window = make_window(settings)
    fit_screen(window, window.screen().availableGeometry())
    project, other = (path, "") if path.endswith(SUFFIX) else ("", path)
    made: list[Application] = []

    def make() -> None:
        from app import application

        made.append(application.build(settings=settings, window=window))
        made[0].open(project)

    def begin() -> None:
        if not made:
            make()
        collect_in_this_thread(qt)
        made[0].start(other, attached)
        _close_on_interrupt(window)

    after_first_picture(window, begin)
    if project:
        if not _show_canvas(window, project, settings):
            window.show()  # nothing is painted before events are handled
            make()
    else:
        from app.presenters.start import start_page  # a project does without

        window.add_page("start", start_page(window.actions_table, settings.recent_files))
        window.show_workspace("start")
        window.show()
    code = qt.exec()
    for application in made:
        application.bench.link.wait_closed()
    return code


def _show_canvas(window: MainWindow, path: str, settings: Settings) -> bool:
    """Show a project's canvas. False if the project begins with something else, or does not."""
    from app.presenters.model.first_page import first_page, show_view  # Start does without

    first = first_page(path, settings.bytes("model_docks"))
    if first is None:
        return False
    page, view = first
    window.add_page("model", page)
    window.show_workspace("model")
    window.show()
    show_view(page.canvas, view)  # what is shown fits the page, which has its size now
    return True


def _close_on_interrupt(window: MainWindow) -> None:
    """Make Ctrl+C in the terminal close the window like its close button."""
    import signal  # the window shows before it is needed

    signal.signal(signal.SIGINT, lambda *_: window.close())
    # Python calls a signal handler only while it runs, and Qt's event loop runs no Python by
    # itself.
    beat = QTimer(window, interval=200)
    beat.timeout.connect(lambda: None)
    beat.start()
