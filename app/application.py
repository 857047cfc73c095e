"""The composition root: makes every part once, and ties them together. Imports no torch."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QApplication, QWidget

from app.autosave import Autosave, find_recoveries, recovery_folder
from app.files import ProjectFiles
from app.history import History
from app.layout_worker import LayoutWorker
from app.link import EngineLink, Link
from app.presenters.autograd.step_keys import StepKeys, give_way
from app.presenters.cells import CellsPresenter
from app.presenters.engine import EnginePresenter
from app.presenters.export import ExportPresenter
from app.presenters.window import WindowPresenter, apply_theme
from app.selection import Selection
from app.settings import Settings
from app.store import Store
from app.window.dialogs import Dialogs
from app.window.docked_page import DockedPage
from app.window.export_panel import ExportPanel
from app.window.main_window import MainWindow, let_drops_through
from app.workbench import Workbench
from engine.project.document import Workspace

if TYPE_CHECKING:
    from app.presenters.autograd.passes import AutogradPresenter
    from app.presenters.model.workspace import ModelPresenter
    from app.presenters.tensors.workspace import TensorsPresenter
    from app.presenters.train import TrainPresenter
    from app.window.autograd_page import AutogradPage


CONSOLE_HISTORY = "console_history.jsonl"


class Application(QObject):
    """The program, ready to be shown. `start` brings the engine up, `close` ends everything.

    Workspaces are made at their first visit: `tensors`, `model`, `autograd` and `train` are then
    their presenters, made on demand. Beside the folder `recovery` the console keeps its history.
    """

    def __init__(self, link: Link, dialogs: Dialogs, settings: Settings, recovery: Path) -> None:
        super().__init__()
        self.window = MainWindow()
        store = Store(parent=self)
        history = History(store, self)
        link.setParent(self)
        self._recovery = recovery
        self.bench = Workbench(
            window=self.window,
            actions=self.window.actions_table,
            store=store,
            history=history,
            selection=Selection(self),
            link=link,
            layout=LayoutWorker(self),
            settings=settings,
            dialogs=dialogs,
            files=ProjectFiles(self.window, store, history, settings, dialogs),
        )
        self.autosave = Autosave(
            store,
            lambda: self.bench.files.modified,
            lambda: self.bench.files.path,
            recovery,
            self,
        )
        link.snapshot.connect(store.take)
        self.bench.layout.failed.connect(self.window.say)
        self.presenters: dict[str, QObject] = {}
        self.frame = WindowPresenter(self.bench, self.autosave, self)
        self.engine = EnginePresenter(self.bench, self)
        self.cells = CellsPresenter(self.bench, self)
        self.cells.again_requested.connect(lambda: self._lead_to("tensors", "run_again"))
        self.export_panel = ExportPanel(self.window)
        self.export = ExportPresenter(self.bench, self.export_panel, self)
        self._set_pages()
        self._connect_workspace_actions()
        self.window.block_wanted.connect(self._add_block)
        self.window.closing.connect(self.close)

    @property
    def tensors(self) -> TensorsPresenter:
        return cast("TensorsPresenter", self._presenter("tensors"))

    @property
    def model(self) -> ModelPresenter:
        return cast("ModelPresenter", self._presenter("model"))

    @property
    def autograd(self) -> AutogradPresenter:
        return cast("AutogradPresenter", self._presenter("autograd"))

    @property
    def train(self) -> TrainPresenter:
        return cast("TrainPresenter", self._presenter("train"))

    def start(self, project_path: str = "") -> None:
        """Show a project, or the start page; bring the engine up; offer recovered work."""
        self.window.show_workspace("start")
        self.window.page("model")
        if project_path:
            self.bench.files.open(project_path)
        self.bench.link.start()
        self.frame.offer(find_recoveries(self._recovery))

    def close(self) -> None:
        """End the engine, the layout worker and the recovery file. Harmless when repeated."""
        self._remember_panels()
        self.bench.history.stack.blockSignals(True)  # it tells of its own end
        self.autosave.close()
        self.bench.layout.close()
        self.bench.link.close()

    def _remember_panels(self) -> None:
        settings = self.bench.settings
        for workspace, page in self.window.pages.items():
            if isinstance(page, DockedPage):
                settings.set_bytes(f"{workspace}_docks", page.dock_state())
        if "autograd" in self.window.pages:
            page = cast("AutogradPage", self.window.page("autograd"))
            for mode, state in page.steps.columns.states().items():
                settings.set_bytes(f"autograd_{mode}_columns", state)

    # -- workspaces ------------------------------------------------------------------------------

    def _set_pages(self) -> None:
        self.window.set_page("start", self._make_start)
        self.window.set_page("tensors", self._make_tensors)
        self.window.set_page("model", self._make_model)
        self.window.set_page("autograd", self._make_autograd)
        self.window.set_page("train", self._make_train)

    def _presenter(self, name) -> QObject:
        self.window.page(name)
        return self.presenters[name]

    def _make_start(self) -> QWidget:
        from app.presenters.start import StartPresenter
        from widgets.start_page import StartPage

        page = StartPage()
        self.presenters["start"] = StartPresenter(self.bench, page, self)
        return page

    def _make_tensors(self) -> QWidget:
        from app.presenters.tensors.console import ConsolePresenter
        from app.presenters.tensors.workspace import TensorsPresenter
        from app.window.tensors_page import TensorsPage
        from widgets.console.history import History as ConsoleHistory

        page = TensorsPage(ConsoleHistory(self._recovery.parent / CONSOLE_HISTORY))
        self._take_docks("tensors", page)
        console = ConsolePresenter(self.bench, self.cells, page.console, self)
        page.variables.graph_requested.connect(self._show_graph)
        self.presenters["tensors"] = TensorsPresenter(self.bench, page, console, self)
        return page

    def _make_model(self) -> QWidget:
        from app.presenters.model.checker import ModelChecker
        from app.presenters.model.workspace import ModelPresenter
        from app.window.model_page import ModelPage

        page = ModelPage()
        let_drops_through(page.canvas)
        self._take_docks("model", page)
        self.window.actions_table.give_canvas(page.canvas)
        presenter = ModelPresenter(self.bench, page, self)
        page.code.save_requested.connect(lambda: self.export.ask("py"))
        self.presenters["checker"] = ModelChecker(self.bench, self)
        self.presenters["model"] = presenter
        return page

    def _make_autograd(self) -> QWidget:
        from app.presenters.autograd.backward import BackwardPresenter
        from app.presenters.autograd.derivatives import DerivativesPresenter
        from app.presenters.autograd.flow import FlowPresenter
        from app.presenters.autograd.graph_examples import GraphExamplesPresenter
        from app.presenters.autograd.graph_picture import GraphPicturePresenter
        from app.presenters.autograd.mistakes import MistakesPresenter
        from app.presenters.autograd.node_details import NodeDetailsPresenter
        from app.presenters.autograd.passes import AutogradPresenter
        from app.presenters.autograd.rules import RulesPresenter
        from app.presenters.autograd.trace import TracePresenter
        from app.window.autograd_page import AutogradPage
        from widgets.autograd.pass_columns import MODES

        page = AutogradPage()
        columns = {mode: self.bench.settings.bytes(f"autograd_{mode}_columns") for mode in MODES}
        page.steps.columns.restore(columns)
        let_drops_through(page.steps.graph)
        self.presenters["autograd"] = autograd = AutogradPresenter(self.bench, page.steps, self)
        self.presenters["backward"] = BackwardPresenter(self.bench, page.steps, self)
        rules = RulesPresenter(self.bench, page.steps, self)
        self.presenters["rules"] = rules
        self.presenters["node_details"] = NodeDetailsPresenter(
            self.bench, page.steps, rules.card, self
        )
        self.presenters["graph_picture"] = GraphPicturePresenter(
            self.bench, page.steps.graph_pane, self
        )
        examples = GraphExamplesPresenter(self.bench, page.steps, self)
        examples.run_requested.connect(lambda source: self.tensors.submit(source))
        self.presenters["graph_examples"] = examples
        trace = TracePresenter(self.bench, self.cells, page.trace, self)
        trace.node_requested.connect(page.show_node)
        trace.graph_wanted.connect(autograd.show_graph_of)
        rules.trace_requested.connect(page.show_trace)
        rules.trace_requested.connect(trace.trace_rule)
        rules.code_requested.connect(page.show_code)
        self.presenters["trace"] = trace
        derivatives = DerivativesPresenter(self.bench, page.derivatives, self)
        derivatives.run_requested.connect(lambda source: self.tensors.submit(source))
        page.derivatives.trace_requested.connect(page.show_code)
        self.presenters["derivatives"] = derivatives
        self.presenters["flow"] = FlowPresenter(self.bench, page.flow, self)
        mistakes = MistakesPresenter(self.bench, page.mistakes, self)
        mistakes.run_requested.connect(lambda source: self.tensors.submit(source))
        mistakes.graph_requested.connect(self._show_graph)
        mistakes.node_requested.connect(page.show_lesson)
        self.presenters["mistakes"] = mistakes
        StepKeys(self.bench.actions, self.window, page)
        return page

    def _make_train(self) -> QWidget:
        from app.presenters.train import TrainPresenter
        from widgets.training.train_view import TrainView

        view = TrainView()
        presenter = TrainPresenter(self.bench, view, self)
        presenter.export_requested.connect(lambda: self.export.ask("pt"))
        self.engine.resume_requested.connect(lambda: self._lead_to("train", "resume"))
        self.engine.restore_requested.connect(lambda: self._lead_to("train", "restore"))
        self.presenters["train"] = presenter
        return view

    def _take_docks(self, workspace: Workspace, page: DockedPage) -> None:
        page.restore_docks(self.bench.settings.bytes(f"{workspace}_docks"))
        menu = self.window.panels_menu
        if not menu.isEmpty():
            menu.addSeparator()
        menu.addActions([dock.toggleViewAction() for dock in page.docks()])

    # -- actions that lead to a workspace ----------------------------------------------------------

    def _connect_workspace_actions(self) -> None:
        rows: dict[str, tuple[str, str]] = {
            "tensors.console": ("tensors", "type_python"),
            "tensors.create": ("tensors", "create"),
            "tensors.show": ("tensors", "show"),
            "tensors.open_file": ("tensors", "open_file"),
            "train.start": ("train", "train"),
            "train.pause": ("train", "pause_or_continue"),
            "train.step": ("train", "step"),
            "train.stop": ("train", "stop"),
            "train.resume": ("train", "resume"),
            "autograd.start": ("autograd", "start_forward"),
            "autograd.step": ("autograd", "step_forward"),
            "autograd.back": ("autograd", "step_back"),
            "autograd.start_backward": ("autograd", "start_backward"),
            "autograd.step_backward": ("autograd", "step_backward"),
            "autograd.run_backward": ("autograd", "run_backward"),
            "autograd.out_backward": ("autograd", "run_out_backward"),
            "autograd.run_back": ("autograd", "run_back"),
            "autograd.compare": ("autograd", "compare"),
        }
        for action, (workspace, method) in rows.items():
            self.bench.actions.on(action, lambda w=workspace, m=method: self._lead_to(w, m))
        give_way(self.bench.actions, trace_is_seen=False)

    def _add_block(self, kind: str) -> None:
        self.window.show_workspace("model")
        self.model.edits.add_chosen(kind)

    def _show_graph(self, root: str) -> None:
        """The autograd graph of a tensor of the console, in its workspace."""
        self.window.show_workspace("autograd")
        page = cast("AutogradPage", self.window.page("autograd"))
        page.setCurrentWidget(page.steps)
        self.autograd.show_graph_of(root)

    def _lead_to(self, workspace, method: str) -> None:
        self.window.show_workspace(workspace)
        if workspace == "autograd":
            page = cast("AutogradPage", self.window.page("autograd"))
            page.setCurrentWidget(page.steps)
        getattr(self._presenter(workspace), method)()


def build(
    link_factory: Callable[[], Link] = EngineLink,
    dialogs: Dialogs | None = None,
    settings: Settings | None = None,
    recovery: Path | None = None,
) -> Application:
    """Make the program's parts. A QApplication must exist; nothing is shown or started yet."""
    settings = settings or Settings()
    apply_theme(settings.theme)
    return Application(
        link_factory(), dialogs or Dialogs(), settings, recovery or recovery_folder()
    )


def run(project_path: str = "") -> int:
    """Open the window and return the exit code once it is closed."""
    qt = QApplication.instance() or QApplication(sys.argv[:1])
    assert isinstance(qt, QApplication)
    qt.setApplicationName("tensorlab")
    qt.setApplicationDisplayName("Tensor Lab")
    application = build()
    application.window.show()
    _close_on_interrupt(application)
    # The first picture comes before the engine, which takes a processor for a second.
    QTimer.singleShot(0, lambda: application.start(project_path))
    return qt.exec()


def _close_on_interrupt(application: Application) -> None:
    """Let Ctrl+C in the terminal close the window as its own button does."""
    signal.signal(signal.SIGINT, lambda *_: application.window.close())
    # Qt's loop runs no Python, and so no signal handler, unless something calls it.
    beat = QTimer(application, interval=200)
    beat.timeout.connect(lambda: None)
    beat.start()
