"""The window's frame: title, menus, theme, recent files, unsaved work, saved positions."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import cast

from PySide6.QtCore import QObject
from PySide6.QtGui import QActionGroup, QGuiApplication
from PySide6.QtWidgets import QApplication

from app.actions import ON_CANVAS
from app.autosave import Autosave, Recovery
from app.settings import ThemeChoice
from app.window.new_window import apply_theme
from app.workbench import Workbench
from engine.project.document import WORKSPACES, Workspace, replace
from engine.project.subject import title
from engine.protocol import ReadySnapshot

_THEMES: tuple[ThemeChoice, ...] = ("system", "light", "dark")


class WindowPresenter(QObject):
    def __init__(self, bench: Workbench, autosave: Autosave, parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self._autosave = bench, autosave
        window, files, stack = bench.window, bench.files, bench.history.stack
        window.may_close = files.may_close
        window.closing.connect(self._remember)
        window.workspace_changed.connect(self._on_workspace_changed)
        window.file_dropped.connect(files.open)
        files.path_changed.connect(self._show_title)
        files.opened.connect(self._on_opened)
        files.failed.connect(self._show_failure)
        bench.weights.failed.connect(self._show_weights_failure)
        bench.weights.changed.connect(self._show_title)
        autosave.failed.connect(window.say)
        bench.store.project_changed.connect(self._show_title)
        stack.cleanChanged.connect(self._show_title)
        stack.indexChanged.connect(self._show_title)
        stack.indexChanged.connect(self._show_undo)
        self._mark_theme()
        window.recent_menu.aboutToShow.connect(self._fill_recent)
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        application.focusChanged.connect(bench.history.seal)
        self._show_title()
        self._show_undo()
        if window.workspace is not None:  # shown before this was there
            self._on_workspace_changed(window.workspace)

    def offer(self, recoveries: list[Recovery]) -> None:
        """Offer to restore the work that crashed windows left."""
        for index, recovery in enumerate(recoveries):
            count, subject = len(recovery.project.model.blocks), recovery.project.subject
            blocks = f"{count} block{'' if count == 1 else 's'}"
            work = title(subject) if subject.is_code else blocks
            of = f" of {recovery.original}" if recovery.original else ""
            self._bench.window.banners.show_banner(
                f"recovery_{index}",
                "accent",
                f"Unsaved work was recovered: “{recovery.project.name}”",
                f"{work}{of}, saved {recovery.saved_at:%d %b %Y, %H:%M:%S}, before the"
                " program ended unexpectedly.",
                (
                    ("Restore", "Open it as unsaved changes.", partial(self._restore, recovery)),
                    ("Discard", "Delete it for good.", recovery.discard),
                ),
            )

    # -- menus -----------------------------------------------------------------------------------

    def save(self) -> None:
        if self._bench.files.save():
            self._bench.say(f"Saved {self._bench.files.path}.")

    def show_shortcuts(self) -> None:
        from app.window.shortcut_sheet import shortcuts_html, show_sheet

        show_sheet(self._bench.window, shortcuts_html(self._bench.actions))

    def show_about(self) -> None:
        from app.window.shortcut_sheet import about_html, show_sheet

        show_sheet(self._bench.window, about_html(self._bench.newest(ReadySnapshot)))

    def _show_undo(self) -> None:
        stack = self._bench.history.stack
        for action, can, verb, text in (
            ("edit.undo", stack.canUndo(), "&Undo", stack.undoText()),
            ("edit.redo", stack.canRedo(), "&Redo", stack.redoText()),
        ):
            self._bench.actions[action].setEnabled(can)
            self._bench.actions[action].setText(f"{verb} {text}".strip())

    def _fill_recent(self) -> None:
        menu = self._bench.window.recent_menu
        menu.clear()
        for path in self._bench.settings.recent_files:
            action = menu.addAction(Path(path).name)
            action.setToolTip(path)
            action.triggered.connect(lambda _checked=False, path=path: self._bench.files.open(path))
        if menu.isEmpty():
            menu.addAction("Nothing was opened or saved yet").setEnabled(False)

    # -- theme -----------------------------------------------------------------------------------

    def _mark_theme(self) -> None:
        group = QActionGroup(self)
        for choice in _THEMES:
            action = self._bench.actions[f"view.theme_{choice}"]
            group.addAction(action)
            action.setChecked(choice == self._bench.settings.theme)
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._on_system_scheme)

    def choose_theme(self, choice: ThemeChoice) -> None:
        self._bench.settings.theme = choice
        apply_theme(choice)

    def _on_system_scheme(self) -> None:
        if self._bench.settings.theme == "system":
            apply_theme("system")

    # -- the project -----------------------------------------------------------------------------

    def _show_title(self) -> None:
        files = self._bench.files
        self._bench.window.show_title(self._bench.project.name, files.path, files.modified)

    def _on_opened(self) -> None:
        workspace = self._bench.project.view.workspace
        self._bench.window.show_workspace("model" if workspace == "start" else workspace)
        self._bench.window.banners.dismiss("file")
        self._bench.window.banners.dismiss("weights")

    def _on_workspace_changed(self, name: str) -> None:
        view = self._bench.project.view
        if name in WORKSPACES:
            self._bench.store.set_view(replace(view, workspace=cast(Workspace, name)))
        for action in ON_CANVAS:
            self._bench.actions[action].setEnabled(name == "model")

    def _show_failure(self, message: str) -> None:
        self._bench.window.banners.show_banner("file", "error", message)

    def _show_weights_failure(self, message: str) -> None:
        self._bench.window.banners.show_banner("weights", "error", message)

    def _restore(self, recovery: Recovery) -> None:
        if not self._bench.files.may_leave():
            self.offer([recovery])
            return
        self._bench.files.recover(recovery.project, recovery.original)
        self._autosave.write()
        recovery.discard()

    # -- leaving ---------------------------------------------------------------------------------

    def _remember(self) -> None:
        self._bench.settings.set_bytes("geometry", self._bench.window.saveGeometry())
