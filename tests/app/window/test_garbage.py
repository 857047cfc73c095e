"""Python's garbage is collected in the window's thread, and only there."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref

from PySide6.QtCore import QObject

from app.window.garbage import collect_due, collect_in_this_thread


class Cycle:
    def __init__(self) -> None:
        self.itself = self
        weakref.finalize(self, lambda: found_in.append(threading.current_thread()))


found_in: list[threading.Thread] = []


def make_garbage() -> list[list[int]]:
    """A cycle, and more objects than Python waits for."""
    Cycle()
    return [[n] for n in range(2 * gc.get_threshold()[0])]


def test_garbage_is_collected_once_there_is_enough_of_it() -> None:
    assert not gc.isenabled()  # tests are as the program is
    found_in.clear()
    gc.collect()
    Cycle()
    collect_due()
    assert found_in == []
    kept = make_garbage()
    assert found_in == []
    collect_due()
    assert len(found_in) == 2 and len(kept) > 1000


def test_what_another_thread_makes_is_collected_in_this_one(qapp, qtbot) -> None:
    found_in.clear()
    parent = QObject()
    collect_in_this_thread(parent)
    kept: list[object] = []
    other = threading.Thread(target=lambda: kept.append(make_garbage()))
    other.start()
    other.join()
    qtbot.waitUntil(lambda: bool(found_in), timeout=30_000)
    assert found_in == [threading.main_thread()]
    parent.deleteLater()


def test_the_program_leaves_none_to_python(tmp_path) -> None:
    """From its start on: `gc` is off, and stays so when the window is shown."""
    source = (
        "import gc, sys, app.run\n"
        "from app.cli import main\n"
        "app.run.run = lambda *given: print('enabled', gc.isenabled()) or 0\n"
        "sys.exit(main([]))\n"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True)
    assert done.stdout == "enabled False\n", done.stderr
