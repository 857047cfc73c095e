"""The window's frame by itself: pages, rail, menus, title, engine chip, drops, leaving."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QGraphicsView, QLabel, QWidget

from app.actions import MENUS, ActionSpec
from app.window.main_window import MESSAGE_MS, MainWindow, block_entries, let_drops_through
from engine.project import catalogue
from engine.project.document import WORKSPACES
from engine.project.subject import FileSubject
from tests.pictures import assert_same_picture
from tests.words import assert_same_words
from widgets import theme


@pytest.fixture
def window(qtbot) -> MainWindow:
    window = MainWindow()
    qtbot.addWidget(window)
    window.page_makers = {
        name: lambda name=name: window.add_page(name, QWidget(objectName=name))
        for name in WORKSPACES
    }
    window.show()
    return window


def test_a_page_is_made_at_its_first_visit(window) -> None:
    told = []
    window.workspace_changed.connect(told.append)
    assert not window.pages and window.workspace is None
    for name in ("model", "train", "train", "model"):
        window.show_workspace(name)
        assert window.workspace == name and window.rail.buttons[name].isChecked()
        assert window.stack.currentWidget() is window.pages[name] is window.page(name)
    assert told == ["model", "train", "model"] and set(window.pages) == {"model", "train"}
    assert window.stack.count() == 2


def test_a_page_gets_the_keys_when_it_is_shown_but_not_when_it_is_there(window, qtbot) -> None:
    field = QWidget()
    field.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    window.page_makers = {"model": lambda: window.add_page("model", field)}
    window.show_workspace("model")
    assert field.hasFocus()
    window.rail.buttons["train"].setFocus()
    window.show_workspace("model")
    assert not field.hasFocus()


def test_the_rail_has_a_button_for_each_workspace(window, qtbot) -> None:
    shown = []
    for name in WORKSPACES:
        window.actions_table[f"view.{name}"].triggered.connect(lambda _=0, n=name: shown.append(n))
    assert list(window.rail.buttons) == [*WORKSPACES, "files"]
    assert window.rail.buttons["files"].isHidden()
    for name, button in list(window.rail.buttons.items())[:-1]:
        assert button.text() == name.capitalize() and button.isCheckable()
        assert button.accessibleName() == f"{name.capitalize()} workspace"
        assert button.toolTip() == window.actions_table[f"view.{name}"].toolTip()
        assert button.width() == window.rail.width()
        room = button.fontMetrics().horizontalAdvance(button.text())
        assert room < button.width() <= max(72, room + 40)
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
        assert [b.isChecked() for b in window.rail.buttons.values()].count(True) == 1
    assert shown == list(WORKSPACES)
    window.page_makers = {"files": lambda: window.add_page("files", QWidget())}
    window.show_workspace("files")
    assert window.rail.buttons["files"].isVisible() and window.rail.buttons["files"].isChecked()
    tops = [button.geometry().top() for button in window.rail.buttons.values()]
    assert tops == sorted(tops)


def test_the_rail_follows_the_theme(window, qapp, qtbot) -> None:
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    window.rail.buttons["model"].setChecked(True)
    window.rail.buttons["train"].setFocus()
    for colors in (theme.DARK, theme.LIGHT):
        theme.apply(qapp, colors)
        assert_same_picture(window.rail, f"rail_{colors.name}")


def test_the_menus_have_each_action_once_with_its_tip(window) -> None:
    menus = [action.menu() for action in window.menuBar().actions()]
    assert [menu.title() for menu in menus] == list(MENUS)
    for menu, entries in zip(menus, MENUS.values(), strict=True):
        assert menu.toolTipsVisible()
        specs = [entry for entry in entries if isinstance(entry, ActionSpec)]
        shown = [action for action in menu.actions() if action.text() and not action.menu()]
        assert shown == [window.actions_table[spec.id] for spec in specs]
        lines = [action for action in menu.actions() if action.isSeparator()]
        assert len(lines) == len([entry for entry in entries if entry == ""]) or lines
    below = [action.menu() for menu in menus for action in menu.actions() if action.menu()]
    assert set(below) == {window.recent_menu, window.panels_menu}
    assert window.recent_menu.toolTipsVisible()


def test_the_menu_bar_is_as_high_as_its_titles(window) -> None:
    """Each has a line below it, and so has the bar: they are one."""
    bar = window.menuBar()
    assert bar.sizeHint().height() == bar.actionGeometry(bar.actions()[0]).height()


@pytest.mark.parametrize(
    ("state", "role"),
    [("starting", "warning"), ("ready", "success"), ("busy", "accent"), ("lost", "error")],
)
def test_the_chip_tells_the_engines_state(window, qapp, state, role) -> None:
    window.show_engine(state, f"engine {state}")
    chip = window.engine_chip
    assert_same_words(window.statusBar(), f"status_bar_{state}")
    assert chip.minimumWidth() == chip.sizeHint().width()
    for colors in (theme.DARK, theme.LIGHT):
        theme.apply(qapp, colors)
        picture = chip.icon().pixmap(32, 32).toImage()
        seen = {picture.pixelColor(x, y).name() for x in range(32) for y in range(32)
                if picture.pixelColor(x, y).alpha() > 250}  # fmt: skip
        assert getattr(colors, role) in seen
    assert [action.text() for action in chip.menu().actions()] == [
        window.actions_table[name].text()
        for name in ("engine.interrupt", "engine.restart", "engine.detach")
    ]


def test_words_in_the_status_bar(window, qtbot) -> None:
    window.say("Saved.")
    assert window.statusBar().currentMessage() == "Saved." and MESSAGE_MS > 1000
    window.show_totals("3 blocks")
    totals = window.findChild(QLabel, "model_totals")
    assert totals.text() == "3 blocks" and totals.toolTip()


def test_the_title_has_the_project_its_file_and_whether_it_is_saved(window) -> None:
    window.show_title("mine", "/home/me/mine.tlab", True)
    assert window.windowTitle() == "mine[*] – Tensor Lab" and window.isWindowModified()
    assert window.windowFilePath() == "/home/me/mine.tlab"
    window.show_title("mine", "", False)
    assert not window.isWindowModified()


@pytest.mark.parametrize("may_leave", [True, False])
def test_leaving_asks_first(window, may_leave) -> None:
    told = []
    window.closing.connect(lambda: told.append(1))
    window.may_close = lambda: may_leave
    assert window.close() == may_leave == (told == [1])
    assert window.isVisible() != may_leave


@pytest.mark.parametrize(
    ("names", "dropped"),
    [
        ((), []),
        (("a.txt",), []),
        (("a.txt", "b.tlab", "c.py"), ["/b.tlab"]),
        (("c.py",), ["/c.py"]),
        (("a.zip", "w.pth"), ["/w.pth"]),
        (("a.PT", "b.onnx"), ["/a.PT", "/b.onnx"]),
        (("a.pt", "b.pt", "c.pt"), ["/a.pt"]),
        (("a.pt", "b.py"), ["/a.pt"]),
    ],
)
def test_a_project_or_python_file_dropped_on_the_window_is_told(window, names, dropped) -> None:
    told = []
    window.file_dropped.connect(told.append)
    window.pair_dropped.connect(lambda *paths: told.extend(paths))
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(f"/{name}") for name in names])
    shared = (Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton,
              Qt.KeyboardModifier.NoModifier)  # fmt: skip
    enter = QDragEnterEvent(QPoint(10, 10), *shared)
    enter.ignore()
    window.dragEnterEvent(enter)
    drop = QDropEvent(QPointF(10, 10), *shared)
    drop.ignore()
    window.dropEvent(drop)
    assert told == dropped
    assert enter.isAccepted() == drop.isAccepted() == bool(dropped)
    assert window.acceptDrops()
    view = QGraphicsView(window)
    let_drops_through(view)
    assert not view.acceptDrops() and not view.viewport().acceptDrops()


def test_every_enabled_action_and_every_block_is_found_by_name(window, qtbot) -> None:
    wanted = []
    window.block_wanted.connect(wanted.append)
    off = window.actions_table["edit.undo"]
    off.setEnabled(False)
    window.ask_for_command()
    found = window.palette_popup.list
    titles = [found.item(row).text() for row in range(found.count())]
    actions = [action.text().replace("&", "") for spec, action in window.actions_table
               if spec.id not in ("edit.undo", "view.commands") and action.isEnabled()]  # fmt: skip
    blocks = [f"Add {kind.title}" for kind in catalogue.kinds().values()]
    assert titles == actions + blocks
    hints = {found.item(row).text(): found.item(row).data(Qt.ItemDataRole.UserRole)
             for row in range(found.count())}  # fmt: skip
    for spec, action in window.actions_table:
        title = action.text().replace("&", "")
        if title in hints:
            keys = f"  {spec.shortcut}" if spec.shortcut else ""
            assert hints[title] == spec.category + keys
    assert hints["Add Linear"] == "torch.nn.Linear"
    window.palette_popup.field.setText("add linear")
    QApplication.processEvents()
    window.palette_popup.field.returnPressed.emit()
    assert wanted == ["nn.Linear"]


def test_a_block_is_asked_for_at_a_point_of_the_window(window) -> None:
    chosen = []
    window.ask_for_block(chosen.append, QPoint(300, 100))
    popup = window.palette_popup
    assert popup.pos() == QPoint(300, 100) and popup.isVisible()
    assert popup.field.placeholderText() == "Search for a block to insert"
    popup.field.setText("dense")
    popup.field.returnPressed.emit()
    assert chosen == ["nn.Linear"]
    entry = next(entry for entry in block_entries(chosen.append) if entry.title == "Linear")
    assert entry.tip == catalogue.kind("nn.Linear").summary and "torch.nn.Linear" in entry.keywords


def test_the_corner_has_room_for_every_subject_and_what_it_needs(window, qtbot) -> None:
    chooser = window.subject_chooser

    def fits() -> bool:
        return all(
            button.width() >= button.sizeHint().width()
            for button in (chooser.button, chooser.need)
            if button.isVisible()
        ) and window.rect().contains(chooser.geometry())

    for expression in ("Net()", "make_a_module(width=3)", "x" * 400):
        chooser.show_subject(FileSubject("/x/net.py", expression))
        chooser.show_need("Run net.py again", "It has changed.")
        qtbot.waitUntil(fits)
    assert chooser.button.text() == f"Subject: net.py: {'x' * 31}…"
    assert chooser.button.accessibleName() == f"Subject: net.py: {'x' * 400}"
