"""The composition root: makes every part once, and connects them. Imports no torch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt

from app.autosave import Autosave, find_recoveries, recovery_folder
from app.files import ProjectFiles
from app.history import History
from app.presenters.advice import AdvicePresenter
from app.presenters.attaching.attach import AttachPresenter
from app.presenters.attaching.calling import Way
from app.presenters.attaching.ranks import RanksPresenter
from app.presenters.cells import CellsPresenter
from app.presenters.engine import EnginePresenter
from app.presenters.export import ExportPresenter
from app.presenters.guide import GuidePresenter
from app.presenters.python_files import PythonFiles
from app.presenters.recording import RecordingPresenter
from app.presenters.show_in import ShowIn
from app.presenters.subject import SubjectPresenter
from app.presenters.weights import WeightsPresenter
from app.presenters.window import WindowPresenter
from app.processes.engine_link import EngineLink
from app.processes.layout_worker import LayoutWorker
from app.processes.link import Link
from app.selection.selection import Selection
from app.settings import Settings
from app.store import Store
from app.ways import ways
from app.weights import Weights
from app.window.dialogs import Dialogs
from app.window.main_window import MainWindow
from app.window.new_window import make_window
from app.workbench import Workbench
from app.workspaces import Workspaces

if TYPE_CHECKING:
    from engine.connecting.dialing import Call

CONSOLE_HISTORY = "console_history.jsonl"


class Application(QObject):
    """The program, ready to be shown. `open` shows what it begins with, `start` also starts the
    engine, `close` ends everything.

    `workspaces` makes each workspace at its first visit. The console's history is a file beside the
    folder `recovery`.
    """

    def __init__(
        self, window: MainWindow, link: Link, dialogs: Dialogs, settings: Settings, recovery: Path
    ) -> None:
        super().__init__()
        self.window = window
        store = Store(parent=self)
        history = History(store, self)
        link.setParent(self)
        link.snapshot.connect(store.take)
        link.ended.connect(store.end_engine)
        selection = Selection(self)
        link.ended.connect(selection.end_engine)
        self._recovery = recovery
        weights = Weights(store, link, self)
        self.bench = bench = Workbench(
            window=self.window,
            actions=self.window.actions_table,
            store=store,
            history=history,
            selection=selection,
            link=link,
            layout=LayoutWorker(self),
            settings=settings,
            dialogs=dialogs,
            files=ProjectFiles(self.window, store, history, settings, dialogs, weights),
            weights=weights,
        )
        bench.layout.failed.connect(self.window.say)
        files = bench.files
        self.autosave = Autosave(
            store, lambda: files.document_modified, lambda: files.path, recovery, self
        )
        self.frame = WindowPresenter(bench, self.autosave, self)
        self.engine = EnginePresenter(bench, self)
        self.attaching = AttachPresenter(bench, self.engine.may_end, self)
        self.engine.reconnect_requested.connect(self.attaching.reconnect)
        self.cells = CellsPresenter(bench, self)
        self.recording = RecordingPresenter(bench, self)
        self.python_files = PythonFiles(bench, self)
        self.subject = SubjectPresenter(bench, self.python_files, self.window.subject_chooser, self)
        self.weights = WeightsPresenter(bench, self)
        self.export = ExportPresenter(bench, self)
        self.guide = GuidePresenter(bench, self)
        console_history = recovery.parent / CONSOLE_HISTORY
        self.workspaces = Workspaces(
            bench,
            self.cells,
            self.export,
            self.recording,
            self.attaching,
            console_history,
            self,
        )
        bench.files.artifact_chosen.connect(lambda path: self.workspaces.files.open(path))
        self.window.pair_dropped.connect(lambda a, b: self.workspaces.files.open(a, b))
        self.workspaces.weights_wanted.connect(self.weights.load)
        self.workspaces.model_wanted.connect(self._open_model)
        self.show_in = ShowIn(bench, ways(self.workspaces), self)
        self.cells.again_requested.connect(lambda: self.workspaces.at_tensors().run_again())
        self.engine.resume_requested.connect(lambda: self.workspaces.at_train().resume())
        self.engine.restore_requested.connect(lambda: self.workspaces.at_train().restore())
        self.window.block_wanted.connect(
            lambda kind: self.workspaces.at_model().edits.add_chosen(kind)
        )
        to = self.workspaces
        self.ranks = RanksPresenter(
            bench,
            self.attaching,
            lambda runs: to.train.view.show_overlays(runs),
            self,
            to.show_ranks,
        )
        self.advice = AdvicePresenter(bench, to.show_finding, to.drop_findings, self)
        to.advice_muted.connect(self.advice.mute)
        self._connect_python_files()
        self.window.closing.connect(self.close)
        bench.actions.bind(self._calls())

    def open(self, project: str = "") -> None:
        """Show a project's file, or the Start page if nothing is shown yet; offer recovered
        work."""
        if project:
            self.workspaces.model  # noqa: B018 - makes it
            self.bench.files.open(project)
        if self.window.workspace in (None, "start"):
            self.workspaces.at_start()
        self.frame.offer(find_recoveries(self._recovery))

    def start(self, path: str = "", attached: tuple[Call, Way] | None = None) -> None:
        """Start the engine, or attach to a process that was called, and make the page that a
        project needs; then show a file. A window that shows nothing yet has the Start page only
        where no project is shown."""
        is_new = self.window.workspace is None
        if is_new and not path:
            self.open()
        self.attaching.tell_former_engine()
        if attached is None:
            self.bench.link.start()
        else:
            self.attaching.use(*attached)
        self.workspaces.model  # noqa: B018 - makes it
        if path:
            self.bench.files.open(path)
            if is_new:
                self.open()

    def close(self) -> None:
        """End the engine and the layout worker, and remove the recovery file. May be called
        twice."""
        self.workspaces.remember_panels()
        self.bench.history.stack.blockSignals(True)  # clearing at the end is not an edit
        self.autosave.close()
        self.bench.layout.close()
        self.ranks.close()
        self.bench.link.close()

    def _connect_python_files(self) -> None:
        files, to = self.python_files, self.workspaces
        self.bench.files.python_chosen.connect(files.open)
        files.cells_wanted.connect(lambda path: to.at_tensors().console.open_file(path))
        files.prints.connect(lambda name: to.tensors.page.console.begin_output(name))
        files.printed.connect(lambda snapshot: to.tensors.page.console.add_output(snapshot))
        files.ran.connect(self._leave_start)
        to.file_wanted.connect(files.run)
        self.subject.cells_wanted.connect(self.cells.run_again)

    def _open_model(self, path: str) -> None:
        self.subject.open_model(path)
        self.workspaces.at_model()

    def _leave_start(self, _snapshot: object, opening: bool) -> None:
        if opening and self.window.workspace == "start":
            self.workspaces.at_model()

    def _calls(self) -> dict[str, Callable[[], object]]:
        """The function of every action, by its id. If it belongs to a workspace, the workspace is
        made first."""
        bench, frame, to = self.bench, self.frame, self.workspaces
        return {
            "file.new": bench.files.new,
            "file.open": bench.files.open,
            "file.open_folder": bench.files.open_folder,
            "file.attach": lambda: to.at_start().ask_for_process(),
            "file.save": frame.save,
            "file.save_as": bench.files.save_as,
            "file.export": self.export.open,
            "file.quit": self.window.close,
            "edit.undo": bench.history.stack.undo,
            "edit.redo": bench.history.stack.redo,
            "edit.cut": lambda: to.model.page.canvas.request_cut(),
            "edit.copy": lambda: to.model.page.canvas.request_copy(),
            "edit.paste": lambda: to.model.page.canvas.request_paste(),
            "edit.duplicate": lambda: to.model.page.canvas.request_duplicate(),
            "edit.delete": lambda: to.model.page.canvas.request_delete(),
            "edit.select_all": lambda: to.model.page.canvas.select_all(),
            "view.start": partial(self.window.show_workspace, "start"),
            "view.tensors": to.at_tensors,
            "view.model": to.at_model,
            "view.autograd": partial(self.window.show_workspace, "autograd"),
            "view.train": to.at_train,
            "view.files": to.at_files,
            "view.show_in": self.show_in.ask,
            "view.back": bench.selection.back,
            "view.forward": bench.selection.forward,
            "view.commands": self.window.ask_for_command,
            "view.fit": lambda: to.model.page.canvas.fit(),
            "view.fold_left": partial(to.panels.fold, Qt.DockWidgetArea.LeftDockWidgetArea),
            "view.fold_right": partial(to.panels.fold, Qt.DockWidgetArea.RightDockWidgetArea),
            "view.theme_system": partial(frame.choose_theme, "system"),
            "view.theme_light": partial(frame.choose_theme, "light"),
            "view.theme_dark": partial(frame.choose_theme, "dark"),
            "tensors.console": lambda: to.at_tensors().type_python(),
            "tensors.create": lambda: to.at_tensors().create(),
            "tensors.show": lambda: to.at_tensors().show(),
            "tensors.open_file": lambda: to.at_tensors().console.open_file(),
            "tensors.run_again": self.cells.run_again,
            "tensors.forget_cells": self.cells.forget,
            "tensors.show_muted_advice": self.advice.unmute_all,
            "model.insert": lambda: to.model.ask_for_block(),
            "model.layout": lambda: to.model.arrange(),
            "model.copy_code": lambda: to.model.copy_code(),
            "model.initialise": lambda: to.model.initialise(),
            "autograd.start": lambda: to.at_passes().start_forward(),
            "autograd.step": lambda: to.at_passes().step_forward(),
            "autograd.back": lambda: to.at_passes().step_back(),
            "autograd.start_backward": lambda: to.at_passes().start_backward(),
            "autograd.step_backward": lambda: to.at_passes().step_backward(),
            "autograd.run_backward": lambda: to.at_passes().run_backward("run"),
            "autograd.out_backward": lambda: to.at_passes().run_backward("out"),
            "autograd.run_back": lambda: to.at_passes().run_back(),
            "autograd.own_backward": lambda: to.held.step_backward(
                bench.actions["autograd.own_backward"].isChecked()
            ),
            "autograd.compare": lambda: to.at_passes().compare(),
            "trace.start": lambda: to.autograd.page.trace.start(),
            "trace.over": lambda: to.autograd.page.trace.bar.trigger("over"),
            "trace.back": lambda: to.autograd.page.trace.bar.trigger("back"),
            "trace.into": lambda: to.autograd.page.trace.bar.trigger("step"),
            "trace.out": lambda: to.autograd.page.trace.bar.trigger("out"),
            "trace.line": lambda: to.autograd.page.trace.bar.trigger("line"),
            "trace.back_line": lambda: to.autograd.page.trace.bar.trigger("back_line"),
            "train.check": lambda: to.at_train().view.bar.check_requested.emit(),
            "train.start": lambda: to.at_train().train(),
            "train.pause": lambda: to.at_train().pause_or_continue(),
            "train.step": lambda: to.at_train().step(),
            "train.op": lambda: to.at_train().step("op"),
            "train.module": lambda: to.at_train().step("module"),
            "train.phase": lambda: to.at_train().step("phase"),
            "train.batch": lambda: to.at_train().step("batch"),
            "train.epoch": lambda: to.at_train().step("epoch"),
            "train.back": lambda: to.at_train().back(),
            "train.line": lambda: to.held.go_on("line"),
            "train.stop": lambda: to.at_train().stop(),
            "train.annotate": lambda: to.at_train().view.board.ask_note(),
            "train.resume": lambda: to.at_train().resume(),
            "engine.interrupt": bench.link.stop_job,
            "engine.restart": self.engine.restart,
            "engine.detach": self.engine.detach,
            "help.guide": self.guide.open,
            "help.shortcuts": frame.show_shortcuts,
            "help.about": frame.show_about,
        }


def build(
    link_factory: Callable[[], Link] = EngineLink,
    dialogs: Dialogs | None = None,
    settings: Settings | None = None,
    recovery: Path | None = None,
    window: MainWindow | None = None,
) -> Application:
    """Make the program's parts, around a window that is there or a new one. A QApplication must
    exist; nothing is shown or started yet."""
    settings = settings or Settings()
    return Application(
        window or make_window(settings),
        link_factory(),
        dialogs or Dialogs(),
        settings,
        recovery or recovery_folder(),
    )
