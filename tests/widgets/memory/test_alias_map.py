from __future__ import annotations

from itertools import combinations

import msgspec
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt

from engine.protocol import AliasesSnapshot, AliasNode, StorageNode, WrittenBy
from widgets import theme
from widgets.memory.alias_item import layout_map
from widgets.memory.alias_map import LEGIBLE_ZOOM, AliasMapView

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
    for words in ("y", "other strides", "3 × 4 float32", "strides (4, 1)", "_base: x = same",
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
    assert not view.visible_rect().contains(view.tensor_rect("x39"))
    view.show_selected("x39")
    assert view.visible_rect().contains(view.tensor_rect("x39")) and view.zoom == LEGIBLE_ZOOM
    view.fit()
    assert view.visible_rect().contains(view.content_rect())
