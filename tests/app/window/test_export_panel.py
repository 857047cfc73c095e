"""The result of an export: what it says, what it copies, where it stands."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QLabel, QPushButton, QToolButton, QWidget

from app.window.export_panel import ExportPanel
from engine.project.document import replace
from engine.protocol import ExportSnapshot
from tests.pictures import assert_same_picture
from tests.words import assert_same_words
from widgets import theme

DONE = ExportSnapshot(
    revision=1,
    path="/home/me/net.pt",
    format="pt",
    size_bytes=20520,
    sha256="ab" * 32,
    max_abs_error=0.0,
    keys=("a.weight", "a.bias"),
)


@pytest.fixture
def panel(qtbot) -> Iterator[ExportPanel]:
    window = QWidget()
    qtbot.addWidget(window)
    window.resize(1000, 700)
    window.show()
    yield ExportPanel(window)


def test_what_was_written_is_told(panel) -> None:
    assert panel.isHidden()
    panel.show_export(DONE)
    assert panel.isVisible() and panel.hasFocus() == panel.window().isActiveWindow()
    assert panel.findChild(QLabel, "export_title").text() == (
        "Exported net.pt, loaded back and compared"
    )
    assert {key: panel.text(key) for key in ("path", "size", "sha256", "error", "keys")} == {
        "path": "/home/me/net.pt",
        "size": "20 KiB (20,520 bytes)",
        "sha256": "ab" * 32,
        "error": "0: bit for bit the same",
        "keys": "2: a.weight, a.bias",
    }
    panel.show_export(replace(DONE, max_abs_error=1.5e-7, keys=tuple("abcde")))
    assert panel.text("error") == "1.5e-07" and panel.text("keys") == "5: a, b, c, d, …"
    assert panel.findChild(QLabel, "export_keys").toolTip() == "a\nb\nc\nd\ne"
    assert panel.findChild(QLabel, "export_size").toolTip() == panel.text("size")
    panel.show_export(replace(DONE, keys=tuple("abcd")))
    assert panel.text("keys") == "4: a, b, c, d"


@pytest.mark.parametrize(
    ("name", "kind", "line"),
    [
        ("net.pt", "pt", 'model.load_state_dict(torch.load("net.pt", weights_only=True))'),
        ("net.safetensors", "safetensors",
         'model.load_state_dict(safetensors.torch.load_file("net.safetensors"))'),
        ("net.py", "py", "from net import Model"),
    ],
)  # fmt: skip
def test_how_a_script_reads_it(panel, name, kind, line) -> None:
    panel.show_export(replace(DONE, path=f"/home/me/{name}", format=kind))
    assert panel.text("load") == line


def test_what_one_needs_elsewhere_can_be_copied(panel, qtbot) -> None:
    panel.show_export(DONE)
    buttons = [b for b in panel.findChildren(QToolButton) if b.objectName() != "export_close"]
    keys = [button.objectName().removeprefix("export_copy_") for button in buttons]
    assert keys == ["path", "sha256", "load"]
    assert [b.accessibleName() for b in buttons] == ["Copy Path", "Copy SHA-256", "Copy Load it"]
    for key, button in zip(keys, buttons, strict=True):
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
        assert QGuiApplication.clipboard().text() == panel.text(key)


def test_its_folder_can_be_opened(panel, qtbot, monkeypatch) -> None:
    opened = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toLocalFile()))
    button = panel.findChild(QPushButton, "export_open_folder")
    button.click()
    panel.show_export(DONE)
    button.click()
    assert opened == ["/home/me"]


def test_it_stands_at_the_bottom_right_also_in_another_size(panel, qtbot) -> None:
    panel.show_export(DONE)
    for size in ((1000, 700), (900, 800)):
        panel.parentWidget().resize(*size)
        assert (panel.geometry().right(), panel.geometry().bottom()) == (
            size[0] - 3 * 8 - 1,
            size[1] - 6 * 8 - 1,
        )
    assert panel.height() >= panel.sizeHint().height()


def test_picture_and_words(panel) -> None:
    panel.show_export(replace(DONE, max_abs_error=1.5e-7))
    assert_same_picture(panel, "export_panel")
    assert_same_words(panel, "export_panel")


def test_it_stands_out_as_a_card_in_both_themes(panel, qapp) -> None:
    panel.show_export(DONE)
    for colors in (theme.DARK, theme.LIGHT):
        theme.apply(qapp, colors)
        image, middle = panel.grab().toImage(), panel.height() // 2
        assert image.pixelColor(0, middle).name() == colors.border
        assert image.pixelColor(4, middle).name() == colors.surface != colors.window


@pytest.mark.parametrize("way", ["escape", "cross"])
def test_it_is_closed_by_escape_or_its_cross(panel, qtbot, way) -> None:
    panel.show_export(DONE)
    qtbot.keyClick(panel, Qt.Key.Key_A)
    assert panel.isVisible()
    if way == "escape":
        qtbot.keyClick(panel, Qt.Key.Key_Escape)
    else:
        qtbot.mouseClick(panel.findChild(QToolButton, "export_close"), Qt.MouseButton.LeftButton)
    assert panel.isHidden()
