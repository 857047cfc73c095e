"""The guard of tests/conftest.py itself: it must catch what it says it catches."""

from __future__ import annotations

pytest_plugins = ["pytester"]

LEAKS = """
import subprocess, sys, threading

def test_clean(qapp):
    pass

def test_widget(qapp):
    from PySide6.QtWidgets import QLabel
    global kept
    kept = QLabel("left")
    kept.setObjectName("left_label")
    kept.show()

def test_thread():
    global wake
    wake = threading.Event()
    threading.Thread(target=wake.wait, name="left_thread", daemon=True).start()

def test_process():
    global child
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)

def test_end():
    wake.set()
    child.communicate()
"""


def test_each_kind_of_leak_is_named(pytester, pytestconfig):
    guard = (pytestconfig.rootpath / "tests/conftest.py").read_text()
    assert "\nENDING_S = 20.0" in guard  # so long it waits for each leak; these never end
    pytester.makeconftest(guard.replace("\nENDING_S = 20.0", "\nENDING_S = 0.1"))
    pytester.makepyfile(LEAKS)
    pytester.makeini(f"[pytest]\nqt_api = pyside6\npythonpath = {pytestconfig.rootpath}\n")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=5, errors=3)
    result.stdout.fnmatch_lines_random(
        [
            "left behind: top-level widgets: QLabel('left_label')",
            "left behind: threads: left_thread",
            "left behind: processes: psutil.Process(*",
        ]
    )


POINTED_AT = """
import pytest
from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QPushButton

@pytest.mark.parametrize("is_first", [True, False])
def test_each_starts_with_the_pointer_elsewhere(qtbot, is_first):
    button = QPushButton()
    qtbot.addWidget(button)
    button.resize(300, 300)
    button.show()
    qtbot.wait(10)
    assert not button.underMouse()
    qtbot.mouseMove(button, QPoint(150, 150))
    assert button.underMouse()
"""


def test_the_pointer_is_moved_away(pytester, pytestconfig):
    pytester.makeconftest((pytestconfig.rootpath / "tests/conftest.py").read_text())
    pytester.makepyfile(POINTED_AT)
    pytester.makeini(f"[pytest]\nqt_api = pyside6\npythonpath = {pytestconfig.rootpath}\n")
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=2)
