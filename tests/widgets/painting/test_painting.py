"""Painting points: strokes of the mouse, keys, numbers, and what the document gets."""

from __future__ import annotations

from math import hypot

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QCheckBox, QComboBox, QLabel, QLineEdit, QPushButton

from engine.project import edits
from engine.project.document import DataSetup, PaintedPoint, Project, TrainingSetup, replace
from engine.project.limits import MAX_POINTS
from tests.pictures import assert_same_picture
from widgets import theme
from widgets.forms import ParamForm
from widgets.painting.paint_form import PaintForm
from widgets.painting.paint_pad import Brush, PaintPad

CORNERS: tuple[PaintedPoint, ...] = ((-1.0, -1.0, 0), (1.0, 1.0, 1), (0.5, -0.5, 2))
LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def pad(qtbot) -> PaintPad:
    pad = PaintPad()
    qtbot.addWidget(pad)
    pad.resize(216, 216)  # the plane is 200 wide
    pad.told = []
    pad.painted.connect(pad.told.append)
    pad.show()
    return pad


@pytest.fixture
def form(qtbot) -> PaintForm:
    form = PaintForm()
    qtbot.addWidget(form)
    form.told = []
    form.edited.connect(lambda setup, words: form.told.append((setup.points, words)))
    form.show_setup(DataSetup("painted"))
    form.show()
    return form


def part(form: PaintForm, kind: type, name: str):
    found = form.findChild(kind, name)
    assert found is not None
    return found


def drag(pad: PaintPad, qtbot, *places: tuple[int, int]) -> None:
    qtbot.mousePress(pad, LEFT, pos=QPoint(*places[0]))
    for place in places[1:]:
        qtbot.mouseMove(pad, QPoint(*place))
    qtbot.mouseRelease(pad, LEFT, pos=QPoint(*places[-1]))


def test_a_press_paints_points_of_the_class_within_the_brush(pad: PaintPad, qtbot) -> None:
    pad.brush = Brush(label=2, count=20, radius=0.1)
    drag(pad, qtbot, (158, 58))  # (0.5, 0.5)
    (points,) = pad.told
    assert len(points) == 20 and {label for _, _, label in points} == {2}
    assert all(hypot(x - 0.5, y - 0.5) <= 0.102 for x, y, _ in points)
    assert len(set(points)) > 10


def test_a_drag_is_one_stroke_with_points_along_its_way(pad: PaintPad, qtbot) -> None:
    pad.brush = Brush(count=1, radius=0.0)
    drag(pad, qtbot, (8, 108), (9, 108), (58, 108), (108, 108))
    assert pad.told == [((-1.0, 0.0, 0), (-0.5, 0.0, 0), (0.0, 0.0, 0))]


def test_points_stay_in_the_plane_and_are_bounded(pad: PaintPad, qtbot) -> None:
    pad.brush = Brush(count=50, radius=0.5)
    drag(pad, qtbot, (0, 0))
    assert all(-1 <= x <= 1 and -1 <= y <= 1 for x, y, _ in pad.told[0])
    pad.show_points([(0.0, 0.0, 0)] * (MAX_POINTS - 1), False)
    drag(pad, qtbot, (100, 100))
    assert len(pad.told[1]) == MAX_POINTS


def test_the_brush_erases_within_its_radius(pad: PaintPad, qtbot) -> None:
    pad.show_points(CORNERS, False)
    pad.brush = Brush(radius=0.2, erases=True)
    drag(pad, qtbot, (158, 158))
    assert pad.told == [CORNERS[:2]]
    drag(pad, qtbot, (108, 108))  # nothing is there
    assert len(pad.told) == 1


def test_escape_takes_the_stroke_back(pad: PaintPad, qtbot) -> None:
    pad.show_points(CORNERS, False)
    qtbot.mousePress(pad, LEFT, pos=QPoint(50, 50))
    qtbot.keyClick(pad, Qt.Key.Key_Escape)
    qtbot.mouseRelease(pad, LEFT, pos=QPoint(50, 50))
    assert pad.told == []


def test_keys_paint_and_erase_at_the_cross(pad: PaintPad, qtbot) -> None:
    pad.brush = Brush(label=1, count=1, radius=0.0)
    for _ in range(4):
        qtbot.keyClick(pad, Qt.Key.Key_Right)
    qtbot.keyClick(pad, Qt.Key.Key_Up)
    qtbot.keyClick(pad, Qt.Key.Key_Space)
    assert pad.told == [((0.2, 0.05, 1),)]
    qtbot.keyClick(pad, Qt.Key.Key_Delete)
    assert pad.told[-1] == () and not pad.brush.erases


def test_strokes_are_edits_with_their_counts(form: PaintForm, qtbot) -> None:
    part(form, QComboBox, "paint_class").setCurrentIndex(3)
    fields = part(form, ParamForm, "paint_brush_form")
    fields.field("points").committed.emit("5")
    fields.field("scatter").committed.emit("0.2")
    assert form.pad.brush == Brush(3, 5, 0.2)
    qtbot.mouseClick(form.pad, LEFT, pos=QPoint(100, 100))
    points, words = form.told[-1]
    assert (len(points), words) == (5, "Paint 5 points, 5 in all")
    setup = TrainingSetup(data=DataSetup("painted", points=points))
    assert edits.set_training(Project(), setup).training == setup
    form.show_setup(setup.data)
    assert part(form, QLabel, "paint_words").text() == "5 points: 5 of class 3."
    part(form, QCheckBox, "paint_erase").setChecked(True)
    qtbot.mouseClick(form.pad, LEFT, pos=QPoint(100, 100))
    points, words = form.told[-1]
    assert words == f"Erase {5 - len(points)} points, {len(points)} in all"
    part(form, QPushButton, "paint_clear").click()
    assert form.told[-1] == ((), "Clear the points")


def test_a_point_is_added_by_its_numbers(form: PaintForm, qtbot) -> None:
    field, problem = part(form, QLineEdit, "paint_point"), part(form, QLabel, "paint_problem")
    qtbot.keyClicks(field, "0.5, -0.25\r")
    assert form.told == [(((0.5, -0.25, 0),), "Add the point (0.5, -0.25), 1 in all")]
    for text, words in (
        ("0.5", "Type two numbers"),
        ("x y", "Type two numbers"),
        ("2, 0", "outside the plane"),
        ("nan, 0", "outside the plane"),
    ):
        field.clear()
        qtbot.keyClicks(field, f"{text}\r")
        assert words in problem.text() and not problem.isHidden()
    assert len(form.told) == 1


def test_numbers_have_no_classes(form: PaintForm) -> None:
    form.show_setup(DataSetup("painted", {"target": "numbers"}, points=CORNERS))
    assert not part(form, QComboBox, "paint_class").isEnabled()
    assert part(form, QLabel, "paint_words").text() == "3 points: y over x."


@pytest.mark.parametrize("points", [((2.0, 0.0, 0),), ((0.0, 0.0, 6),), ((0.0, 0.0, -1),)])
def test_the_document_refuses_points_outside(points: tuple) -> None:
    with pytest.raises(edits.EditError):
        edits.set_training(Project(), TrainingSetup(data=DataSetup("painted", points=points)))
    many = DataSetup("painted", points=((0.0, 0.0, 0),) * (MAX_POINTS + 1))
    with pytest.raises(edits.EditError, match="At most 2,000"):
        edits.set_training(Project(), replace(TrainingSetup(), data=many))


def test_its_picture(form: PaintForm) -> None:
    spread = [(x / 10, y / 10, (x + y) % 6) for x in range(-9, 10, 3) for y in range(-9, 10, 3)]
    form.show_setup(DataSetup("painted", points=tuple(spread)))
    form.resize(340, form.sizeHint().height())
    assert_same_picture(form, "paint_form")


def test_the_classes_have_the_colours_of_the_theme(form: PaintForm, qapp) -> None:
    box = part(form, QComboBox, "paint_class")

    def colours() -> list[str]:
        icons = (box.itemIcon(label).pixmap(8, 8) for label in range(box.count()))
        return [icon.toImage().pixelColor(4, 4).name() for icon in icons]

    before = theme.current()
    light = colours()
    theme.apply(qapp, theme.DARK if before is theme.LIGHT else theme.LIGHT)
    try:
        assert colours() == [theme.current().series[label] for label in range(box.count())] != light
    finally:
        theme.apply(qapp, before)
