"""The page Files: what an open file holds, its numbers, and how it differs from another."""

from __future__ import annotations

import keyword
import re
from functools import partial
from pathlib import PurePath
from typing import cast

from PySide6.QtCore import QObject, Signal

from app.presenters.autograd.graph_picture import GraphPicturePresenter
from app.presenters.questions import Questions, in_words
from app.workbench import Workbench
from engine.project.document import Project, replace
from engine.project.layers.chain import NoChain, model_of
from engine.project.layers.layers_of_keys import usual_group, within
from engine.project.subject import title
from engine.protocol import (
    ArtifactDifference,
    ArtifactDifferenceSnapshot,
    ArtifactEntry,
    ArtifactSnapshot,
    BitsCommand,
    CompareArtifactsCommand,
    ErrorReport,
    LinesCommand,
    OpenArtifactCommand,
    ProgramModule,
    ProgramNode,
    ReadValuesCommand,
    Snapshot,
    StatisticsCommand,
    VariablesSnapshot,
)
from widgets.artifacts.file_view import FileView
from widgets.boxes.boxes import VisibleGraph
from widgets.layout.nested_layout import layout_nested
from widgets.layout.outline import Direction, EdgeStyle, NestedLayout

SLOT = "file graph"
"""The slot of its requests to the layout worker."""
_BANNER = "file"
_AboutValues = ReadValuesCommand | StatisticsCommand | LinesCommand | BitsCommand


class FilesPresenter(QObject):
    """`load_requested(path, group, branches)`: load a file's tensors, or those of a group, into the
    subject. `branches` names for some of its modules the branch of the file that has their tensors.
    `blocks_made()`: a new model is shown. `work_requested(path)`: make its program the subject.
    `cell_requested(source, name)`: run Python that makes a variable. `opened()`: a file is
    shown."""

    load_requested = Signal(str, str, object)
    blocks_made = Signal()
    work_requested = Signal(str)
    cell_requested = Signal(str, str)
    opened = Signal()

    def __init__(self, bench: Workbench, view: FileView, parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self.view = bench, view
        self._questions = Questions(bench)
        self._path = self._other = ""
        self._entries: list[ArtifactEntry] = []
        self._modules: list[ProgramModule] = []
        self._nodes: list[ProgramNode] = []
        self._differences: list[ArtifactDifference] = []
        GraphPicturePresenter(bench, view.calls, self, lambda: PurePath(self._path).stem)
        view.values.asked.connect(self._ask_values)
        view.calls.view.layout_requested.connect(self._lay_out)
        view.load_requested.connect(lambda group: self.load_requested.emit(view.path, group, {}))
        view.blocks_requested.connect(self._make_blocks)
        view.work_requested.connect(lambda: self.work_requested.emit(view.path))
        view.variable_requested.connect(self._make_variable)
        view.open_requested.connect(lambda: bench.files.open())
        view.folder_requested.connect(lambda: bench.files.open_folder())
        view.close_requested.connect(self.close)
        view.difference.compare_requested.connect(self._choose_other)
        view.difference.stop_requested.connect(self._stop_comparing)
        bench.store.project_changed.connect(lambda _, project: self._show_subject(project))
        self._must_ask = False
        bench.link.ended.connect(self._on_ended)
        bench.link.became_ready.connect(self._open_again)
        self._show_subject(bench.project)
        view.show_nothing()

    def open(self, path: str, other: str = "") -> None:
        """Read the index of a file, and show it when it is there; then compare it with the other
        one."""
        self._bench.window.banners.dismiss(_BANNER)
        self._path, self._other = path, other
        self._entries, self._modules, self._nodes = [], [], []
        name = path.rpartition("/")[2]
        if self._questions.ask(
            OpenArtifactCommand(path=path), self._take, partial(self._fail, name)
        ):
            self._bench.say(f"Reading {name} …")
        else:
            self._must_ask = True
            self._bench.say(f"{name} is read when there is an engine. {self._bench.link.unsent}")

    def close(self) -> None:
        """Show no file."""
        self._path = ""
        self._questions.drop()
        self.view.show_nothing()

    # -- the index -------------------------------------------------------------------------------

    def _on_ended(self) -> None:
        self._must_ask = bool(self._path)

    def _open_again(self) -> None:
        """Ask again for an index that the last engine did not give, or that could not be asked
        for."""
        if self._must_ask and self._path:
            self._must_ask = False
            self.open(self._path, self._other)

    def _take(self, part: Snapshot) -> None:
        if not isinstance(part, ArtifactSnapshot):
            return
        self._entries += part.entries
        program = part.graph
        if program is not None:
            self._modules += program.modules
            self._nodes += program.nodes
            program = replace(program, modules=tuple(self._modules), nodes=tuple(self._nodes))
        if not part.left:
            self._bench.say("")
            self._bench.settings.add_recent_file(part.path)
            self.view.show_file(part, self._entries, program)
            self.opened.emit()
            if self._other:
                self.view.tabs.setCurrentWidget(self.view.difference)
                self.compare_with(self._other)

    def _fail(self, name: str, error: ErrorReport) -> None:
        self._bench.say("")
        if self.view.path != self._path:
            self._path = self.view.path  # that one stays
        words = in_words(error)
        words = words if words.startswith(name) else f"{name} was not opened. {words}"
        self._bench.window.banners.show_banner(_BANNER, "error", words, detail=error.traceback)

    def _show_subject(self, project: Project) -> None:
        self.view.show_subject(title(project.subject))

    # -- numbers and graph -----------------------------------------------------------------------

    def _ask_values(self, command: _AboutValues) -> None:
        values = self.view.values
        if self.view.path:
            self._questions.ask(
                replace(command, file=self.view.path),
                values.show_snapshot,
                lambda error: values.show_error(command, error),
            )

    def _lay_out(self, visible: VisibleGraph, direction: Direction, style: EdgeStyle) -> None:
        view = self.view.calls.view
        self._bench.layout.submit(
            SLOT,
            layout_nested,
            visible.outline,
            direction,
            style,
            then=lambda layout: view.show_layout(visible, cast(NestedLayout, layout)),
        )

    def _make_variable(self, key: str) -> None:
        known = self._bench.newest(VariablesSnapshot)
        taken = {variable.name for variable in known.variables} if known else set()
        name = name_for(key, taken)
        self.cell_requested.emit(f"{name} = lab.open({self.view.path!r})[{key!r}]", name)

    def _make_blocks(self, group: str) -> None:
        """A new project of the blocks that the tensors suggest, with their numbers."""
        path, name = self.view.path, PurePath(self.view.path).name
        tensors = {entry.key: entry.shape for entry in self._entries if entry.kind == "tensor"}
        group = group or usual_group(tensors)
        banners = self._bench.window.banners
        try:
            found = model_of(within(tensors, group))
        except NoChain as problem:
            banners.show_banner(
                _BANNER,
                "warning",
                f"No model of blocks was made from {f'{group} of ' if group else ''}{name}.",
                f"{problem} A branch of the keys may be a chain by itself: choose it.",
            )
            return
        if not self._bench.files.new(Project(name=PurePath(name).stem, model=found.model)):
            return
        count = len(found.model.blocks)
        banners.show_banner(
            _BANNER, "accent", f"{count:,} blocks from {name}", " ".join(found.notes)
        )
        self.blocks_made.emit()
        self.load_requested.emit(path, group, found.branches)

    # -- comparing -------------------------------------------------------------------------------

    def _choose_other(self) -> None:
        other = self._bench.files.ask_artifact_path("Compare with")
        if other:
            self.compare_with(other)

    def compare_with(self, other: str) -> None:
        """Compare the open file with another one, key by key."""
        self._differences = []
        name = other.rpartition("/")[2]
        shown = self.view.difference
        if self._questions.ask(
            CompareArtifactsCommand(path=self.view.path, other=other),
            partial(self._take_difference, name),
            lambda error: shown.show_nothing(in_words(error)),
        ):
            shown.show_progress(name, 0, len(self._entries))
        else:
            shown.show_nothing(f"{name} was not compared. {self._bench.link.unsent}")

    def _take_difference(self, name: str, part: Snapshot) -> None:
        if not isinstance(part, ArtifactDifferenceSnapshot):
            return
        self._differences += part.rows
        if part.left:
            self.view.difference.show_progress(name, part.done, part.total)
        else:
            self.view.difference.show_rows(name, self._differences)

    def _stop_comparing(self) -> None:
        self._questions.stop()
        self.view.difference.show_nothing("The comparison was stopped.")


def name_for(key: str, taken: set[str]) -> str:
    """A name in Python for a tensor, from the last parts of its key."""
    parts = re.findall(r"\w+", key)[-3:] or ["tensor"]
    name = re.sub(r"\W", "_", "_".join(parts), flags=re.ASCII)
    if not name.isidentifier() or keyword.iskeyword(name):
        name = f"t_{name}" if f"t_{name}".isidentifier() else "tensor"
    number, found = 2, name
    while found in taken:
        found, number = f"{name}_{number}", number + 1
    return found
