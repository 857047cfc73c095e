"""A tensor as a picture: colour maps, the grid of cells, the cursor, and copies."""

from __future__ import annotations

import math
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QGuiApplication, QImage, QPainter
from PySide6.QtWidgets import QFileDialog, QMenu, QMessageBox

from engine.protocol import Picture
from tests.pictures import assert_same_picture
from widgets import colormap, theme
from widgets.save_picture import ask_and_save, save_picture
from widgets.values import picture_paint
from widgets.values.picture_grid import MAX_CELL, TILE_GAP, Grid, fit_grid, source_index, values_of
from widgets.values.picture_view import PictureView


def picture_of(array: np.ndarray, source_shape: tuple[int, ...] = (), sampled: bool = False):
    data = np.ascontiguousarray(array, dtype="<f4")
    return Picture(data.shape, data.tobytes(), source_shape or data.shape, sampled)


def rgb(view: PictureView, cell: tuple[int, ...]) -> tuple[int, int, int]:
    color = view.color_at(cell)
    return color.red(), color.green(), color.blue()


@pytest.fixture
def view(qtbot) -> PictureView:
    view = PictureView()
    qtbot.addWidget(view)
    view.resize(400, 300)
    return view


# -- colours ---------------------------------------------------------------------------------------


def test_sequential_map_gets_lighter_in_even_steps() -> None:
    lab = colormap.oklab(colormap.sequential())
    steps = np.linalg.norm(np.diff(lab, axis=0), axis=1)
    assert np.all(np.diff(lab[:, 0]) >= -1e-3)
    blocks = steps[:240].reshape(15, 16).sum(axis=1)
    assert blocks.max() / blocks.min() < 1.2


@pytest.mark.parametrize("colors", [theme.LIGHT, theme.DARK], ids=["light", "dark"])
def test_diverging_map_has_its_lightness_extreme_at_zero(colors: theme.Theme) -> None:
    lightness = colormap.oklab(colormap.diverging(colors))[:, 0]
    sign = 1 if colors.dark else -1
    assert np.all(np.diff(lightness[128:]) * sign >= -1e-3)
    assert np.all(np.diff(lightness[:128]) * sign <= 1e-3)
    assert lightness[0] == pytest.approx(lightness[-1], abs=0.06)


def test_oklab_of_white_is_one() -> None:
    white = colormap.oklab(np.array([[255, 255, 255]], np.uint8))
    assert white == pytest.approx(np.array([[1.0, 0.0, 0.0]]), abs=1e-4)


# -- geometry --------------------------------------------------------------------------------------

shapes = st.one_of(
    st.tuples(st.integers(1, 90), st.integers(1, 90)),
    st.tuples(st.integers(1, 40), st.integers(1, 20), st.integers(1, 20)),
)


@given(shapes, st.integers(120, 900), st.integers(120, 900), st.data())
def test_every_cell_is_found_where_it_is_drawn(shape, width, height, data) -> None:
    grid = fit_grid(shape, width, height)
    cell = tuple(data.draw(st.integers(0, n - 1)) for n in shape)
    x, y, w, h = grid.cell_rect(cell)
    found = grid.cell_at(x + w / 2, y + h / 2)
    assert found == (cell if len(shape) == 3 else (0, *cell))


@given(shapes, st.integers(400, 900), st.integers(400, 900))
def test_a_picture_stays_inside_its_room(shape, width, height) -> None:
    grid = fit_grid(shape, width, height)
    x, y, w, h = grid.cell_rect(tuple(n - 1 for n in shape))
    assert grid.x >= 0 and grid.y >= 0
    assert x + w <= width + 1e-6 and y + h <= height + 1e-6


def test_gaps_between_images_are_no_cells() -> None:
    grid = fit_grid((4, 8, 8), 200, 200)
    x, y = grid.tile_origin(0)
    assert grid.cell_at(x + grid.tile_w + 1, y + 1) is None
    assert grid.cell_at(x - 1, y + 1) is None


def test_fit_refuses_an_empty_picture() -> None:
    with pytest.raises(ValueError, match="rows, columns"):
        fit_grid((0, 3), 100, 100)


def test_source_index_is_that_of_the_tensor() -> None:
    values = np.arange(2 * 3 * 4 * 5, dtype="<f4").reshape(6, 4, 5)
    whole = picture_of(values, (2, 3, 4, 5))
    assert source_index(whole, (4, 2, 1)) == "[1, 1, 2, 1]"
    assert values_of(whole)[4, 2, 1] == values.reshape(2, 3, 4, 5)[1, 1, 2, 1]
    assert source_index(picture_of(values, (12, 3, 4, 5), True), (4, 2, 1)) == "picture[4, 2, 1]"
    assert source_index(picture_of(np.ones((1, 1)), ()), (0, 0)) == "[0, 0]"


def test_damaged_data_is_refused() -> None:
    with pytest.raises(ValueError, match="reshape"):
        values_of(Picture((2, 2), b"\0" * 12, (2, 2)))


# -- the view --------------------------------------------------------------------------------------


def test_signs_choose_the_map_and_the_ends(view: PictureView) -> None:
    view.show_picture(picture_of(np.array([[-1.0, 0.0, 3.0]])))
    assert view.colour_range() == (-3.0, 3.0)
    table = colormap.diverging(theme.current())
    assert rgb(view, (0, 2)) == tuple(table[255])
    assert rgb(view, (0, 1)) == tuple(table[128])
    view.show_picture(picture_of(np.array([[1.0, 2.0, 3.0]])))
    assert view.colour_range() == (1.0, 3.0)
    assert rgb(view, (0, 0)) == tuple(colormap.sequential()[0])


def test_bad_numbers_take_the_error_colour_and_leave_the_range_alone(view: PictureView) -> None:
    view.show_picture(picture_of(np.array([[1.0, math.nan], [math.inf, 2.0]])))
    assert view.value_range() == (1.0, 2.0)
    error = theme.current().color("error")
    assert view.color_at((0, 1)) == error
    assert view.color_at((1, 0)) == error
    assert view.color_at((0, 0)) != error
    view.show_picture(picture_of(np.full((2, 2), math.nan)))
    assert view.value_range() == (0.0, 0.0)
    assert not view.grab().isNull()


def test_a_number_wider_than_its_cell_has_one_digit(view: PictureView) -> None:
    written: list[str] = []

    class Painter(QPainter):
        def drawText(self, rect, flags, text):
            assert self.fontMetrics().horizontalAdvance(text) <= rect.width()
            written.append(text)

    values = np.array([[-4.9e-09, 0.25]], np.float32)
    rgb = np.zeros((1, 2, 3), np.uint8)
    for width, texts in (
        (200, ["-4.9e-09", "0.25"]),
        (45, ["-5e-09", "0.25"]),
        (38, ["-5e-09", "0.25"]),
    ):
        image = QImage(2 * width, 20, QImage.Format.Format_RGB32)
        painter = Painter(image)
        grid = Grid(1, 1, 2, 1, 0, 0, width, 20)
        picture_paint.paint_numbers(painter, grid, values, rgb, view.font())
        painter.end()
        assert written == texts
        written.clear()


def test_extreme_floats_do_not_overflow(view: PictureView) -> None:
    largest = float(np.finfo(np.float32).max)
    view.show_picture(picture_of(np.array([[-largest, 0.0, largest]])))
    table = colormap.diverging(theme.current())
    assert rgb(view, (0, 0)) == tuple(table[0])


def test_cells_are_painted_crisp(view: PictureView) -> None:
    view.show_picture(picture_of(np.array([[0.0, 1.0]])))
    image = view.grab().toImage()
    grid = view._grid()
    for column in (0, 1):
        x, y, w, h = grid.cell_rect((0, column))
        wanted = view.color_at((0, column)).rgb()
        # Away from the number in the middle, up to a pixel from the edge.
        assert image.pixel(int(x + w - 2), int(y + 2)) == wanted
        assert image.pixel(int(x + 1), int(y + h - 2)) == wanted


def test_pointer_shows_index_and_number(view: PictureView, qtbot) -> None:
    values = np.arange(12.0).reshape(3, 4) / 8
    view.show_picture(picture_of(values))
    x, y, w, h = view._grid().cell_rect((2, 1))
    with qtbot.waitSignal(view.cell_changed) as chosen:
        qtbot.mouseClick(
            view, Qt.MouseButton.LeftButton, pos=QPoint(int(x + w / 2), int(y + h / 2))
        )
    assert chosen.args == [(2, 1)]
    assert view.readout() == "[2, 1] = 1.125"
    assert view.accessibleDescription() == "[2, 1] = 1.125"


def test_arrow_keys_move_the_cursor_and_stop_at_the_edge(view: PictureView, qtbot) -> None:
    view.show_picture(picture_of(np.arange(6.0).reshape(2, 3)))
    cells = []
    for key in (
        Qt.Key.Key_Right,
        Qt.Key.Key_Right,
        Qt.Key.Key_Down,
        Qt.Key.Key_Down,
        Qt.Key.Key_Left,
        Qt.Key.Key_Escape,
    ):
        qtbot.keyClick(view, key)
        cells.append(view.current_cell())
    assert cells == [(0, 0), (0, 1), (1, 1), (1, 1), (1, 0), None]


def test_arrow_keys_walk_from_image_to_image(view: PictureView, qtbot) -> None:
    view.resize(600, 200)
    view.show_picture(picture_of(np.zeros((4, 2, 2))))
    assert view._grid().tile_columns == 4
    cells = []
    for _ in range(4):
        qtbot.keyClick(view, Qt.Key.Key_Right)
        cells.append(view.current_cell())
    assert cells == [(0, 0, 0), (0, 0, 1), (1, 0, 0), (1, 0, 1)]


def test_a_smaller_picture_drops_a_cursor_outside_it(view: PictureView, qtbot) -> None:
    view.show_picture(picture_of(np.zeros((4, 4))))
    for _ in range(4):
        qtbot.keyClick(view, Qt.Key.Key_Down)
    assert view.current_cell() == (3, 0)
    view.show_picture(picture_of(np.zeros((2, 2))))
    assert view.current_cell() is None
    assert view.readout() == ""


def test_empty_states_and_menu(view: PictureView) -> None:
    view.show_picture(None, "Run a step to see numbers")
    assert not view.grab().isNull()
    view.show_picture(picture_of(np.zeros((0, 3))))
    assert view.readout() == ""
    menu = QMenu(view)
    view.fill_menu(menu)
    texts = [action.text() for action in menu.actions()]
    assert texts == ["Copy picture", "Save as PNG…", "Save as SVG…", "Copy numbers"]


def test_copies_the_picture_and_the_numbers(view: PictureView, qtbot) -> None:
    view.show_picture(picture_of(np.array([[1.5, 2.0], [math.nan, -1.0]])))
    view.copy_numbers()
    assert QGuiApplication.clipboard().text() == "1.5\t2.0\nnan\t-1.0"
    qtbot.keyClick(view, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    image = QGuiApplication.clipboard().image()
    assert (image.width(), image.height()) == (800, 600)


def test_saves_png_and_svg_and_says_what_is_wrong(view: PictureView, tmp_path: Path) -> None:
    view.show_picture(picture_of(np.eye(3)))
    save_picture(str(tmp_path / "eye.png"), view.size(), view.paint)
    assert (tmp_path / "eye.png").read_bytes().startswith(b"\x89PNG")
    save_picture(str(tmp_path / "eye.svg"), view.size(), view.paint)
    drawn = (tmp_path / "eye.svg").read_text()
    assert "<svg" in drawn and f'viewBox="0 0 {view.width()} {view.height()}"' in drawn
    with pytest.raises(ValueError, match=r"\.png or \.svg"):
        save_picture(str(tmp_path / "eye.gif"), view.size(), view.paint)
    with pytest.raises(OSError, match="missing"):
        save_picture(str(tmp_path / "missing" / "eye.png"), view.size(), view.paint)


def test_a_png_is_packed_off_the_windows_thread(
    view: PictureView, tmp_path: Path, qtbot, monkeypatch
) -> None:
    view.show_picture(picture_of(np.eye(3)))
    answers = [str(tmp_path / "eye"), str(tmp_path / "missing" / "eye.png")]
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (answers.pop(0), ""))
    threads: list[int] = []
    save = QImage.save

    def watched(image: QImage, path: str) -> bool:
        threads.append(threading.get_ident())
        return save(image, path)

    monkeypatch.setattr(QImage, "save", watched)
    ask_and_save(view, "png", view.size(), view.paint)
    qtbot.waitUntil(lambda: b"IEND" in (tmp_path / "eye.png").read_bytes())
    assert QImage(str(tmp_path / "eye.png")).width() == 800
    assert threads and threads[0] != threading.get_ident()
    told: list[str] = []
    monkeypatch.setattr(QMessageBox, "warning", lambda *words: told.append(words[2]))
    ask_and_save(view, "png", view.size(), view.paint)
    assert "missing" in told[0]


def test_a_marked_cell_stays_where_it_is(view: PictureView, qtbot) -> None:
    view.show_picture(picture_of(np.zeros((4, 4))))
    before = view.grab().toImage()
    view.mark_cell((2, 3), "error")
    marked = view.grab().toImage()
    x, y, width, _ = view._grid().cell_rect((2, 3))
    edge = QPoint(round(x + width / 2), round(y))
    assert marked.pixelColor(edge) == theme.current().color("error") != before.pixelColor(edge)
    qtbot.mouseMove(view, QPoint(20, 20))
    assert view.marked_cell() == (2, 3)
    view.mark_cell((4, 0))
    assert view.marked_cell() is None, "outside"
    view.mark_cell((3, 3))
    view.show_picture(picture_of(np.ones((2, 2))))
    assert view.marked_cell() is None


def test_pictures_that_share_their_ends_have_the_same_colours(view: PictureView, qtbot) -> None:
    other = PictureView()
    qtbot.addWidget(other)
    view.show_picture(picture_of(np.array([[-4.0, -2.0]])))
    other.show_picture(picture_of(np.array([[-2.0, -1.0]])))
    assert rgb(view, (0, 1)) != rgb(other, (0, 0))
    for each in (view, other):
        each.set_shared_range((-4.0, -1.0))
    assert rgb(view, (0, 1)) == rgb(other, (0, 0))
    assert view.colour_range() == (-4.0, -1.0) and view.value_range() == (-4.0, -2.0)
    view.show_picture(picture_of(np.array([[-9.0, -1.0]])))
    assert rgb(view, (0, 0)) == tuple(colormap.sequential()[0]), "beyond the ends: the end"
    view.set_shared_range(None)
    assert view.colour_range() == (-9.0, -1.0)


def test_follows_the_theme(view: PictureView, qapp) -> None:
    view.show_picture(picture_of(np.array([[-1.0, 1.0]])))
    light = view.color_at((0, 0))
    try:
        theme.apply(qapp, theme.DARK)
        assert view.color_at((0, 0)) != light
    finally:
        theme.apply(qapp, theme.LIGHT)


def test_thumbnail_has_no_legend_and_lets_clicks_through(qtbot) -> None:
    view = PictureView(legend=False)
    qtbot.addWidget(view)
    view.resize(64, 32)
    view.show_picture(picture_of(np.eye(2)))
    assert view.focusPolicy() == Qt.FocusPolicy.NoFocus
    assert view._cell_at(QPointF(-5, -5)) is None
    assert view._grid().cell_at(view.width() / 2, view.height() / 2) == (0, 1, 1)


@given(st.integers(1, 40), st.integers(1, 30), st.integers(1, 30), st.integers(200, 900))
def test_images_are_as_large_as_any_arrangement_in_rows_allows(tiles, rows, columns, width) -> None:
    height = 400
    found = fit_grid((tiles, rows, columns), width, height)
    sides = []
    for across in range(1, tiles + 1):
        down = math.ceil(tiles / across)
        room = (width - (across - 1) * TILE_GAP, height - (down - 1) * TILE_GAP)
        sides.append(min(room[0] / (across * columns), room[1] / (down * rows), MAX_CELL))
    assert found.cell_w == found.cell_h == pytest.approx(max(sides))


def test_a_click_on_one_of_several_images_names_the_image(view: PictureView, qtbot) -> None:
    view.show_picture(picture_of(np.arange(24.0).reshape(3, 2, 4)))
    view.show()
    chosen: list = []
    view.cell_chosen.connect(chosen.append)
    for cell in ((0, 1, 3), (2, 0, 1)):
        x, y, w, h = view._grid().cell_rect(cell)
        at = QPointF(x + w / 2, y + h / 2).toPoint()
        qtbot.mouseClick(view, Qt.MouseButton.LeftButton, pos=at)
    assert chosen == [(0, 1, 3), (2, 0, 1)]
    qtbot.mouseClick(view, Qt.MouseButton.LeftButton, pos=QPoint(1, 1))
    assert len(chosen) == 2  # beside the images there is none


@pytest.mark.parametrize(("low", "width"), [(0.0, 400), (-2.0, 240)])
def test_the_legend_looks_as_it_did(view: PictureView, qtbot, qapp, low: float, width: int) -> None:
    view.resize(width, 200)
    view.show_picture(picture_of(np.array([[low, 1.0, 2.0]])))
    view.show()
    qtbot.keyClick(view, Qt.Key.Key_Right)  # the readout stands beside the legend or under it
    qapp.processEvents()
    assert_same_picture(view, f"legend_from_{low:g}")
