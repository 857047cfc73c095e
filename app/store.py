"""The one place that holds what the views show: the Project and the newest snapshot of each kind.

Snapshots reach the views by this way alone:

1. `Link.snapshot` gives each one in order, on the window's thread. Those of an engine that was
   closed do not arrive.
2. `Store.take` drops those that tell of an older revision of the document, keeps the rest as the
   newest of their kind, and emits `Store.snapshot`. Presenters connect to that signal; what came
   before they were made they find by `newest`. When the engine ends, what lived in it goes.
3. Some snapshots answer one question and mean nothing to others: a rule, a slice, a completion.
   `presenters.questions.Questions` hands those to whoever asked, and drops superseded ones.
"""

from __future__ import annotations

from typing import TypeVar

from PySide6.QtCore import QObject, Signal

from engine.project.document import Project, ViewState, replace
from engine.protocol import (
    BackwardSnapshot,
    ComparisonSnapshot,
    ForwardSnapshot,
    GraphSnapshot,
    ModelSnapshot,
    ReadySnapshot,
    Snapshot,
    ValueSnapshot,
)
from engine.protocol.autograd_snapshots import join_graph

PASS_SNAPSHOTS = (
    ForwardSnapshot,
    GraphSnapshot,
    BackwardSnapshot,
    ComparisonSnapshot,
    ValueSnapshot,
)
"""They tell of one forward and backward pass; an edit of the model ends it, unless the backward
pass is that of a tensor of the console."""

S = TypeVar("S", bound=Snapshot)


class Store(QObject):
    """`revision` counts the changes that the engine can see: moving a block is none.

    Signals: `project_changed(old, new)`, `revision_changed(revision)` after it, and
    `snapshot(snapshot)` for each one that was taken in.
    """

    project_changed = Signal(object, object)
    revision_changed = Signal(int)
    snapshot = Signal(object)

    def __init__(self, project: Project | None = None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._project = project or Project()
        self._revision = 1
        self._snapshots: dict[type[Snapshot], Snapshot] = {}
        self._graph_parts: list[GraphSnapshot] = []

    @property
    def project(self) -> Project:
        return self._project

    @property
    def revision(self) -> int:
        return self._revision

    def set_project(self, project: Project) -> None:
        old = self._project
        if project == old:
            return
        self._project = project
        parts = (old.model is not project.model, old.training is not project.training)
        changed = any(parts) and _computation(old) != _computation(project)
        if changed:
            self._revision += 1
            self.forget(*(ForwardSnapshot,) if self.steps_console else PASS_SNAPSHOTS)
        self.project_changed.emit(old, project)
        if changed:
            self.revision_changed.emit(self._revision)

    def set_view(self, view: ViewState) -> None:
        """Change what is on screen: no edit, so no undo step."""
        self.set_project(replace(self._project, view=view))

    def take(self, snapshot: Snapshot) -> bool:
        """Keep a snapshot and announce it; False when it tells of an older document."""
        if self._tells_of_document(snapshot) and snapshot.revision != self._revision:
            return False
        if isinstance(snapshot, GraphSnapshot) and snapshot.parts > 1:
            # A part of a large graph: only the whole is announced. A first part starts anew.
            self._graph_parts = [*(self._graph_parts if snapshot.part else ()), snapshot]
            if len(self._graph_parts) < snapshot.parts:
                return True
            snapshot, self._graph_parts = join_graph(self._graph_parts), []
        self._snapshots[type(snapshot)] = snapshot
        self.snapshot.emit(snapshot)
        return True

    @property
    def steps_console(self) -> bool:
        """The backward pass under way is that of a tensor of the console."""
        graph = self.newest(GraphSnapshot)
        return graph is not None and bool(graph.root)

    def _tells_of_document(self, snapshot: Snapshot) -> bool:
        """Whether an edit makes a snapshot untrue. Those of runs, files, the console and the engine
        stay true whatever is edited."""
        if isinstance(snapshot, GraphSnapshot):
            return not snapshot.root
        if isinstance(snapshot, BackwardSnapshot | ComparisonSnapshot | ValueSnapshot):
            return not self.steps_console
        return isinstance(snapshot, ModelSnapshot | ForwardSnapshot)

    def newest(self, kind: type[S]) -> S | None:
        """The newest snapshot of a type; None when there is none."""
        return self._snapshots.get(kind)  # type: ignore[return-value]

    def end_engine(self) -> None:
        """The engine has ended, and with it what only it knew. Runs stay: they have checkpoints."""
        self.forget(ReadySnapshot, *PASS_SNAPSHOTS)

    def forget(self, *kinds: type[Snapshot]) -> None:
        for kind in kinds:
            self._snapshots.pop(kind, None)


def _computation(project: Project) -> tuple:
    """What of a project the engine sees: all but names of files, positions and the view."""
    blocks = tuple(replace(block, x=0.0, y=0.0) for block in project.model.blocks)
    return blocks, project.model.wires, project.training
