"""The canvas without a mouse, its menus and its words."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QAction, QContextMenuEvent, QKeyEvent, QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu

from engine.project.document import Model, Wire, replace
from widgets.canvas import pointer

CONTROL = Qt.KeyboardModifier.ControlModifier
SHIFT = Qt.KeyboardModifier.ShiftModifier
Key = Qt.Key


def press(canvas, *keys, modifiers=Qt.KeyboardModifier.NoModifier) -> None:
    for key in keys:
        QTest.keyClick(canvas, key, modifiers)


def test_tab_goes_through_the_blocks_and_out(canvas):
    seen = []
    for _ in range(6):
        press(canvas, Key.Key_Tab)
        seen += canvas.selected_blocks()
    assert seen == ["x", "a", "relu", "b", "add", "out"]
    press(canvas, Key.Key_Backtab)
    assert canvas.selected_blocks() == ("add",)
    canvas.select(["out"])
    press(canvas, Key.Key_Tab)
    assert canvas.selected_blocks() == ("out",), "past the last block, Tab is the window's"


def test_tab_on_an_empty_canvas_searches(canvas, heard):
    canvas.show_model(Model())
    press(canvas, Key.Key_Tab)
    assert [name for name, *_ in heard] == ["insert_requested"]


@pytest.mark.parametrize(
    ("key", "found"), [("Right", "b"), ("Left", "x"), ("Down", "relu"), ("Up", "a")]
)
def test_arrows_go_to_the_neighbour(canvas, key, found):
    canvas.select(["a"])
    press(canvas, getattr(Key, f"Key_{key}"))
    assert canvas.selected_blocks() == (found,)


def test_an_arrow_without_a_selection_selects_the_first_block(canvas):
    press(canvas, Qt.Key.Key_Left)
    assert canvas.selected_blocks() == ("x",)


def test_arrows_bring_a_far_block_into_view(canvas, model):
    far = replace(model.blocks[3], x=5000.0)
    canvas.show_model(replace(model, blocks=(*model.blocks[:3], far)))
    canvas.select(["b"])
    press(canvas, Key.Key_Right)
    assert canvas.visible_rect().contains(canvas.model_scene.blocks["out"].rect())


def test_control_arrows_move_blocks(canvas, heard):
    canvas.select(["relu", "add"])
    press(canvas, Key.Key_Right, modifiers=CONTROL)
    assert heard == [("blocks_moved", {"relu": (296.0, 240.0), "add": (584.0, 240.0)})]
    press(canvas, Key.Key_Up, modifiers=CONTROL | SHIFT)
    assert heard[1] == ("blocks_moved", {"relu": (296.0, 176.0), "add": (584.0, 176.0)})


@pytest.mark.parametrize(
    ("key", "modifiers", "signal"),
    [
        ("Delete", "No", ("delete_requested", ("a", "b"), ())),
        ("Backspace", "No", ("delete_requested", ("a", "b"), ())),
        ("C", "Control", ("copy_requested", ("a", "b"))),
        ("X", "Control", ("cut_requested", ("a", "b"))),
        ("D", "Control", ("duplicate_requested", ("a", "b"))),
        ("Return", "No", ("block_activated", "a")),
        ("L", "No", ("layout_requested",)),
    ],
)
def test_keys_ask(canvas, heard, key, modifiers, signal):
    canvas.select(["b", "a"])
    press(
        canvas,
        getattr(Key, f"Key_{key}"),
        modifiers=getattr(Qt.KeyboardModifier, f"{modifiers}Modifier"),
    )
    assert heard == [signal]
    heard.clear()
    canvas.select([])
    if key != "L":
        press(
            canvas,
            getattr(Key, f"Key_{key}"),
            modifiers=getattr(Qt.KeyboardModifier, f"{modifiers}Modifier"),
        )
        assert heard == [], "nothing selected, nothing asked"


def test_select_all_paste_and_insert(canvas, heard):
    press(canvas, Key.Key_A, modifiers=CONTROL)
    assert len(canvas.selected_blocks()) == 6
    press(canvas, Key.Key_V, modifiers=CONTROL)
    press(canvas, Key.Key_Slash)
    center = canvas.center().toTuple()
    assert heard == [("paste_requested", *center), ("insert_requested", *center)]
    QTest.mouseMove(canvas.viewport(), canvas.mapFromScene(QPointF(48, 400)))
    press(canvas, Key.Key_V, modifiers=CONTROL)
    assert heard[-1] == ("paste_requested", 48.0, 400.0), "where the mouse is"
    press(canvas, Key.Key_Escape)
    assert canvas.selected_blocks() == ()


def test_wiring_by_keyboard(canvas, heard):
    canvas.select(["a"])
    press(canvas, Key.Key_W)
    assert "a_.output → " in canvas.note.text
    first = canvas._gesture._end
    press(canvas, Key.Key_Right)
    assert canvas._gesture._end != first
    press(canvas, Key.Key_Left)
    assert canvas._gesture._end == first
    press(canvas, Key.Key_Return)
    assert heard == [("wire_requested", Wire("a", "output", first[0], first[2]))]
    assert canvas._gesture is None and not canvas.note.isVisible()


def test_wiring_by_keyboard_offers_only_what_fits_free_inputs_first(canvas):
    canvas.select(["b"])
    press(canvas, Key.Key_W)
    offered = []
    for _ in canvas._gesture._choices:
        offered.append(canvas._gesture._end[::2])
        press(canvas, Key.Key_Down)
    assert set(offered) == {("add", "input"), ("add", "other"), ("relu", "input")}, (
        "not x, a: a loop; not out: wired to b already"
    )
    press(canvas, Key.Key_Escape)
    assert canvas._gesture is None and canvas.selected_blocks() == ("b",)


def test_wiring_the_second_output(canvas, model, heard):
    blocks = (
        replace(model.blocks[1], kind="nn.LSTM", params={"input_size": 64, "hidden_size": 8}),
    )
    canvas.show_model(Model((*blocks, model.blocks[4])))
    canvas.select(["a"])
    press(canvas, Key.Key_W, Key.Key_W, Key.Key_Return)
    second = canvas.model_scene.blocks["a"].port_names("out")[1]
    assert heard == [("wire_requested", Wire("a", second, "relu", "input"))]


def test_wiring_where_there_is_nothing_to_wire(canvas, heard):
    press(canvas, Key.Key_W)
    assert "Select a block" in canvas.note.text
    canvas.select(["out"])
    press(canvas, Key.Key_W)
    assert "no output" in canvas.note.text
    canvas.show_model(Model(canvas.model_scene.model.blocks[:1]))
    canvas.select(["x"])
    press(canvas, Key.Key_W)
    assert "No free input" in canvas.note.text and heard == []


def test_wires_can_be_selected_by_keyboard(canvas, model, heard):
    canvas.select(["a"])
    press(canvas, Key.Key_W, modifiers=SHIFT)
    assert canvas.selected_wires() == (model.wires[0],)
    press(canvas, Key.Key_W, modifiers=SHIFT)
    press(canvas, Key.Key_Delete)
    assert heard == [("delete_requested", (), (model.wires[1],))]


def test_keys_of_the_canvas_are_not_the_windows_while_it_has_focus(canvas):
    for key, modifiers, ours in (
        (Key.Key_C, CONTROL, True),
        (Key.Key_Delete, Qt.KeyboardModifier.NoModifier, True),
        (Key.Key_S, CONTROL, False),
    ):
        event = QKeyEvent(QEvent.Type.ShortcutOverride, key, modifiers)
        event.ignore()
        QApplication.sendEvent(canvas, event)
        assert event.isAccepted() == ours


# -- menus and words -----------------------------------------------------------------------------


def open_menu(canvas, scene_x: float, scene_y: float, reason) -> dict[str, QAction]:
    point = canvas.mapFromScene(QPointF(scene_x, scene_y))
    QApplication.sendEvent(
        canvas.viewport(), QContextMenuEvent(reason, point, canvas.viewport().mapToGlobal(point))
    )
    menu = QApplication.activePopupWidget()
    assert isinstance(menu, QMenu)
    actions = {action.text().split("\t")[0]: action for action in menu.actions()}
    return actions


def close_menu() -> None:
    QApplication.activePopupWidget().close()


def test_menu_of_a_block(canvas, heard):
    actions = open_menu(canvas, 384, 36, QContextMenuEvent.Reason.Mouse)
    assert canvas.selected_blocks() == ("a",)
    actions["Duplicate"].trigger()
    close_menu()
    assert heard == [("duplicate_requested", ("a",))]


def test_menu_by_key_is_that_of_the_selected_block(canvas, heard):
    canvas.select(["b"])
    actions = open_menu(canvas, 40, 400, QContextMenuEvent.Reason.Keyboard)
    actions["Properties"].trigger()
    close_menu()
    assert heard == [("block_activated", "b")]


def test_menu_of_a_wire(canvas, model, heard):
    actions = open_menu(canvas, 240, 36, QContextMenuEvent.Reason.Mouse)
    actions["Delete wire"].trigger()
    close_menu()
    assert heard == [("delete_requested", (), (model.wires[0],))]


def test_menu_of_the_empty_canvas(canvas, heard):
    actions = open_menu(canvas, 48, 400, QContextMenuEvent.Reason.Mouse)
    assert {"Copy picture", "Save as PNG…", "Save as SVG…"} <= actions.keys()
    actions["Paste here"].trigger()
    actions["Insert block…"].trigger()
    close_menu()
    assert heard == [("paste_requested", 48.0, 400.0), ("insert_requested", 48.0, 400.0)]


def test_tooltips_teach(canvas, snapshot):
    canvas.show_report(snapshot)

    def words(x: float, y: float) -> str:
        return pointer.tooltip_at(canvas, QPointF(x, y))

    block = words(384, 20)
    assert "torch.nn.Linear" in block and "64 → 32" in block and "(B, 32) float32" in block
    assert "b is wrong" in words(672, 20) and "330 parameters" in words(672, 20)
    assert "(output)" in words(480, 36) and "(B, 32)" in words(480, 36)
    assert "(input)" in words(288, 36) and "(B, 64)" in words(288, 36)
    assert "x_.x → a_.input" in words(240, 36)
    assert "b is wrong" in words(600, 90)
    assert words(40, 400) == ""


def test_accessible_names(canvas):
    canvas.select(["a"])
    assert canvas.accessibleName() == "Model canvas"
    assert canvas.accessibleDescription() == "Selected: Linear a_"
    assert canvas.minimap.accessibleName()


def test_tab_follows_a_chain_that_is_broken_into_rows(canvas, model):
    places = {"x": (0, 0), "a": (288, 0), "b": (0, 200), "out": (288, 200)}
    chain = (replace(b, x=places[b.id][0], y=places[b.id][1]) for b in model.blocks[:4])
    canvas.show_model(Model(tuple(chain), model.wires))
    seen = []
    for _ in range(4):
        press(canvas, Key.Key_Tab)
        seen += canvas.selected_blocks()
    assert seen == ["x", "a", "b", "out"]


def test_control_d_duplicates_where_it_is_the_systems_key_for_delete(canvas, heard, monkeypatch):
    matches = QKeyEvent.matches

    def on_x11(event: QKeyEvent, standard: QKeySequence.StandardKey) -> bool:
        if standard == QKeySequence.StandardKey.Delete:
            return event.key() == Qt.Key.Key_D
        return matches(event, standard)

    monkeypatch.setattr(QKeyEvent, "matches", on_x11)
    canvas.select(["a"])
    heard.clear()
    QTest.keyClick(canvas, Qt.Key.Key_D, Qt.KeyboardModifier.ControlModifier)
    assert heard == [("duplicate_requested", ("a",))]


def test_tab_goes_through_blocks_whose_wiring_has_a_loop(canvas, model):
    a, b = (block.id for block in model.blocks[1:3])
    loop = (Wire(a, "output", b, "input"), Wire(b, "output", a, "input"))
    canvas.show_model(replace(model, wires=loop))
    seen = []
    while canvas.focusNextPrevChild(True) and len(seen) <= len(model.blocks):
        if canvas.selected_blocks() in seen:
            break
        seen.append(canvas.selected_blocks())
    assert sorted(key for (key,) in seen) == sorted(block.id for block in model.blocks)
