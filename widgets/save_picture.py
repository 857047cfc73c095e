"""Copies any painted picture to the clipboard, or saves it as a PNG or SVG file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QRect, QSize
from PySide6.QtGui import QGuiApplication, QImage, QPainter
from PySide6.QtWidgets import QMenu, QWidget

from widgets.later import Later

Paint = Callable[[QPainter], None]
"""Paints the whole picture, background included, into (0, 0, width, height)."""

PNG_SCALE = 2.0
"""Pixels in a copied or saved image per pixel on screen."""


def image_of(size: QSize, paint: Paint) -> QImage:
    image = QImage(size * PNG_SCALE, QImage.Format.Format_ARGB32_Premultiplied)
    image.setDevicePixelRatio(PNG_SCALE)
    image.fill(0)
    with QPainter(image) as painter:
        paint(painter)
    return image


def copy_picture(size: QSize, paint: Paint) -> None:
    QGuiApplication.clipboard().setImage(image_of(size, paint))


def save_picture(path: str, size: QSize, paint: Paint) -> None:
    """Write a `.png` or `.svg` file. `size` is in pixels of the screen; a PNG has PNG_SCALE times
    as many. Raises ValueError on another suffix, OSError when the file cannot be written."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".png", ".svg"):
        raise ValueError(f"A picture's file name ends in .png or .svg, not {suffix or 'nothing'}")
    _check(path)
    if suffix == ".png":
        image_of(size, paint).save(path)
        return
    from PySide6.QtSvg import QSvgGenerator  # the window shows before it is needed

    generator = QSvgGenerator()
    generator.setFileName(path)
    generator.setSize(size)
    generator.setViewBox(QRect(0, 0, size.width(), size.height()))
    painter = QPainter(generator)
    paint(painter)
    painter.end()


def _check(path: str) -> None:
    """Raise OSError if the file cannot be written: Qt's writers do not say why they fail."""
    with open(path, "wb"):
        pass


def ask_and_save(parent: QWidget, suffix: str, size: QSize, paint: Paint) -> None:
    """Ask for a file name and write the picture; show an error in a message box. Painting is quick,
    but compressing a large PNG takes seconds, so a `Later` does that in a thread."""
    from PySide6.QtWidgets import QFileDialog, QMessageBox  # as above

    path, _ = QFileDialog.getSaveFileName(
        parent, "Save picture", f"picture.{suffix}", f"{suffix.upper()} (*.{suffix})"
    )
    if not path:
        return
    if not path.lower().endswith(f".{suffix}"):
        path += f".{suffix}"
    try:
        if suffix == "png":
            _check(path)
            image = image_of(size, paint)
            Later(parent).run(lambda: image.save(path), lambda _: None)
        else:
            save_picture(path, size, paint)
    except OSError as error:
        QMessageBox.warning(parent, "The picture was not saved", str(error))


def add_picture_actions(menu: QMenu, parent: QWidget, paint: Paint) -> None:
    """Add Copy picture, Save PNG and Save SVG. `paint` paints the picture at `parent`'s size."""
    menu.addAction("Copy picture", lambda: copy_picture(parent.size(), paint))
    menu.addAction("Save as PNG…", lambda: ask_and_save(parent, "png", parent.size(), paint))
    menu.addAction("Save as SVG…", lambda: ask_and_save(parent, "svg", parent.size(), paint))
