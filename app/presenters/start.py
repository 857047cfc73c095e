"""The Start page: new, open, templates, recent files, and the ways into workspaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from app import templates
from app.actions import Actions
from engine.project import files
from engine.project.examples import graph_examples, mistakes
from widgets.start.cards import EntryGroup
from widgets.start.start_page import StartPage

if TYPE_CHECKING:  # the page shows before it is needed
    from app.workbench import Workbench

_TENSOR_ACTIONS = (
    ("tensors.console", "Type Python in the console"),
    ("tensors.create", "Create a tensor"),
    ("tensors.open_file", "Open a Python file as cells…"),
    ("tensors.show", "Show a tensor by name"),
)


class StartPresenter(QObject):
    """Signals: `example_requested(key)` of a graph example; `mistake_requested(key)`."""

    first_steps_requested = Signal()
    example_requested = Signal(str)
    mistake_requested = Signal(str)

    def __init__(self, bench: Workbench, page: StartPage, parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self.page = bench, page
        page.new_requested.connect(lambda: bench.files.new())
        page.open_requested.connect(lambda: bench.files.open())
        page.first_steps_requested.connect(self.first_steps_requested)
        page.way_chosen.connect(self._go)
        page.recent_chosen.connect(bench.files.open)
        page.template_chosen.connect(self._open_template)
        bench.files.path_changed.connect(self._show_recent)
        bench.files.failed.connect(self._show_recent)

    def _go(self, way: str, entry: str) -> None:
        match way:
            case "tensors":
                self._bench.actions[entry].trigger()
            case "autograd":
                self.example_requested.emit(entry)
            case "mistakes":
                self.mistake_requested.emit(entry)

    def _open_template(self, key: str) -> None:
        try:
            project = templates.load_template(key)
        except files.FileProblem as problem:
            self._bench.files.failed.emit(f"The template was not opened. {problem}")
            return
        self._bench.files.new(project)

    def _show_recent(self) -> None:
        self.page.show_recent(self._bench.settings.recent_files)


def start_page(actions: Actions, recent: Sequence[str]) -> StartPage:
    """The page with all that it shows; `recent` are the files used last. A StartPresenter makes its
    buttons work."""
    page = StartPage()
    page.show_templates([(t.key, t.title, t.summary, t.icon) for t in templates.templates()])
    page.show_ways(_ways(actions))
    page.show_recent(recent)
    return page


def _ways(actions: Actions) -> tuple[EntryGroup, ...]:
    examples, wrong = graph_examples().values(), mistakes().values()
    return (
        EntryGroup(
            "tensors",
            "Tensors",
            "The storage, strides and sharing of every tensor that your Python makes.",
            "mdi6.matrix",
            tuple((key, title, actions[key].statusTip()) for key, title in _TENSOR_ACTIONS),
        ),
        EntryGroup(
            "autograd",
            "Autograd examples",
            "Small graphs, forward and backward, with numbers to check by hand.",
            "mdi6.sitemap-outline",
            tuple((each.key, each.title, each.tip) for each in examples),
            f"All {len(examples)} examples",
        ),
        EntryGroup(
            "mistakes",
            "Usual mistakes",
            "What each one does, where the graph shows it, and what to write instead.",
            "mdi6.alert-outline",
            tuple((each.key, each.title, each.happens) for each in wrong),
            f"All {len(wrong)} mistakes",
        ),
    )
