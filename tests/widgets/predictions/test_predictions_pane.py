"""The pane of predictions: matrix, plane, pairs, samples."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtWidgets import QComboBox, QPushButton

from engine.protocol import Plane, PredictedSample, PredictionsSnapshot, SampleImage
from tests.labels import said
from tests.pictures import assert_same_picture
from widgets import theme
from widgets.predictions.confusion_view import MIN_NUMBER, ConfusionView
from widgets.predictions.pairs_view import PairsView
from widgets.predictions.plane_view import PlaneView
from widgets.predictions.prediction_pane import PredictionPane
from widgets.predictions.sample_cards import sample_text
from widgets.theme import GRID

COUNTS = ((30, 0, 2), (5, 20, 0), (0, 0, 0))
CLASSES = ("cat", "dog", "a very long name of a class")
GREY = SampleImage(2, 2, True, bytes([0, 255, 255, 0]))
WRONG = PredictedSample(7, "dog", "cat", False, 2.5, 0.75, GREY, "")
RIGHT = PredictedSample(3, "cat", "cat", True, 0.01, 0.99, GREY, "")
NUMBER = PredictedSample(1, "2.5", "2.4", False, 0.01, None, None, "0.1, 0.2")
FOUND = PredictionsSnapshot(
    step=40,
    part="validation",
    samples=57,
    total=57,
    loss=0.5,
    classes=CLASSES,
    accuracy=50 / 57,
    counts=COUNTS,
    matching=57,
    shown=(WRONG, RIGHT),
)
PLANE = Plane(
    -1.0, 1.0, -1.0, 1.0, 2, bytes([0, 1, 1, 0]), bytes([255, 128, 255, 200]),
    ((-0.5, 0.5, 0), (0.5, 0.5, 0)), (1,),
)  # fmt: skip


@pytest.fixture
def matrix(qtbot) -> ConfusionView:
    view = ConfusionView()
    qtbot.addWidget(view)
    view.show_counts(COUNTS, CLASSES, None)
    view.resize(320, 240)
    view.show()
    view.told = []
    view.cell_chosen.connect(view.told.append)
    return view


@pytest.fixture
def pane(qtbot) -> PredictionPane:
    pane = PredictionPane()
    qtbot.addWidget(pane)
    pane.resize(420, 700)
    pane.show_predictions(FOUND)
    pane.show()
    pane.told = []
    pane.asked.connect(lambda: pane.told.append((pane.part, pane.cell, pane.first)))
    return pane


def middle(view: ConfusionView, cell: tuple[int, int]) -> QPoint:
    return view.cell_rect(cell).center().toPoint()


def test_a_click_chooses_a_cell_and_a_second_one_none(matrix: ConfusionView, qtbot) -> None:
    for cell in ((1, 0), (1, 0), (2, 2)):
        qtbot.mouseClick(matrix, Qt.MouseButton.LeftButton, pos=middle(matrix, cell))
    assert matrix.told == [(1, 0), None, (2, 2)]


def test_every_cell_is_found_where_it_is_drawn_and_none_beside(matrix: ConfusionView) -> None:
    for row in range(3):
        for column in range(3):
            rect = matrix.cell_rect((row, column))
            assert matrix.cell_at(rect.center()) == (row, column)
            assert matrix.cell_at(rect.topLeft() + QPointF(0.5, 0.5)) == (row, column)
    edge = matrix.cell_rect((2, 2)).bottomRight()
    for place in (QPointF(2, 2), edge + QPointF(1, -2), edge + QPointF(-2, 1)):
        assert matrix.cell_at(place) is None
    assert matrix.cell_rect((2, 2)).bottom() < matrix.height()


def test_arrow_keys_move_inside_the_matrix_and_esc_leaves(matrix: ConfusionView, qtbot) -> None:
    keys = [Qt.Key.Key_Down, Qt.Key.Key_Right, Qt.Key.Key_Down, Qt.Key.Key_Down, Qt.Key.Key_Down,
            Qt.Key.Key_Left, Qt.Key.Key_Left, Qt.Key.Key_Up, Qt.Key.Key_Escape]  # fmt: skip
    for key in keys:
        qtbot.keyClick(matrix, key)
    assert matrix.told == [(0, 0), (0, 1), (1, 1), (2, 1), (2, 0), (1, 0), None]


def test_a_cell_is_told_in_words(matrix: ConfusionView) -> None:
    assert matrix.text_of((1, 0)) == "5 of class dog predicted as cat, 20.0 % of them"
    assert matrix.text_of((2, 0)) == "0 of class a very long name of a class predicted as cat"


def test_what_was_predicted_is_told(pane: PredictionPane) -> None:
    assert said(pane, "predictions_facts") == (
        "After step 40: 57 validation samples, mean loss 0.5, accuracy 87.7 %."
    )
    assert said(pane, "predictions_chosen") == "57 samples: 1 to 2, the largest loss first."
    assert [card.accessibleName() for card in pane.cards.cards] == ["Sample 7", "Sample 3"]
    tips = [card.toolTip() for card in pane.cards.cards]
    assert tips[0].endswith("predicted cat; the target is dog.")
    assert tips[1].endswith("predicted cat; right.")
    assert sample_text(WRONG) == "cat, not dog (75.0 %)"
    assert sample_text(RIGHT) == "cat (99.0 %)"
    assert sample_text(NUMBER) == "2.4, not 2.5"


def test_why_there_are_none_is_told_until_there_are(pane: PredictionPane) -> None:
    pane.show_trouble("There is no validation part.")
    assert pane.trouble.isVisible() and pane.trouble.text() == "There is no validation part."
    pane.show_predictions(FOUND)
    assert not pane.trouble.isVisible()


def test_cells_pages_and_parts_are_asked_for(pane: PredictionPane, qtbot) -> None:
    back, more = (pane.findChild(QPushButton, f"predictions_{n}") for n in ("back", "on"))
    assert not back.isEnabled() and more.isEnabled()
    more.click()
    pane.show_predictions(FOUND)
    assert back.isEnabled()
    back.click()
    more.click()
    pane.matrix.cell_chosen.emit((1, 0))
    box = pane.findChild(QComboBox, "predictions_part")
    box.setCurrentIndex(1)
    box.activated.emit(1)
    assert pane.told == [
        ("validation", None, 24),
        ("validation", None, 0),
        ("validation", None, 24),
        ("validation", (1, 0), 0),
        ("training", None, 0),
    ]


def test_a_cell_without_samples_says_so(pane: PredictionPane) -> None:
    pane.cell = (2, 0)
    changed = PredictionsSnapshot(
        step=1, part="validation", samples=57, total=90, loss=0.5, classes=CLASSES, counts=COUNTS
    )
    pane.show_predictions(changed)
    assert said(pane, "predictions_chosen") == "No sample is left in this cell."
    assert "the first 57 of 90 validation samples" in said(pane, "predictions_facts")
    assert pane.matrix.chosen == (2, 0)
    assert not pane.findChild(QPushButton, "predictions_on").isEnabled()


def test_numbers_have_points_instead_of_a_matrix(pane: PredictionPane) -> None:
    found = PredictionsSnapshot(
        step=1, part="training", samples=2, total=2, loss=0.25, pairs=((1.0, 1.5), (2.0, 2.5)),
        r2=0.875, matching=2, shown=(NUMBER,),
    )  # fmt: skip
    pane.show_predictions(found)
    assert said(pane, "predictions_facts") == (
        "After step 1: 2 training samples, mean loss 0.25, R² 0.875."
    )
    assert pane.matrix.isHidden() and pane.plane.isHidden() and pane.pairs.isVisible()
    pane.show_predictions(FOUND)
    assert pane.pairs.isHidden() and pane.matrix.isVisible()


def test_in_a_low_pane_the_worst_samples_are_seen(pane: PredictionPane, qapp) -> None:
    classes = tuple(map(str, range(10)))
    counts = tuple((1,) * 10 for _ in classes)
    pane.show_predictions(replace(FOUND, classes=classes, counts=counts))
    pane.show()

    def side() -> float:
        qapp.processEvents()
        return pane.matrix.cell_rect((0, 0)).width()

    assert 32.0 <= side() < 34.0
    pane.resize(300, 430)
    assert MIN_NUMBER <= side() < 23.0
    pane.resize(300, 100)
    assert MIN_NUMBER <= side() < 21.0  # the counts stay
    pane.resize(300, 430)
    qapp.processEvents()
    below = pane.matrix.height() - pane.matrix.cell_rect((9, 9)).bottom()
    assert below < 4 * GRID
    card = pane.cards.cards[0]
    assert card.mapTo(pane, QPoint()).y() + 4 * GRID < pane.height()


@pytest.mark.parametrize(("view", "show"), [(PlaneView, "show_plane"), (PairsView, "show_pairs")])
def test_a_square_leaves_room_for_what_is_under_it(qtbot, view, show) -> None:
    made = view()
    qtbot.addWidget(made)
    getattr(made, show)(PLANE if view is PlaneView else ((0.0, 1.0),))
    assert made.sizePolicy().hasHeightForWidth()
    assert (made.heightForWidth(200), made.heightForWidth(900)) == (200, 320)
    for room, side in ((900, 320), (430, 215), (100, 160)):
        made.show_room(room)
        assert made.sizeHint().height() == made.heightForWidth(900) == side


@pytest.mark.parametrize("name", ["light", "dark"])
def test_it_looks_as_it_did(pane: PredictionPane, qapp, qtbot, name: str) -> None:
    theme.apply(qapp, {"light": theme.LIGHT, "dark": theme.DARK}[name])
    pane.matrix.chosen = (1, 0)
    assert_same_picture(pane, f"predictions_{name}")
    plane, pairs = PlaneView(), PairsView()
    for view in (plane, pairs):
        qtbot.addWidget(view)
        view.resize(320, 320)
    plane.show_plane(PLANE)
    pairs.show_pairs(((0.0, 0.5), (1.0, 1.0), (2.0, 1.5), (3.0, float("inf"))))
    assert_same_picture(plane, f"plane_{name}")
    assert_same_picture(pairs, f"pairs_{name}")
