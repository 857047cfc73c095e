"""Pan, zoom, fit and pictures."""

from __future__ import annotations

import math

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QGuiApplication,
    QImage,
    QPainter,
    QPointingDevice,
    QWheelEvent,
)
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QGraphicsScene

from widgets import theme
from widgets.diagram.view import WHEEL_STEP, DiagramView
from widgets.save_picture import PNG_SCALE, save_picture


@pytest.fixture
def view(qtbot) -> DiagramView:
    scene = QGraphicsScene()
    scene.addRect(0, 0, 400, 200, brush=QColor("#123456"))
    view = DiagramView(scene)
    scene.setParent(view)
    qtbot.addWidget(view)
    view.resize(800, 600)
    view.show()
    return view


def wheel(view: DiagramView, at: QPointF, *, notches: float = 0, pixels=(0, 0), phase=None) -> None:
    event = QWheelEvent(
        at,
        view.viewport().mapToGlobal(at),
        QPoint(*pixels),
        QPoint(0, round(120 * notches)),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        phase or Qt.ScrollPhase.NoScrollPhase,
        False,
        Qt.MouseEventSource.MouseEventNotSynthesized,
        QPointingDevice.primaryPointingDevice(),
    )
    QApplication.sendEvent(view.viewport(), event)


@pytest.mark.parametrize("notches", [1, -1, 2.5])
@pytest.mark.parametrize("at", [(13.0, 577.0), (400.0, 300.0), (790.0, 3.0)])
def test_wheel_zooms_and_keeps_the_point_under_the_cursor(view, notches, at):
    cursor = QPointF(*at)
    before = view.scene_point(cursor)
    wheel(view, cursor, notches=notches)
    assert view.zoom == pytest.approx(WHEEL_STEP**notches)
    off_px = (view.scene_point(cursor) - before) * view.zoom
    assert abs(off_px.x()) <= 1 and abs(off_px.y()) <= 1


def test_zoom_stays_within_its_bounds(view):
    view.zoom_by(1000)
    assert view.zoom == view.MAX_ZOOM
    view.zoom_by(1e-6)
    assert view.zoom == view.MIN_ZOOM


def test_touch_pad_pans_by_pixels(view):
    before = view.center()
    wheel(view, QPointF(400, 300), pixels=(30, -20), phase=Qt.ScrollPhase.ScrollUpdate)
    assert view.zoom == 1
    assert view.center() - before == QPointF(-30, 20)


def test_a_pixel_delta_of_a_mouse_zooms(view):
    """X11 reports pixel deltas for mice."""
    wheel(view, QPointF(400, 300), notches=1, pixels=(0, 15))
    assert view.zoom == pytest.approx(WHEEL_STEP)


@pytest.mark.parametrize("button", ["middle", "space"])
def test_middle_button_and_space_drag_pan(view, button):
    before = view.center()
    viewport = view.viewport()
    if button == "space":
        QTest.keyPress(view, Qt.Key.Key_Space)
        assert viewport.cursor().shape() == Qt.CursorShape.OpenHandCursor
    which = Qt.MouseButton.MiddleButton if button == "middle" else Qt.MouseButton.LeftButton
    QTest.mousePress(viewport, which, pos=QPoint(100, 100))
    QTest.mouseMove(viewport, QPoint(160, 70))
    assert view.panning
    QTest.mouseRelease(viewport, which, pos=QPoint(160, 70))
    QTest.keyRelease(view, Qt.Key.Key_Space)
    assert view.center() - before == QPointF(-60, 30)
    assert not view.panning
    assert viewport.cursor().shape() == Qt.CursorShape.ArrowCursor


def test_losing_focus_lets_go_of_space(view):
    QTest.keyPress(view, Qt.Key.Key_Space)
    QApplication.sendEvent(view, QFocusEvent(QEvent.Type.FocusOut))
    QTest.mousePress(view.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(100, 100))
    assert not view.panning


def test_fit_shows_all_in_the_middle(view):
    view.scene().addRect(QRectF(-3000, -100, 10, 10))
    view.fit()
    rect = view.content_rect()
    assert view.visible_rect().contains(rect)
    assert math.dist(view.center().toTuple(), rect.center().toTuple()) * view.zoom <= 1.5
    assert rect.width() * view.zoom == pytest.approx(800 - 2 * view.FIT_MARGIN_PX, abs=1)


def test_fit_does_not_blow_up_little_things(view):
    view.fit(QRectF(0, 0, 10, 10))
    assert view.zoom == view.FIT_MAX_ZOOM


def test_fit_of_nothing_is_actual_size(view):
    view.scene().clear()
    view.zoom_by(2)
    view.fit()
    assert view.zoom == 1


def test_keys(view):
    QTest.keyClick(view, Qt.Key.Key_Plus)
    assert view.zoom == pytest.approx(WHEEL_STEP)
    QTest.keyClick(view, Qt.Key.Key_Minus)
    QTest.keyClick(view, Qt.Key.Key_Minus)
    assert view.zoom == pytest.approx(1 / WHEEL_STEP)
    QTest.keyClick(view, Qt.Key.Key_0)
    assert view.zoom == pytest.approx(1)
    QTest.keyClick(view, Qt.Key.Key_F)
    assert view.zoom == view.FIT_MAX_ZOOM


def test_reveal_pans_only_when_it_must(view):
    view.set_view(1, 0, 0)
    view.reveal(QRectF(0, 0, 50, 50))
    assert view.center() == QPointF(0, 0)
    view.reveal(QRectF(1000, 0, 50, 50))
    assert view.visible_rect().contains(QRectF(1000, 0, 50, 50))
    assert view.zoom == 1


@pytest.mark.parametrize("zoom", [0.5, 1.0, 2.0])
def test_what_is_revealed_has_a_margin_and_lies_above_what_covers_the_bottom(view, zoom):
    view.set_view(zoom, 0, 0)
    view.COVERED_BOTTOM_PX = 40
    margin, seen = view.FIT_MARGIN_PX / zoom, view.visible_rect()
    for rect, middle in (
        (QRectF(0, seen.bottom() + 10, 20, 30), (0, 10 + 30 + margin + 40 / zoom)),
        (QRectF(0, seen.top() - 10, 20, 30), (0, -10 - margin)),
        (QRectF(seen.left() - 10, 0, 20, 30), (-10 - margin, 0)),
        (QRectF(seen.right() + 10, 0, 20, 30), (10 + 20 + margin, 0)),
        (QRectF(0, seen.bottom() - margin - 40 / zoom - 30, 20, 30), (0, 0)),
    ):
        view.set_view(zoom, 0, 0)
        view.reveal(rect)
        assert view.center().toTuple() == pytest.approx(middle, abs=1 / zoom)


def test_set_view_is_told_and_can_be_restored(view):
    told = []
    view.view_changed.connect(lambda *where: told.append(where))
    view.set_view(0.5, 120, -40)
    assert told[-1] == (0.5, 120, -40)
    where = told[-1]
    view.zoom_by(3)
    view.set_view(*where)
    assert (view.zoom, *view.center().toTuple()) == where


def test_pictures_hold_the_whole_content_whatever_is_in_view(view, tmp_path):
    view.set_view(3, 5000, 5000)
    save_picture(str(tmp_path / "all.png"), *view.picture())
    image = QImage(str(tmp_path / "all.png"))
    margin = 16
    size = (PNG_SCALE * (400 + 32), PNG_SCALE * (200 + 32))
    assert (image.width(), image.height()) == pytest.approx(size, abs=4 * PNG_SCALE)
    middle = QPointF(margin + 200, margin + 100) * PNG_SCALE
    assert image.pixelColor(middle.toPoint()) == QColor("#123456")
    assert image.pixelColor(2, 2) == QColor(theme.current().canvas)
    save_picture(str(tmp_path / "all.svg"), *view.picture(bounded=False))
    assert "#123456" in (tmp_path / "all.svg").read_text()
    view.copy_picture()
    assert not QGuiApplication.clipboard().image().isNull()


def test_a_picture_that_cannot_be_written_says_so(view, tmp_path):
    for name in ("a.png", "a.svg"):
        with pytest.raises(OSError, match="No such file"):
            save_picture(str(tmp_path / "nowhere" / name), *view.picture())


def test_background_follows_the_theme(qapp, view):
    view.set_view(1, 5004, 5004)
    for each in (theme.DARK, theme.LIGHT):
        theme.apply(qapp, each)
        image = view.grab().toImage()
        colors = {image.pixelColor(x, y).name() for x in range(100, 140) for y in range(100, 140)}
        assert colors == {each.canvas, each.grid}


def test_a_pan_leaves_the_grid_as_if_it_were_painted_anew(view) -> None:
    for step in (QPoint(7, -11), QPoint(-120, 15), QPoint(0, 40), QPoint(-900, -700)):
        view.pan_by(step)
        QApplication.processEvents()
        panned = view.grab().toImage()
        view.resetCachedContent()
        assert panned == view.grab().toImage()


def test_the_items_of_a_rendered_view_lie_where_they_are_seen(view) -> None:
    view.set_view(1.5, 200.0, 60.0)
    seen = view.viewport().grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    rendered = QImage(seen.size(), seen.format())
    painter = QPainter(rendered)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    view.render(painter)
    painter.end()
    assert rendered == seen
