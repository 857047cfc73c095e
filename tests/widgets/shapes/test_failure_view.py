"""The picture of failed operands, by itself, in the console and on a card."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtGui import QContextMenuEvent, QGuiApplication, QImage
from PySide6.QtWidgets import QApplication, QMenu, QVBoxLayout, QWidget

from engine.protocol import CellSnapshot, FailedOperand, FailedOperands, RunCellCommand
from engine.server.session import Session
from tests.pictures import assert_same_picture
from widgets import theme
from widgets.shapes.failure_view import FailureView

MISFIT = FailedOperands(
    "broadcast",
    "add",
    (
        FailedOperand("x", (3, 4), (0, 1), (1,), "float32", "cpu"),
        FailedOperand("y", (3,), (1,), (0,), "float64", "cpu", ("dtype",)),
    ),
    ("-2", "-1"),
    "x has 4, y has 3: neither is 1.",
)


def failures(*sources: str) -> list[FailedOperands]:
    """What the engine tells of lines that fail, among `x` of (3, 4) and `images`."""
    got: list = []
    session = Session(got.append)
    session.handle(
        RunCellCommand(source="x = torch.zeros(3, 4)\nimages = torch.zeros(2, 3, 28, 28)")
    )
    found = []
    for source in sources:
        session.handle(RunCellCommand(source=source))
        assert isinstance(got[-1], CellSnapshot) and got[-1].error is not None
        assert got[-1].error.operands is not None
        found.append(got[-1].error.operands)
    return found


@pytest.fixture
def view(qtbot) -> FailureView:
    made = FailureView()
    qtbot.addWidget(made)
    made.show_failed(MISFIT)
    made.resize(made.sizeHint())
    made.show()
    return made


def test_what_should_agree_stands_under_each_other(view) -> None:
    assert view.box(0, 1).left() == view.box(1, 0).left()
    assert view.box(0, 1).bottom() < view.box(1, 0).top()
    assert view.box(0, 0).right() < view.box(0, 1).left()


def reds(image: QImage, box) -> int:
    """Pixels in a box of the picture that are redder than grey."""
    colors = [
        image.pixelColor(x, y)
        for x in range(box.left(), box.right() + 1)
        for y in range(box.top(), box.bottom() + 1)
    ]
    return sum(color.red() - max(color.green(), color.blue()) > 20 for color in colors)


def test_only_what_fails_has_the_colour_of_errors(view, qapp) -> None:
    image = view.grab().toImage()
    assert reds(image, view.box(0, 1)) > 20 and reds(image, view.box(1, 0)) > 20
    assert reds(image, view.box(0, 0)) == 0


def test_it_is_told_in_words_for_who_does_not_see_it(view) -> None:
    assert view.accessibleName() == "Operands of add, which failed"
    assert view.accessibleDescription() == (
        "x: (3, 4), float32, cpu; does not fit: 4. y: (3,), float64 ✗, cpu; does not fit: 3."
        " x has 4, y has 3: neither is 1."
    )
    assert "✗ marks what does not fit" in view.toolTip()


def test_the_picture_is_copied_on_a_ground_of_its_own(view, qapp) -> None:
    place = QPoint(5, 5)
    qapp.sendEvent(
        view, QContextMenuEvent(QContextMenuEvent.Reason.Mouse, place, view.mapToGlobal(place))
    )
    menu = QApplication.activePopupWidget()
    assert isinstance(menu, QMenu)
    menu.actions()[0].trigger()
    menu.close()
    copied = QGuiApplication.clipboard().image()
    assert copied.size() == view.size() * 2
    ground = theme.current().color("surface")
    assert copied.pixelColor(copied.width() - 1, copied.height() - 1) == ground


def test_it_shrinks_where_there_is_no_room(view) -> None:
    wide = reds(view.grab().toImage(), view.rect())
    view.resize(view.sizeHint().width() // 2, view.height())
    shown = reds(view.grab().toImage(), view.rect())
    assert 0 < shown < wide


def test_nothing_takes_no_room(view) -> None:
    view.show_failed(None)
    assert view.sizeHint().height() == 0


@pytest.mark.parametrize("name", ["light", "dark"])
def test_pictures_of_every_kind(qtbot, qapp, name) -> None:
    theme.apply(qapp, {"light": theme.LIGHT, "dark": theme.DARK}[name])
    sheet = QWidget()
    qtbot.addWidget(sheet)
    column = QVBoxLayout(sheet)
    for failed in failures(
        "x + torch.ones(2, 3)",
        "x @ x",
        "torch.cat([x, x, x.T])",
        "x.view(5, -1)",
        "x.T.view(-1)",
        "x[:, 9]",
        "x.sum(2)",
        "x @ x.T.double()",
        "F.conv2d(images, torch.ones(6, 1, 5, 5))",
    ):
        shown = FailureView()
        shown.show_failed(failed)
        column.addWidget(shown)
    sheet.resize(sheet.sizeHint())
    sheet.show()
    qapp.processEvents()
    assert_same_picture(sheet, f"failed_operands_{name}")
