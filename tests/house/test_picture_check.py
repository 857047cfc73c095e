"""The comparison of pictures must see what a person would see, and no more."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from tests import pictures
from widgets import theme


@pytest.fixture
def panel(qtbot) -> QWidget:
    widget = QWidget()
    qtbot.addWidget(widget)
    widget.resize(480, 240)
    layout = QVBoxLayout(widget)
    for text in ("Parameters", "Activations", "Loss"):
        layout.addWidget(QLabel(text + ": 1,234"))
    return widget


def grab(widget: QWidget) -> QImage:
    return widget.grab().toImage()


def test_a_picture_equals_itself_and_a_changed_digit_passes(panel):
    before = grab(panel)
    assert pictures.differing_fraction(before, grab(panel)) == 0.0
    panel.findChild(QLabel).setText("Parameters: 1,235")
    assert pictures.differing_fraction(before, grab(panel)) <= pictures.ALLOWED_FRACTION


def test_a_lost_line_another_theme_and_another_size_do_not_pass(panel, qapp):
    before = grab(panel)
    label = panel.findChild(QLabel)
    label.setText("")
    assert pictures.differing_fraction(before, grab(panel)) > pictures.ALLOWED_FRACTION
    label.setText("Parameters: 1,234")
    theme.apply(qapp, theme.DARK)
    assert pictures.differing_fraction(before, grab(panel)) > 0.9
    panel.resize(481, 240)
    assert pictures.differing_fraction(before, grab(panel)) == 1.0


def test_a_difference_fails_and_a_missing_picture_too(panel, monkeypatch, tmp_path):
    monkeypatch.setattr(pictures, "FOLDER", tmp_path)
    monkeypatch.delenv("UPDATE_PICTURES", raising=False)
    with pytest.raises(AssertionError, match="UPDATE_PICTURES"):
        pictures.assert_same_picture(panel, "panel")
    monkeypatch.setenv("UPDATE_PICTURES", "1")
    pictures.assert_same_picture(panel, "panel")
    monkeypatch.delenv("UPDATE_PICTURES")
    pictures.assert_same_picture(panel, "panel")
    panel.findChild(QLabel).hide()
    with pytest.raises(pytest.fail.Exception, match="differs"):
        pictures.assert_same_picture(panel, "panel")
