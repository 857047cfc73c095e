"""Images over steps: what is drawn where, and what a step says."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from engine.protocol import ImagesSnapshot, LoggedImages, SampleImage
from tests.labels import said
from tests.pictures import assert_same_picture
from widgets import theme
from widgets.training.over_time.image_pane import ImagePane
from widgets.training.over_time.image_strip import SIDE


def images(step: int) -> LoggedImages:
    """A white square that moves to the right, and a red one."""
    grey = bytes(255 if at % 8 == step % 8 else 40 for at in range(64))
    red = b"".join(bytes((200, 10 * row, 20)) for row in range(16))
    shown = (SampleImage(8, 8, True, grey), SampleImage(8, 2, False, red))
    return LoggedImages(step, (5, 1, 28, 28), 5, -1.5, 2.25, shown)


FOUND = ImagesSnapshot(
    name="sample", names=("sample", "filters"), steps=tuple(map(images, (1, 2, 40, 1000)))
)


@pytest.fixture
def pane(qtbot) -> ImagePane:
    pane = ImagePane()
    qtbot.addWidget(pane)
    pane.resize(560, 320)
    pane.show()
    return pane


def test_a_step_says_what_its_images_are(pane: ImagePane, qtbot) -> None:
    pane.show_images(FOUND)
    assert said(pane, "images_pointed") == ""
    for _ in range(5):
        qtbot.keyClick(pane.strip, Qt.Key.Key_Right)
    assert said(pane, "images_pointed") == (
        "step 1,000: shape (5, 1, 28, 28), the first 2 of 5 images; -1.5 is black, 2.25 is white"
    )
    qtbot.keyClick(pane.strip, Qt.Key.Key_Left)
    assert said(pane, "images_pointed").startswith("step 40: ")
    qtbot.mouseMove(pane.strip, pane.strip.place_of(1, 1).center().toPoint())
    pane.show_images(FOUND)
    assert said(pane, "images_pointed").startswith("step 2: ")


def test_each_pixel_is_a_sharp_square_in_its_place(pane: ImagePane) -> None:
    pane.show_images(FOUND)
    drawn = pane.strip.grab().toImage()
    scale, cell = drawn.devicePixelRatio(), SIDE / 8
    for column, step in enumerate(FOUND.steps):
        corner = pane.strip.place_of(column, 0).topLeft()
        for at in range(8):
            x, y = corner.x() + (at + 0.5) * cell, corner.y() + 3.5 * cell
            wanted = step.images[0].pixels[at]
            assert drawn.pixelColor(round(x * scale), round(y * scale)).red() == wanted


def test_another_name_is_asked_for_and_the_newest_is_opened(pane: ImagePane) -> None:
    asked, chosen = [], []
    pane.asked.connect(lambda: asked.append(pane.name))
    pane.chosen.connect(chosen.append)
    pane.show_images(FOUND)
    pane._names.setCurrentIndex(1)
    pane._names.activated.emit(1)
    assert asked == ["filters"]
    pane._open.click()
    assert chosen == ["filters"]


def test_without_images_it_says_how_to_log_them(pane: ImagePane) -> None:
    pane.show_images(ImagesSnapshot())
    assert said(pane, "images_trouble").startswith("No image yet")


@pytest.mark.parametrize("name", ["light", "dark"])
def test_it_looks_as_it_did(pane: ImagePane, name: str, qapp) -> None:
    theme.apply(qapp, {"light": theme.LIGHT, "dark": theme.DARK}[name])
    pane.show_images(FOUND)
    pane.strip.point_at(2)
    assert_same_picture(pane, f"images_{name}")
