"""The map of shared memory: its layout, selection by mouse and keys, tooltips."""

from __future__ import annotations

from functools import partial
from itertools import combinations

import msgspec
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QGuiApplication

from engine.protocol import AliasesSnapshot, AliasNode, StorageNode, WrittenBy
from widgets import theme
from widgets.memory.alias_item import (
    COLUMN_GAP,
    FOREST_GAP,
    NODE_WIDTH,
    ROW_GAP,
    STORAGE_WIDTH,
    layout_map,
)
from widgets.memory.alias_map import KINDS, LEGIBLE_ZOOM, AliasMapView
from widgets.memory.written import written_words

WRITE = WrittenBy("add_", "<cell 2>", 1, "y.add_(1)")
X = AliasNode(("x", "same"), "base", 1, (12,), "float32", (1,), 0)
Y = AliasNode(("y",), "view", 1, (3, 4), "float32", (4, 1), 0, 0, 0, "view", WRITE)
Z = AliasNode(("z",), "view", 1, (4,), "float32", (1,), 4, 1, 0, "[1]")
D = AliasNode(("d",), "detached", 1, (12,), "float32", (1,), 0, 0, None, "detach")
UNNAMED = AliasNode((), "base", 2, (3, 1), "float32", (1, 1), 0)
E = AliasNode(("e",), "view", 2, (3, 4), "float32", (1, 0), 0, 4, 4, "expand")
ALIASES = AliasesSnapshot(
    storages=(StorageNode(1, 48, "cpu", 3, WRITE), StorageNode(2, 12, "cpu", 0)),
    tensors=(X, Y, Z, D, UNNAMED, E),
)


@pytest.fixture
def view(qtbot) -> AliasMapView:
    view = AliasMapView()
    qtbot.addWidget(view)
    view.resize(1000, 600)
    view.show()
    qtbot.waitExposed(view)
    view.show_aliases(ALIASES)
    return view


def test_each_tensor_stands_right_of_what_it_was_made_from_without_overlap() -> None:
    layout = layout_map(ALIASES)
    for number, node in enumerate(ALIASES.tensors):
        source = (
            layout.storages[node.storage] if node.parent is None else layout.tensors[node.parent]
        )
        assert layout.tensors[number].left() > source.right()
    rects = (*layout.storages.values(), *layout.tensors)
    assert not any(a.intersects(b) for a, b in combinations(rects, 2))
    assert layout.storages[2].top() > max(rect.bottom() for rect in layout.tensors[:4])


def test_a_click_selects_a_tensor(view, qtbot) -> None:
    with qtbot.waitSignal(view.tensor_selected) as signal:
        qtbot.mouseClick(
            view.viewport(), Qt.MouseButton.LeftButton, pos=view.point_of("z").toPoint()
        )
    assert signal.args == ["z"]
    assert view.selected == "z"


def test_arrow_keys_walk_the_branches(view, qtbot) -> None:
    chosen = []
    view.tensor_selected.connect(chosen.append)
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Right,
                Qt.Key.Key_Left, Qt.Key.Key_Left, Qt.Key.Key_Up):  # fmt: skip
        qtbot.keyClick(view, key)
    assert chosen == ["x", "y", "z", "z", "y", "x", "x"]


def test_a_base_without_a_name_is_told_and_selects_nothing(view, qtbot) -> None:
    chosen = []
    view.tensor_selected.connect(chosen.append)
    view.show_selected("e")
    qtbot.keyClick(view, Qt.Key.Key_Left)
    assert chosen == [] and view.selected == ""
    assert "no variable names it" in view.accessibleDescription()


def test_selecting_from_outside_tells_nothing_back(view, qtbot) -> None:
    chosen = []
    view.tensor_selected.connect(chosen.append)
    view.show_selected("same")
    assert view.selected == "x" and chosen == []
    view.show_selected("gone")
    assert view.selected == ""


def test_tooltips_tell_kind_strides_root_and_line(view) -> None:
    tip = view.tooltip(1)
    for words in ("y", "other strides", "(3, 4) float32", "strides (4, 1)", "_base: x = same",
                  "made by add_ in cell 2, line 1: y.add_(1)"):  # fmt: skip
        assert words in tip
    assert "one object with several names: x is same" in view.tooltip(0)
    assert "cut off from the graph" in view.tooltip(3)


def test_a_refresh_keeps_the_selection_and_the_place(view, qtbot) -> None:
    view.show_selected("z")
    view.set_view(0.8, 300, 100)
    place = view.center()
    view.show_aliases(ALIASES)
    assert view.selected == "z"
    assert (view.center() - place).manhattanLength() < 2
    alone = msgspec.structs.replace(E, parent=0, root=0)
    view.show_aliases(AliasesSnapshot(storages=ALIASES.storages[1:], tensors=(UNNAMED, alone)))
    assert view.selected == ""
    assert view.visible_rect().contains(view.tensor_rect("e"))


def test_empty_and_cut_off_maps_say_so(qtbot, view) -> None:
    drawn = view.grab().toImage()
    view.show_aliases(AliasesSnapshot(storages=(), tensors=()))
    empty = view.grab().toImage()
    middle = empty.copy(200, 250, 600, 100)
    corner = middle.pixelColor(0, 0)
    assert any(
        middle.pixelColor(QPoint(x, y)) != corner
        for x in range(0, middle.width(), 2)
        for y in range(0, middle.height(), 2)
    )
    view.show_aliases(AliasesSnapshot(storages=ALIASES.storages, tensors=ALIASES.tensors,
                                      left_out=7))  # fmt: skip
    assert view.grab().toImage() != drawn


def test_colours_follow_the_storage_and_the_theme(view, qapp) -> None:
    def bar(name: str):
        rect = view.tensor_rect(name)
        point = view.mapFromScene(rect.topLeft() + QPointF(6, 28))
        image = view.viewport().grab().toImage()
        return image.pixelColor(QPointF(point).toPoint() * image.devicePixelRatio())

    assert bar("x") == bar("z") != bar("e")
    light = bar("x")
    theme.apply(qapp, theme.DARK)
    assert bar("x") != light


def test_a_large_map_opens_legible_and_what_is_selected_comes_into_sight(view) -> None:
    assert view.zoom > LEGIBLE_ZOOM and view.visible_rect().contains(view.content_rect())
    many = range(40)
    view.show_aliases(
        AliasesSnapshot(
            storages=tuple(StorageNode(number, 48, "cpu", 0) for number in many),
            tensors=tuple(
                AliasNode((f"x{number}",), "base", number, (12,), "float32", (1,), 0)
                for number in many
            ),
        )
    )
    assert view.zoom == LEGIBLE_ZOOM
    assert view.visible_rect().contains(view.tensor_rect("x0"))
    whole, seen = view.content_rect(), view.visible_rect()
    margin = view.FIT_MARGIN_PX / LEGIBLE_ZOOM
    assert seen.top() == pytest.approx(whole.top() - margin, abs=2)
    assert seen.center().x() == pytest.approx(whole.center().x(), abs=2)
    assert not view.visible_rect().contains(view.tensor_rect("x39"))
    view.show_selected("x39")
    assert view.visible_rect().contains(view.tensor_rect("x39")) and view.zoom == LEGIBLE_ZOOM
    view.fit()
    assert view.visible_rect().contains(view.content_rect())


def test_a_tensor_and_a_storage_tell_their_facts_under_the_pointer(view, hover) -> None:
    def at(x: float, y: float) -> str:
        return hover(view.viewport(), view.mapFromScene(x, y))

    layout = layout_map(ALIASES)
    z, first, second = layout.tensors[2], layout.storages[1], layout.storages[2]
    assert at(z.center().x(), z.center().y()) == view.tooltip(2)
    assert at(first.center().x(), first.center().y()) == (
        "Storage 1: 48 B on cpu\nversion 3: in-place writes that torch has counted\n"
        "last written by add_ in cell 2, line 1: y.add_(1)"
    )
    assert at(second.center().x(), second.center().y()) == (
        "Storage 2: 12 B on cpu\nversion 0: in-place writes that torch has counted"
    )
    assert at((first.right() + layout.tensors[0].left()) / 2, first.bottom() + 8) == ""
    view.show_aliases(msgspec.structs.replace(ALIASES, storages=(
        msgspec.structs.replace(ALIASES.storages[0], version=None, written_by=None),
        ALIASES.storages[1])))  # fmt: skip
    assert at(first.center().x(), first.center().y()) == "Storage 1: 48 B on cpu"


def test_what_a_tensor_tells_is_whole(view) -> None:
    assert [view.tooltip(number).split("\n") for number in (0, 2, 4)] == [
        ["x = same", "one object with several names: x is same", KINDS["base"],
         "(12,) float32 · strides (1,) · offset 0"],
        ["z", KINDS["view"], "(4,) float32 · strides (1,) · offset 4", "_base: x = same"],
        ["(no variable names it)", KINDS["base"], "(3, 1) float32 · strides (1, 1) · offset 0"],
    ]  # fmt: skip


def test_the_right_button_and_empty_ground_choose_nothing(view, qtbot) -> None:
    chosen = []
    view.tensor_selected.connect(chosen.append)
    click = partial(qtbot.mouseClick, view.viewport())
    click(Qt.MouseButton.RightButton, pos=view.point_of("z").toPoint())
    click(Qt.MouseButton.LeftButton, pos=QPoint(5, 5))
    assert chosen == [] and view.selected == ""


def test_the_keys_stay_on_the_map(view, qtbot) -> None:
    for _ in range(9):
        qtbot.keyClick(view, Qt.Key.Key_Down)
    assert view.selected == "e"
    view.show_selected("x")
    qtbot.keyClick(view, Qt.Key.Key_Left)
    assert view.selected == "x"
    view.show_aliases(AliasesSnapshot(storages=(), tensors=()))
    qtbot.keyClick(view, Qt.Key.Key_Down)
    assert view.selected == ""


def test_the_first_tensor_made_from_one_stands_beside_it_and_the_others_below() -> None:
    layout = layout_map(ALIASES)
    x, y, z, d, unnamed, e = layout.tensors
    first, second = layout.storages[1], layout.storages[2]
    assert first.top() == x.top() == y.top() == z.top() == 0
    assert d.left() == y.left() and d.top() == y.bottom() + ROW_GAP
    assert second.top() == unnamed.top() == e.top() == d.bottom() + ROW_GAP + FOREST_GAP
    assert [rect.left() for rect in (first, x, y, z)] == [
        column * (NODE_WIDTH + COLUMN_GAP) - (column > 0) * (NODE_WIDTH - STORAGE_WIDTH)
        for column in range(4)
    ]


def test_the_menu_fits_the_map_and_copies_it(view, menu_of) -> None:
    view.set_view(0.3, 4000, 4000)
    actions = menu_of(view.viewport())
    assert list(actions)[:2] == ["Fit\tF", "Copy picture"]
    actions["Fit\tF"].trigger()
    assert view.visible_rect().contains(view.content_rect())
    QGuiApplication.clipboard().clear()
    actions["Copy picture"].trigger()
    assert not QGuiApplication.clipboard().image().isNull()


@pytest.mark.parametrize(
    ("where", "words"),
    [
        (WRITE, "add_ in cell 2, line 1: y.add_(1)"),
        (
            WrittenBy("", "/home/me/model.py", None, ""),
            "backward, or a write that was not recorded, in model.py",
        ),
        (WrittenBy("mul_", "<cell 3>", 7, ""), "mul_ in cell 3, line 7"),
        (WrittenBy("mul_", "<cell 3>", None, "x *= 2"), "mul_ in cell 3: x *= 2"),
    ],
)
def test_the_line_that_wrote_in_words(where, words) -> None:
    assert written_words(where) == words
