"""The frames of open boxes: cut to what is in sight, kept while one pans, and drawn as if whole."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QPoint, QPointF, QRect, QRectF, QSize
from PySide6.QtGui import QColor, QImage, QPainter

from engine.protocol import GraphSnapshot
from tests.examples import examples
from tests.widgets.graph.nested_graph import NESTED
from tests.widgets.graph.random_hierarchies import opened
from widgets.boxes.facts import GraphFacts
from widgets.graph.painting.frame_painter import FramePainter
from widgets.graph.painting.geometry import GraphGeometry
from widgets.graph.pane import GraphPane
from widgets.layout.nested_layout import layout_nested

WINDOW = QSize(240, 180)
ZOOMS = (0.08, 0.149, 0.2, 0.449, 0.45, 1.0, 1.37, 4.0)
"""Sharp and rounded corners, with and without antialiasing."""


def _painted(
    frames: FramePainter, seen: QRectF, corner: QPointF, zoom: float, part: QRect, ratio: float
) -> QImage:
    """A part of a window that shows the scene from `corner` on, when `seen` of the scene is to be
    painted, on a screen with `ratio` pixels to one of the window's."""
    image = QImage(WINDOW * ratio, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(ratio)
    image.fill(QColor("white"))
    painter = QPainter(image)
    painter.setClipRect(part)
    painter.scale(zoom, zoom)
    painter.translate(-corner)
    frames.paint(painter, seen, zoom)
    painter.end()
    return image.copy(QRect(part.topLeft() * ratio, part.size() * ratio))


@st.composite
def parts_of_the_window(draw) -> QRect:
    """The window, or a part of it, as a pan uncovers it."""
    left = draw(st.integers(0, WINDOW.width() - 1))
    top = draw(st.integers(0, WINDOW.height() - 1))
    width = draw(st.integers(1, WINDOW.width() - left))
    height = draw(st.integers(1, WINDOW.height() - top))
    return QRect(left, top, width, height)


@settings(max_examples=examples(100))
@given(
    opened(),
    st.sampled_from(ZOOMS),
    st.floats(-0.1, 1.1),
    st.floats(-0.1, 1.1),
    st.just(QRect(QPoint(0, 0), WINDOW)) | parts_of_the_window(),
    st.sampled_from((1.0, 2.0)),
)
def test_what_is_in_sight_is_drawn_as_if_the_frames_were_whole(
    qapp, drawn, zoom: float, across: float, down: float, part: QRect, ratio: float
) -> None:
    hierarchy, keys = drawn
    visible = hierarchy.visible(keys)
    geometry = GraphGeometry(visible, layout_nested(visible.outline))
    frames = FramePainter(GraphFacts(hierarchy.graph, visible, {}), geometry)
    corner = QPointF(
        geometry.bounds.left() + across * geometry.bounds.width() - WINDOW.width() / 2 / zoom,
        geometry.bounds.top() + down * geometry.bounds.height() - WINDOW.height() / 2 / zoom,
    )
    seen = QRectF(corner + part.topLeft().toPointF() / zoom, part.size().toSizeF() / zoom)
    whole = geometry.bounds | seen
    cut = _painted(frames, seen, corner, zoom, part, ratio)
    assert cut == _painted(frames, whole, corner, zoom, part, ratio)


@pytest.fixture
def open_pane(pane: GraphPane, qapp) -> GraphPane:
    pane.view.show_graph(NESTED)
    pane.view.open_all()
    pane.view.set_view(1.3, 60.0, 90.0)
    qapp.processEvents()
    return pane


def test_a_view_that_was_panned_shows_what_one_painted_anew_does(open_pane, qapp) -> None:
    view = open_pane.view
    for step in (QPoint(37, -61), QPoint(-120, 15), QPoint(3, 200), QPoint(-900, -900)):
        view.pan_by(step)
        qapp.processEvents()
        panned = view.grab().toImage()
        view.resetCachedContent()
        assert panned == view.grab().toImage()


def test_a_pan_paints_the_two_strips_that_it_uncovers(open_pane, qapp, monkeypatch) -> None:
    view = open_pane.view
    painted: list[QRectF] = []
    monkeypatch.setattr(FramePainter, "paint", lambda *given: painted.append(given[2]))
    wide, high = view.viewport().width(), view.viewport().height()
    view.pan_by(QPoint(7, -11))
    qapp.processEvents()
    area = sum(rect.width() * rect.height() * view.zoom**2 for rect in painted)
    assert 0 < area < 7 * high + 11 * wide + 1


@pytest.mark.parametrize("other", [NESTED, GraphSnapshot(nodes=(), edges=(), plan=())])
def test_another_picture_leaves_no_frame_of_the_one_before(open_pane, qapp, other) -> None:
    view = open_pane.view
    framed = view.grab().toImage()
    view.show_graph(other)
    view.set_open(frozenset())
    view.set_view(1.3, 60.0, 90.0)
    qapp.processEvents()
    closed = view.grab().toImage()
    view.resetCachedContent()
    assert framed != closed == view.grab().toImage()


def test_a_saved_picture_has_the_frames_too(open_pane) -> None:
    view = open_pane.view
    with_frames = _saved(open_pane)
    frames = view._item._frames
    frames.paint = lambda *_: None
    assert with_frames != _saved(open_pane)


def _saved(pane: GraphPane) -> QImage:
    size, paint = pane.view.picture()
    image = QImage(size, QImage.Format.Format_RGB32)
    painter = QPainter(image)
    paint(painter)
    painter.end()
    return image
