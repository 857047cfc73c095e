"""The window's frame: rail, menus, banners, pages, status bar. Presenters connect its signals."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QPoint, Qt, Signal
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QResizeEvent
from PySide6.QtWidgets import (
    QApplication,
    QMainWindow,
    QMenu,
    QStackedWidget,
    QWidget,
)

from app.actions import MENUS, RECENT, SEPARATOR, Actions, ActionSpec
from app.window.banners import BannerArea
from app.window.pages import Page
from app.window.rail import Rail
from engine.project import catalogue
from engine.project.files import SUFFIX
from engine.project.other_files import READ_SUFFIXES, is_readable
from widgets import make, theme
from widgets.icons import icon
from widgets.subject.chooser import SubjectChooser

if TYPE_CHECKING:
    from PySide6.QtWidgets import QGraphicsView

    from app.window.command_palette import CommandPalette, Entry

MESSAGE_MS = 8000
DROPPED = (SUFFIX, ".py", *READ_SUFFIXES)
"""How the name of a file ends that the window takes; it takes folders too."""

_ENGINE_TIPS = {
    "starting": "The engine, a process of its own, loads torch. You can build the model meanwhile.",
    "ready": "The engine is ready: it owns all tensors and runs apart from this window.",
    "busy": "The engine runs a job. The window stays responsive.",
    "lost": "There is no engine: shapes, stepping and training wait for it. Click to restart.",
}


class MainWindow(QMainWindow):
    """A workspace's page is made at its first visit: `page_makers` makes it and calls `add_page`.

    Signals: `workspace_changed(name)`; `file_dropped(path)`; `pair_dropped(path, other)`: two files
    of tensors; `block_wanted(kind)`, from the command palette; `rank_chosen(number)`;
    `closing()`, after `may_close` has returned True.
    """

    workspace_changed = Signal(str)
    file_dropped = Signal(str)
    pair_dropped = Signal(str, str)
    block_wanted = Signal(str)
    closing = Signal()
    rank_chosen = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("main_window")
        self.setAcceptDrops(True)
        self.resize(1440, 900)
        self.actions_table = Actions(self)
        self.may_close: Callable[[], bool] = lambda: True
        self.page_makers: Mapping[Page, Callable[[], object]] = {}
        self._pages: dict[Page, QWidget] = {}
        self._instead: dict[Page, QWidget] = {}
        self._workspace: Page | None = None

        self.banners = BannerArea()
        self.stack = QStackedWidget()
        self.stack.setObjectName("workspaces")
        self.rail = Rail(self.actions_table)
        center = QWidget()
        column = make.column(self.banners, (self.stack, 1), gap=0)
        make.row(self.rail, (column, 1), on=center, gap=0)
        self.setCentralWidget(center)
        self.recent_menu = QMenu("Open &recent", self)
        self.recent_menu.setToolTipsVisible(True)
        self.panels_menu = QMenu("&Panels", self)
        self.subject_chooser = SubjectChooser()
        self._make_menus()
        self._make_status_bar()
        theme.dress(self)

    # -- pages -----------------------------------------------------------------------------------

    @property
    def pages(self) -> Mapping[Page, QWidget]:
        """The pages that have been made."""
        return self._pages

    @property
    def workspace(self) -> Page | None:
        return self._workspace

    def add_page(self, name: Page, page: QWidget) -> None:
        self._pages[name] = page
        self.stack.addWidget(page)

    def page(self, name: Page) -> QWidget:
        """The page of a workspace, made now if it does not exist yet."""
        if name not in self._pages:
            self.page_makers[name]()
        return self._pages[name]

    def show_instead(self, name: Page, widget: QWidget | None) -> None:
        """Show a widget in the place of a workspace's page; for None, the page again."""
        if widget is None:
            self._instead.pop(name, None)
        else:
            self._instead[name] = widget
            self.stack.addWidget(widget)
        if self._workspace == name:
            self.stack.setCurrentWidget(widget or self.page(name))

    def show_workspace(self, name: Page) -> None:
        page = self._instead.get(name) or self.page(name)
        self.stack.setCurrentWidget(page)
        self.rail.buttons[name].show()
        self.rail.buttons[name].setChecked(True)
        if self._workspace != name:
            self._workspace = name
            page.setFocus()
            self.workspace_changed.emit(name)

    # -- finding by name -------------------------------------------------------------------------

    @cached_property
    def palette_popup(self) -> CommandPalette:
        from app.window.command_palette import CommandPalette

        return CommandPalette(self)

    def ask_for_command(self) -> None:
        """Show the command palette with all enabled actions and all blocks."""
        from app.window.command_palette import Entry

        actions = [
            Entry(
                title=action.text().replace("&", ""),
                hint=spec.category + (f"  {spec.shortcut}" if spec.shortcut else ""),
                icon=spec.icon,
                run=action.trigger,
                keywords=f"{spec.category} {spec.tip}",
                tip=spec.tip,
            )
            for spec, action in self.actions_table
            if action.isEnabled() and spec.id != "view.commands"
        ]
        blocks = block_entries(self.block_wanted.emit, "Add ")
        self.palette_popup.ask(actions + blocks, "Search for a command or a block")

    def ask_for_block(self, chosen: Callable[[str], object], at: QPoint) -> None:
        """Ask for a kind of block, at a point of the window."""
        self.palette_popup.ask(block_entries(chosen), "Search for a block to insert", at)

    # -- messages --------------------------------------------------------------------------------

    def say(self, message: str) -> None:
        """Show a message in the status bar for a while: why an edit was refused, what was saved."""
        self.statusBar().showMessage(message, MESSAGE_MS)

    def show_engine(self, state: str, text: str) -> None:
        """Show the engine's `state`: starting, ready, busy or lost."""
        self._engine_state = state
        self.engine_chip.setText(text)
        self.engine_chip.setMinimumWidth(self.engine_chip.sizeHint().width())
        self.engine_chip.setToolTip(_ENGINE_TIPS[state])
        self.engine_chip.setAccessibleName(f"Engine: {text}")
        self._paint_chip()

    def show_totals(self, text: str) -> None:
        self._totals.setText(text)

    def show_ranks(self, text: str, tip: str, ranks: Sequence[tuple[int, str, bool]]) -> None:
        """Show the ranks of a run: (number, words, whether it is the one that the window shows) of
        each; empty to show none."""
        self.rank_chip.setText(text)
        self.rank_chip.setToolTip(tip)
        self.rank_chip.setAccessibleName(text)
        self.rank_chip.setVisible(bool(ranks))
        menu = self.rank_chip.menu()
        menu.clear()
        for number, words, is_shown in ranks:
            action = make.action(menu, words, partial(self.rank_chosen.emit, number))
            action.setCheckable(True)
            action.setChecked(is_shown)

    def show_title(self, name: str, path: str, modified: bool) -> None:
        self.setWindowTitle(f"{name}[*] – Tensor Lab")
        self.setWindowFilePath(path)
        self.setWindowModified(modified)

    # -- leaving and dropping --------------------------------------------------------------------

    def closeEvent(self, event: QCloseEvent) -> None:
        if self.may_close():
            self.closing.emit()
            event.accept()
        else:
            event.ignore()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if _dropped_files(event):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        paths = _dropped_files(event)
        if not paths:
            return
        event.acceptProposedAction()
        if len(paths) == 2 and all(is_readable(path) or os.path.isdir(path) for path in paths):
            self.pair_dropped.emit(*paths)
        else:
            self.file_dropped.emit(paths[0])

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Let the menu bar give its corner the room that it needs now: it looks only when it is
        resized."""
        if watched is self.subject_chooser and event.type() == QEvent.Type.LayoutRequest:
            bar = self.menuBar()
            QApplication.sendEvent(bar, QResizeEvent(bar.size(), bar.size()))
        return super().eventFilter(watched, event)

    # -- building --------------------------------------------------------------------------------

    def _make_menus(self) -> None:
        for title, entries in MENUS.items():
            menu = self.menuBar().addMenu(title)
            menu.setToolTipsVisible(True)
            for entry in entries:
                if isinstance(entry, ActionSpec):
                    menu.addAction(self.actions_table[entry.id])
                elif entry == SEPARATOR:
                    menu.addSeparator()
                else:
                    menu.addMenu(self.recent_menu if entry == RECENT else self.panels_menu)
        bar = self.menuBar()
        self.subject_chooser.limit_height(bar.actionGeometry(bar.actions()[0]).height())
        bar.setCornerWidget(self.subject_chooser)
        self.subject_chooser.installEventFilter(self)

    def _make_status_bar(self) -> None:
        self._totals = make.label("", "muted", "model_totals")
        self._totals.setToolTip("Blocks, learnable parameters and their memory in this model.")
        self.engine_chip = make.tool_button("engine_chip")
        self.engine_chip.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        menu = make.menu(self.engine_chip, tips=True)
        menu.addAction(self.actions_table["engine.interrupt"])
        menu.addAction(self.actions_table["engine.restart"])
        menu.addAction(self.actions_table["engine.detach"])
        self.rank_chip = make.tool_button("rank_chip", "mdi6.source-branch", text="Ranks")
        make.menu(self.rank_chip, accessible="Ranks")
        self.rank_chip.hide()
        self.statusBar().addPermanentWidget(self._totals)
        self.statusBar().addPermanentWidget(self.rank_chip)
        self.statusBar().addPermanentWidget(self.engine_chip)
        self.show_engine("starting", "engine starting…")
        theme.notifier.changed.connect(self._paint_chip)

    def _paint_chip(self) -> None:
        role = {"ready": "success", "busy": "accent", "lost": "error"}
        name = {"starting": "mdi6.timer-sand", "lost": "mdi6.circle-off-outline"}
        self.engine_chip.setIcon(
            icon(
                name.get(self._engine_state, "mdi6.circle"),
                role.get(self._engine_state, "warning"),
            )
        )


def let_drops_through(view: QGraphicsView) -> None:
    """Let the window receive files that are dropped on a graphics view, which takes all drags
    itself."""
    view.setAcceptDrops(False)
    view.viewport().setAcceptDrops(False)


def block_entries(chosen: Callable[[str], object], prefix: str = "") -> list[Entry]:
    """An entry for each kind of block; it calls `chosen(kind)`."""
    from app.window.command_palette import Entry

    return [
        Entry(
            title=f"{prefix}{kind.title}",
            hint=kind.torch_name,
            icon=kind.icon.removeprefix("mdi6."),
            run=partial(chosen, key),
            keywords=" ".join((kind.torch_name, kind.group, *kind.keywords)),
            tip=kind.summary,
        )
        for key, kind in catalogue.kinds().items()
    ]


def _dropped_files(event: QDropEvent) -> list[str]:
    """The files of a drop that the program opens."""
    paths = (url.toLocalFile() for url in event.mimeData().urls())
    return [path for path in paths if path.lower().endswith(DROPPED) or os.path.isdir(path)]
