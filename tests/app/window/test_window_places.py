"""The window's ranks, what stands in the place of a page, folders that are dropped, and what the
engine's chip explains."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QWidget

from app.window.first_picture import after_first_picture
from app.window.main_window import MainWindow


@pytest.fixture
def window(qtbot) -> MainWindow:
    window = MainWindow()
    qtbot.addWidget(window)
    window.page_makers = {
        "model": lambda: window.add_page("model", QWidget(objectName="model")),
        "train": lambda: window.add_page("train", QWidget(objectName="train")),
    }
    window.show()
    return window


def test_ranks_are_a_menu_from_which_one_is_chosen(window: MainWindow) -> None:
    chosen: list[int] = []
    window.rank_chosen.connect(chosen.append)
    chip = window.rank_chip
    assert chip.isHidden()
    rows = [(0, "rank 0: step 5", False), (3, "rank 3: step 6", True)]
    window.show_ranks("rank 3 of 4", "The ranks of this run.", rows)
    assert chip.isVisible() and (chip.text(), chip.toolTip(), chip.accessibleName()) == (
        "rank 3 of 4", "The ranks of this run.", "rank 3 of 4",
    )  # fmt: skip
    actions = chip.menu().actions()
    assert [(each.text(), each.isChecked()) for each in actions] == [
        ("rank 0: step 5", False), ("rank 3: step 6", True),
    ]  # fmt: skip
    actions[0].trigger()
    assert chosen == [0]
    window.show_ranks("rank 0 of 4", "", rows[:1])
    assert len(chip.menu().actions()) == 1
    window.show_ranks("", "", ())
    assert chip.isHidden() and chip.menu().isEmpty()


def test_a_widget_in_the_place_of_a_page_is_shown_with_its_workspace(window: MainWindow) -> None:
    stack, other = window.stack, QWidget()
    window.show_workspace("train")
    window.show_instead("model", other)
    assert stack.currentWidget() is window.pages["train"]  # another workspace is in front
    window.show_workspace("model")
    assert stack.currentWidget() is other and "model" not in window.pages
    window.show_instead("model", None)
    assert stack.currentWidget() is window.pages["model"]
    window.show_instead("model", other)
    assert stack.currentWidget() is other
    window.show_workspace("train")
    window.show_instead("model", None)
    assert stack.currentWidget() is window.pages["train"]
    window.show_workspace("model")
    assert stack.currentWidget() is window.pages["model"]


@pytest.mark.parametrize(
    ("names", "pair"), [(("a", "b"), True), (("a",), False), (("a", "b", "c"), False)]
)
def test_two_folders_are_dropped_as_a_pair(
    window: MainWindow, tmp_path: Path, names: tuple[str, ...], pair: bool
) -> None:
    paths = [str(tmp_path / name) for name in names]
    for path in paths:
        Path(path).mkdir()
    told: list[tuple[str, ...]] = []
    window.file_dropped.connect(lambda path: told.append((path,)))
    window.pair_dropped.connect(lambda *both: told.append(both))
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(path) for path in paths])
    drop = QDropEvent(
        QPointF(10, 10), Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )  # fmt: skip
    window.dropEvent(drop)
    assert told == [tuple(paths) if pair else (paths[0],)]


def test_the_chip_explains_each_state_of_the_engine(window: MainWindow) -> None:
    tips = set()
    for state in ("starting", "ready", "busy", "lost"):
        window.show_engine(state, f"engine {state}")
        tips.add(window.engine_chip.toolTip())
        assert window.engine_chip.text() == f"engine {state}"
        assert window.engine_chip.accessibleName() == f"Engine: engine {state}"
    assert len(tips) == 4


def test_the_rail_the_banners_and_the_page_lie_edge_to_edge(window: MainWindow, qapp) -> None:
    window.show_workspace("model")
    window.banners.show_banner("note", "accent", "A note", "It is so.")
    qapp.processEvents()
    center = window.centralWidget()
    rail, banners, stack = (
        window.rail.geometry(),
        window.banners.geometry(),
        window.stack.geometry(),
    )
    assert (rail.topLeft(), rail.bottom()) == (center.rect().topLeft(), center.rect().bottom())
    assert banners.left() == stack.left() == rail.right() + 1
    assert banners.top() == 0 and stack.top() == banners.bottom() + 1
    assert stack.bottomRight() == center.rect().bottomRight()


def test_what_waits_for_the_first_picture_is_called_once_after_it(qtbot) -> None:
    widget, called = QWidget(), list[bool]()
    qtbot.addWidget(widget)
    after_first_picture(widget, lambda: called.append(widget.isVisible()))
    assert called == []
    widget.show()
    qtbot.waitUntil(lambda: called == [True])
    widget.hide()
    widget.show()
    widget.repaint()
    qtbot.wait(0)
    assert called == [True]
