"""The list of scripts to attach to: choosing one, typing another, what went wrong."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QPushButton

from widgets.start.attach_view import TWO_LINES, AttachView, Running

TWO = (
    Running("/run/1.sock", "train.py (pid 1)", "since 10:00:00", "/home/a/train.py"),
    Running("/run/2.sock", "vae.py (pid 2)", "since 11:00:00", "/home/a/vae.py"),
)


@pytest.fixture
def view(qtbot) -> AttachView:
    widget = AttachView()
    qtbot.addWidget(widget)
    widget.requested = []
    widget.attach_requested.connect(lambda *asked: widget.requested.append(asked))
    widget.show()
    return widget


def shown(view: AttachView) -> list[QPushButton]:
    QApplication.processEvents()  # shows what was added to a layout
    return [line for line in view.findChildren(QPushButton, "attach_running") if line.isVisible()]


def test_without_a_script_it_says_the_two_lines_that_one_needs(view):
    none, lines = view.findChild(QLabel, "attach_none"), view.findChild(QLabel, "attach_lines")
    assert none.isVisible() and lines.text() == TWO_LINES
    view.show_running(TWO)
    assert not none.isVisible() and not lines.isVisible()
    view.show_running(())
    assert none.isVisible() and lines.isVisible() and shown(view) == []


def test_a_line_attaches_by_mouse_and_by_keyboard(view):
    view.show_running(TWO)
    first, second = shown(view)
    assert (first.text(), first.toolTip()) == ("train.py (pid 1)    since 10:00:00", TWO[0].tip)
    assert first.accessibleName() == "Attach to train.py (pid 1)"
    QTest.mouseClick(first, Qt.MouseButton.LeftButton)
    QTest.keyClick(second, Qt.Key.Key_Space)
    assert view.requested == [("/run/1.sock", ""), ("/run/2.sock", "")]


def test_the_same_list_again_keeps_its_lines_and_the_focus(view):
    view.show_running(TWO)
    before = shown(view)
    view.show_running(list(TWO))
    assert shown(view) == before


def test_an_address_is_typed_and_only_a_port_has_a_key(view):
    assert not view.button.isEnabled() and not view.key.isEnabled()
    QTest.keyClicks(view.address, " 4711 ")
    assert view.button.isEnabled() and not view.key.isEnabled()
    QTest.keyClick(view.address, Qt.Key.Key_Return)
    view.address.setText("127.0.0.1:5678")
    assert view.key.isEnabled()
    view.key.setText(" 6e65 ")
    view.button.click()
    assert view.requested == [("4711", ""), ("127.0.0.1:5678", "6e65")]


def test_enter_without_an_address_asks_for_nothing(view):
    QTest.keyClick(view.address, Qt.Key.Key_Return)
    assert view.requested == []


def test_a_key_that_is_no_longer_needed_is_not_sent(view):
    view.address.setText("127.0.0.1:5678")
    view.key.setText("6e65")
    view.address.setText("train.py")
    view.button.click()
    assert view.requested == [("train.py", "")]


def test_while_a_process_is_called_nobody_else_can_be(view):
    view.show_address("train.py")
    view.show_calling("train.py")
    assert view.button.text() == "Calling train.py…" and not view.button.isEnabled()
    view.show_calling("")
    assert view.button.text() == "Attach" and view.button.isEnabled()


def test_an_error_is_said_and_taken_back(view):
    error = view.findChild(QLabel, "attach_error")
    assert not error.isVisible()
    view.tell("No process listens.")
    assert error.isVisible() and error.text() == "No process listens."
    view.tell("")
    assert not error.isVisible()


def test_asking_selects_the_address(view, qtbot):
    view.show_address("train.py")
    view.activateWindow()
    qtbot.waitUntil(view.isActiveWindow)
    view.ask()
    assert view.address.hasFocus() and view.address.selectedText() == "train.py"
