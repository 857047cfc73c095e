"""The store: the current Project, and the newest snapshot of each kind.

Snapshots reach the views in this way only:

1. `Link.snapshot` emits each one in order, on the window's thread. Once an engine is closed, none
   of its snapshots arrive.
2. `Store.take` drops snapshots about an older revision of the document. It keeps any other as the
   newest of its kind and gives it to those who asked for that kind: `store.on(GraphSnapshot,
   self._show_graph)`. Earlier snapshots are read by `newest`. When the engine ends, the snapshots
   about its state go.
3. Some snapshots answer one question and concern only who asked: a rule, a slice, a completion.
   `Link.ask` gives those to the asker; `presenters.questions.Questions` asks, and drops the answers
   to superseded questions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from PySide6.QtCore import QObject, Signal

from engine.project.cells import expressions_of
from engine.project.document import Project, ViewState, replace
from engine.protocol import (
    BackwardSnapshot,
    ComparisonSnapshot,
    FileSnapshot,
    FitSnapshot,
    ForwardSnapshot,
    GraphSnapshot,
    HeldSnapshot,
    LoopSnapshot,
    ModelSnapshot,
    ReadySnapshot,
    RunSnapshot,
    Snapshot,
    StructureSnapshot,
    TraceSnapshot,
    TrainingSnapshot,
    ValueSnapshot,
    VariablesSnapshot,
    WeightsSnapshot,
)
from engine.protocol.autograd_snapshots import join_graph
from engine.protocol.subject_commands import join_structure
from engine.protocol.trace_snapshots import join_trace

PASS_SNAPSHOTS = (
    ForwardSnapshot,
    GraphSnapshot,
    BackwardSnapshot,
    ComparisonSnapshot,
    ValueSnapshot,
)
"""Snapshots of one forward and backward pass. An edit of the model ends the pass, unless it is the
backward pass of a tensor of the console."""

STEP_SNAPSHOTS = (RunSnapshot, WeightsSnapshot, FitSnapshot, BackwardSnapshot)
"""Snapshots after which the tensors of a module may hold other values: a step of training, loaded
weights, a step backward. What a view has read of them is then old."""
VALUE_SNAPSHOTS = (*STEP_SNAPSHOTS, VariablesSnapshot, FileSnapshot)
"""As STEP_SNAPSHOTS, and those after which the module itself may be another one: Python has run."""

_OF_CODE = (StructureSnapshot, TraceSnapshot)
_JOINS: dict[type[Snapshot], Callable] = {
    GraphSnapshot: join_graph,
    StructureSnapshot: join_structure,
    TraceSnapshot: join_trace,
}
"""Snapshots that come in parts, if they are large."""

S = TypeVar("S", bound=Snapshot)


class _News(QObject):
    """Snapshots of one kind. A QObject's slot is disconnected when the QObject is deleted."""

    came = Signal(object)


class Store(QObject):
    """`revision` counts the changes that matter to the engine; moving a block does not.

    Signals: `project_changed(old, new)`, then `revision_changed(revision)` if it has changed.
    `agreed()`: the user has agreed to the document's Python; ask again what was refused for it.
    """

    project_changed = Signal(object, object)
    revision_changed = Signal(int)
    agreed = Signal()

    def __init__(self, project: Project | None = None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._project = project or Project()
        self._revision = 1
        self._snapshots: dict[type[Snapshot], Snapshot] = {}
        self._parts: dict[type[Snapshot], list] = {}
        self._news: dict[type[Snapshot], _News] = {}
        self._left_run = 0  # the command that began the run of the document before
        self.unagreed: frozenset[str] = frozenset()
        """Python that came with the document's file, and that the user has not agreed to."""

    @property
    def project(self) -> Project:
        return self._project

    @property
    def revision(self) -> int:
        return self._revision

    @property
    def is_unagreed(self) -> bool:
        """Whether the document still names some of that Python. What the user has typed in its
        place is the user's own."""
        return not self.unagreed.isdisjoint(expressions_of(self._project))

    def agree(self) -> None:
        """The user agrees to the document's Python."""
        was_unagreed, self.unagreed = self.is_unagreed, frozenset()
        if was_unagreed:
            self._revision += 1
            self.revision_changed.emit(self._revision)
            self.agreed.emit()

    def set_project(self, project: Project) -> None:
        old = self._project
        if project == old:
            return
        self._project = project
        parts = (
            old.model is not project.model,
            old.training is not project.training,
            (old.subject, old.objective) != (project.subject, project.objective),
        )
        changed = any(parts) and _computation(old) != _computation(project)
        if changed:
            self._revision += 1
            self.forget(*(ForwardSnapshot,) if self.steps_console else PASS_SNAPSHOTS)
        if old.subject != project.subject:
            self.forget(StructureSnapshot)
        self.project_changed.emit(old, project)
        if changed:
            self.revision_changed.emit(self._revision)

    def set_view(self, view: ViewState) -> None:
        """Change what is on screen: this is not an edit and makes no undo step."""
        self.set_project(replace(self._project, view=view))

    def on(self, kinds: type[S] | tuple[type[Snapshot], ...], slot: Callable[[S], object]) -> None:
        """Call `slot(snapshot)` for each snapshot of these kinds that is kept. A kind stands for
        those that derive from it too. Those of one kind are called in the order in which they
        came here."""
        for kind in kinds if isinstance(kinds, tuple) else (kinds,):
            if kind not in self._news:
                self._news[kind] = _News(self)
            self._news[kind].came.connect(slot)

    def take(self, snapshot: Snapshot) -> bool:
        """Keep a snapshot and give it to its listeners. False if it is about an older document,
        or a run of the document before."""
        if self._is_of_document(snapshot) and snapshot.revision != self._revision:
            return False
        if isinstance(snapshot, RunSnapshot) and 0 < snapshot.reply_to <= self._left_run:
            return False
        whole = self._joined(snapshot)
        if whole is not None:
            self._snapshots[type(whole)] = whole
            # The kind itself last: a page that is made for it, and reads it, gets it once.
            for kind in reversed(type(whole).__mro__):
                if kind in self._news:
                    self._news[kind].came.emit(whole)
        return True

    def _joined(self, snapshot: Snapshot) -> Snapshot | None:
        """A snapshot that comes in parts, once all are there; None before. The first part of
        another one begins again."""
        if not isinstance(snapshot, tuple(_JOINS)):
            return snapshot
        kept = self._parts.get(type(snapshot), [])
        if (kept and kept[0].reply_to != snapshot.reply_to) or getattr(snapshot, "part", 1) == 0:
            kept = []
        kept = self._parts[type(snapshot)] = [*kept, snapshot]
        if isinstance(snapshot, StructureSnapshot):
            is_whole = snapshot.left == 0
        else:
            is_whole = len(kept) >= snapshot.parts  # type: ignore[attr-defined]
        if not is_whole:
            return None
        del self._parts[type(snapshot)]
        return _JOINS[type(snapshot)](kept) if len(kept) > 1 else snapshot

    def begin_document(self) -> None:
        """Another document is shown: drop what was said of the one before. What its run still says
        is not kept."""
        runs = (self.newest(TrainingSnapshot), self.newest(LoopSnapshot))
        self._left_run = max((self._left_run, *(run.reply_to for run in runs if run is not None)))
        self._parts.clear()
        self.forget(*PASS_SNAPSHOTS, *_OF_CODE, ModelSnapshot, TrainingSnapshot, LoopSnapshot)

    @property
    def held(self) -> HeldSnapshot | None:
        """Where code of the user's is held; None if none is."""
        held = self.newest(HeldSnapshot)
        return held if held is not None and held.at else None

    @property
    def steps_console(self) -> bool:
        """Whether the backward pass is that of a tensor of the console."""
        graph = self.newest(GraphSnapshot)
        return graph is not None and bool(graph.root)

    def _is_of_document(self, snapshot: Snapshot) -> bool:
        """Whether an edit of the document makes a snapshot stale. Snapshots of runs, files, the
        console and the engine never become stale by an edit."""
        if isinstance(snapshot, GraphSnapshot):
            return not snapshot.root
        if isinstance(snapshot, BackwardSnapshot | ComparisonSnapshot | ValueSnapshot):
            return not self.steps_console
        return isinstance(snapshot, ModelSnapshot | ForwardSnapshot)

    def newest(self, kind: type[S]) -> S | None:
        """The newest snapshot of a type; None if there is none."""
        return self._snapshots.get(kind)  # type: ignore[return-value]

    def end_engine(self) -> None:
        """Drop the snapshots about the state of the engine, which has ended. Snapshots of runs
        stay, because runs have checkpoints."""
        self._left_run = 0  # the next engine counts its commands from 0 again
        self._parts.clear()
        self.forget(ReadySnapshot, HeldSnapshot, VariablesSnapshot, *PASS_SNAPSHOTS, *_OF_CODE)

    def forget(self, *kinds: type[Snapshot]) -> None:
        for kind in kinds:
            self._snapshots.pop(kind, None)


def _computation(project: Project) -> tuple:
    """The part of a project that matters to the engine: all but file names, positions and the
    view."""
    blocks = tuple(replace(block, x=0.0, y=0.0) for block in project.model.blocks)
    return blocks, project.model.wires, project.training, project.subject, project.objective
