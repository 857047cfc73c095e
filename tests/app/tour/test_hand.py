"""The tour's hand on small widgets: where its events arrive, and what it cannot do."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt, QTimer
from PySide6.QtWidgets import (
    QApplication,
    QFileDialog,
    QLineEdit,
    QMainWindow,
    QMenuBar,
    QMessageBox,
    QPushButton,
    QWidget,
)

from app.tour import hand as hands
from app.tour.hand import Hand, TourFailure


class Pad(QWidget):
    """Keeps the events of mouse and keyboard that it gets."""

    def __init__(self) -> None:
        super().__init__()
        self.setMouseTracking(True)
        self.got: list[tuple] = []

    def mousePressEvent(self, event) -> None:
        self.got.append(("press", *event.position().toPoint().toTuple(), event.button()))

    def mouseMoveEvent(self, event) -> None:
        self.got.append(("move", *event.position().toPoint().toTuple()))

    def mouseReleaseEvent(self, event) -> None:
        self.got.append(("release", *event.position().toPoint().toTuple(), event.button()))

    def keyPressEvent(self, event) -> None:
        self.got.append((event.key(), event.modifiers()))


LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def pad(qtbot) -> Pad:
    pad = Pad()
    qtbot.addWidget(pad)
    pad.resize(201, 101)
    pad.show()
    return pad


@pytest.mark.parametrize(("at", "hit"), [(None, (100, 50)), (QPoint(7, 9), (7, 9))])
def test_a_click_goes_to_the_middle_or_to_the_point(pad, at, hit) -> None:
    QTimer.singleShot(0, lambda: pad.got.append("pending"))
    Hand().click(pad, at)
    assert pad.got == [("press", *hit, LEFT), ("release", *hit, LEFT), "pending"]


def test_what_is_disabled_or_not_seen_cannot_be_clicked(qtbot) -> None:
    button = QPushButton()
    qtbot.addWidget(button)
    with pytest.raises(TourFailure, match="“QPushButton” cannot be clicked: it is not visible"):
        Hand().click(button)
    button.show()
    button.setEnabled(False)
    button.setObjectName("go")
    with pytest.raises(TourFailure, match="“go” cannot be clicked: it is disabled"):
        Hand().click(button)


def test_a_drag_moves_in_eight_steps_and_ends_over_the_other_widget(pad, qtbot) -> None:
    goal = Pad()
    qtbot.addWidget(goal)
    goal.setGeometry(0, 0, 100, 100)
    goal.show()
    corner = pad.mapFromGlobal(goal.mapToGlobal(QPoint(0, 0)))
    QTimer.singleShot(0, lambda: pad.got.append("pending"))
    Hand().drag(pad, QPoint(8, 16), goal, QPoint(88, 56) - corner)
    steps = [("move", 8 + 10 * n, 16 + 5 * n) for n in range(1, 9)]
    assert pad.got == [("press", 8, 16, LEFT), *steps, ("release", 88, 56, LEFT), "pending"]
    assert goal.got == []


def test_a_command_is_chosen_in_the_menu_that_holds_it(qtbot) -> None:
    window = QMainWindow()
    qtbot.addWidget(window)
    window.resize(400, 300)
    chosen: list[str] = []
    actions = {}
    for title, texts in {"File": ("Open", "Save"), "Edit": ("Undo", "Redo")}.items():
        menu = window.menuBar().addMenu(title)
        for text in texts:
            actions[text] = menu.addAction(text)
            actions[text].triggered.connect(lambda _=False, text=text: chosen.append(text))
    window.show()
    for text in ("Redo", "Save"):
        Hand().choose(window.menuBar(), actions[text])
    assert chosen == ["Redo", "Save"]
    bar = QMenuBar()
    qtbot.addWidget(bar)
    bar.addAction("a command of the bar itself")
    with pytest.raises(TourFailure, match="no menu holds “Redo”"):
        Hand().choose(bar, actions["Redo"])


def test_a_field_gets_other_text_and_enter(qtbot) -> None:
    field = QLineEdit("old text")
    qtbot.addWidget(field)
    field.show()
    entered: list[str] = []
    field.returnPressed.connect(lambda: entered.append(field.text()))
    Hand().write(field, "new")
    assert entered == ["new"]


def test_a_key_is_pressed_with_its_modifier(pad) -> None:
    QTimer.singleShot(0, lambda: pad.got.append("pending"))
    Hand().press(pad, Qt.Key.Key_F2)
    Hand().press(pad, Qt.Key.Key_L, Qt.KeyboardModifier.ControlModifier)
    assert pad.got == [
        (Qt.Key.Key_F2, Qt.KeyboardModifier.NoModifier),
        "pending",
        (Qt.Key.Key_Control, Qt.KeyboardModifier.ControlModifier),
        (Qt.Key.Key_L, Qt.KeyboardModifier.ControlModifier),
    ]


def test_the_file_dialog_that_opens_is_answered(pad, tmp_path) -> None:
    path = str(tmp_path / "model.pt")
    plain = QFileDialog.Option.DontUseNativeDialog
    with Hand().answering_file_dialog(path):
        chosen, _ = QFileDialog.getSaveFileName(pad, "Save", str(tmp_path / "old"), options=plain)
    assert chosen == path


def test_another_dialog_is_no_file_dialog(pad) -> None:
    box = QMessageBox(pad)
    looks: list[QWidget | None] = []

    def look() -> None:
        looks.append(QApplication.activeModalWidget())
        if len(looks) == 5:
            box.reject()

    timer = QTimer(pad, interval=10)
    timer.timeout.connect(look)
    with (
        pytest.raises(TourFailure, match="no file dialog opened"),
        Hand().answering_file_dialog("model.pt"),
    ):
        timer.start()
        box.exec()
        timer.stop()
    assert looks == [box] * 5


def test_the_hand_waits_until_it_has_happened_and_not_for_ever(qapp, monkeypatch) -> None:
    happened: list[int] = []
    QTimer.singleShot(20, lambda: happened.append(1))
    Hand().until(lambda: happened, "it to happen")
    assert happened == [1]
    looked: list[int] = []
    Hand().until(lambda: looked.append(1) or len(looked) == 3, "a third look")
    assert len(looked) == 3
    monkeypatch.setattr(hands, "PATIENCE_S", 0)
    Hand().until(lambda: True, "nothing")
    with pytest.raises(TourFailure, match="waited 0 s in vain for it to happen"):
        Hand().until(lambda: False, "it to happen")
