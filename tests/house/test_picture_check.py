"""The comparison of pictures must see what a person would see, and no more."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from msgspec.structs import replace
from PySide6.QtCore import QPoint, QRect
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtWidgets import QLabel, QPushButton, QVBoxLayout, QWidget

from engine.operations.memory.locating import locate
from engine.operations.memory.storage import read_window
from engine.tensors.reach import Reached
from tests import pictures
from tests.widgets.small_model import SMALL_MODEL
from widgets import theme
from widgets.canvas.model_canvas import ModelCanvas
from widgets.memory.storage_view import StorageView


def differs(before: QImage, after: QImage) -> bool:
    return bool(pictures.differing_spots(before, after))


def painted_over(widget: QWidget, place: QRect, color: QColor) -> QImage:
    """The widget's picture with a rectangle of the widget filled with a colour."""
    image = widget.grab().toImage()
    painter = QPainter(image)
    painter.fillRect(place, color)
    painter.end()
    return pictures.shrunk(image)


@pytest.fixture
def panel(qtbot) -> QWidget:
    widget = QWidget()
    qtbot.addWidget(widget)
    widget.resize(480, 240)
    layout = QVBoxLayout(widget)
    for text in ("Parameters", "Activations", "Loss"):
        layout.addWidget(QLabel(text + ": 1,234"))
    button = QPushButton("Compare")
    policy = button.sizePolicy()
    policy.setRetainSizeWhenHidden(True)
    button.setSizePolicy(policy)
    layout.addWidget(button)
    return widget


@pytest.fixture(params=["light", "dark"])
def storage(qtbot, qapp, request) -> StorageView:
    theme.apply(qapp, {"light": theme.LIGHT, "dark": theme.DARK}[request.param])
    t = torch.arange(48.0).view(6, 8)[1::2, 2:7:2]
    view = StorageView()
    qtbot.addWidget(view)
    view.resize(960, 400)
    view.show()
    view.show_storage(read_window("x", t, None, 1024))
    view.show_element((1, 1))
    view.show_location(locate("x", t, Reached({"x": t}), index=(1, 1)))
    return view


def cell_place(view: StorageView, cell: int) -> QRect:
    place = view.strip.cell_rect(cell).toRect()
    return place.translated(view.strip.viewport().mapTo(view, QPoint(0, 0)))


def test_a_picture_equals_itself(panel, storage):
    for widget in (panel, storage):
        assert pictures.differing_spots(pictures.taken(widget), pictures.taken(widget)) == []


def test_an_erased_arrow_is_seen(storage):
    before = pictures.taken(storage)
    start, end = cell_place(storage, 28), cell_place(storage, 30)
    above = QRect(start.center().x() + 4, start.top() - 14, end.left() - start.right(), 12)
    ground = theme.current().color("surface")
    assert not differs(before, painted_over(storage, QRect(0, 0, 0, 0), ground))
    assert differs(before, painted_over(storage, above, ground))


def test_the_colour_of_one_cell_is_seen(storage):
    before = pictures.taken(storage)
    inside = cell_place(storage, 17).adjusted(3, 3, -3, -3)
    surface = theme.current().color("surface")
    red, green, blue = surface.red(), surface.green(), surface.blue()
    paler = QColor(*(c + (12 if c < 128 else -12) for c in (red, green, blue)))
    assert differs(before, painted_over(storage, inside, paler))


@pytest.mark.parametrize("name", ["storage_strides", "storage_sum"])
def test_an_erased_legend_or_address_sum_is_seen(storage, name):
    before = pictures.taken(storage)
    label = storage.findChild(QLabel, name)
    assert label.text()
    place = QRect(label.mapTo(storage, label.rect().topLeft()), label.size())
    assert differs(before, painted_over(storage, place, storage.palette().window().color()))


def test_an_erased_button_a_changed_digit_and_a_lost_line_are_seen(panel):
    before = pictures.taken(panel)
    panel.findChild(QPushButton).hide()
    assert differs(before, pictures.taken(panel))
    panel.findChild(QPushButton).show()
    assert not differs(before, pictures.taken(panel))
    for text in ("Parameters: 1,235", "Parameters: 1.234", ""):
        panel.findChild(QLabel).setText(text)
        assert differs(before, pictures.taken(panel)), text


def test_a_block_moved_by_8_pixels_is_seen(qtbot):
    canvas = ModelCanvas()
    qtbot.addWidget(canvas)
    canvas.resize(1200, 720)
    canvas.show()
    first, *others = SMALL_MODEL.blocks
    taken = []
    for offset in (0, 8, 0):
        blocks = (replace(first, x=first.x + offset), *others)
        canvas.show_model(replace(SMALL_MODEL, blocks=blocks))
        canvas.set_view(1.0, 520, 150)
        taken.append(pictures.taken(canvas))
    assert differs(taken[0], taken[1])
    assert not differs(taken[0], taken[2])


def test_another_theme_and_another_size_are_seen(panel, qapp):
    before = pictures.taken(panel)
    theme.apply(qapp, theme.DARK)
    assert differs(before, pictures.taken(panel))
    theme.apply(qapp, theme.LIGHT)
    panel.resize(482, 240)
    assert pictures.differing_spots(before, pictures.taken(panel)) == [before.rect()]


def test_another_antialiasing_is_no_difference(panel):
    before = pictures.taken(panel).convertToFormat(QImage.Format.Format_RGB32)
    shape = (before.height(), before.width(), 4)
    pixels_HWC = np.frombuffer(before.constBits(), np.uint8).reshape(shape).astype(int)
    noise_HWC = np.random.default_rng(0).integers(-8, 9, shape)
    noise_HWC[::7, ::7] = 60  # pixels that stand alone
    noisy_HWC = (pixels_HWC + noise_HWC).clip(0, 255).astype(np.uint8)
    noisy = QImage(noisy_HWC.tobytes(), shape[1], shape[0], QImage.Format.Format_RGB32)
    assert not differs(before, noisy)


def test_a_difference_fails_and_is_outlined_and_a_missing_picture_fails_too(
    panel, monkeypatch, tmp_path
):
    monkeypatch.setattr(pictures, "FOLDER", tmp_path)
    monkeypatch.setattr(pictures.tempfile, "mkdtemp", lambda prefix: str(tmp_path / "new"))
    (tmp_path / "new").mkdir()
    monkeypatch.delenv("UPDATE_PICTURES", raising=False)
    with pytest.raises(AssertionError, match="UPDATE_PICTURES"):
        pictures.assert_same_picture(panel, "panel")
    monkeypatch.setenv("UPDATE_PICTURES", "1")
    pictures.assert_same_picture(panel, "panel")
    monkeypatch.delenv("UPDATE_PICTURES")
    pictures.assert_same_picture(panel, "panel")
    panel.findChild(QPushButton).hide()
    with pytest.raises(pytest.fail.Exception, match=r"1 spots? of .*panel\.png differ: \d+x\d+ at"):
        pictures.assert_same_picture(panel, "panel")
    outlined = QImage(str(tmp_path / "new" / "panel.png"))
    colors = {outlined.pixelColor(x, y).name() for x in range(240) for y in range(120)}
    assert "#ff00ff" in colors
