"""Messages about a module's structure: its forward, modules that are watched, comparing."""

from __future__ import annotations

from msgspec import Struct

from ..project.document import Model, TrainingSetup
from ..project.subject import CanvasSubject, CodeSubject, Objective, Subject
from .autograd_snapshots import GraphSnapshot
from .commands import Command
from .snapshots import Snapshot
from .values import ErrorReport


class ReadParametersCommand(Command, frozen=True, kw_only=True):
    """Read a subject's parameters, no buffers and no calls -> StructureSnapshots, as for a
    ReadStructureCommand. The next optimizer step of Train, or of a loop in a cell or file, is
    measured, so that the answer after it has `update`, and the gradients of that step."""

    handler = "structures.parameters:read_parameters"
    while_running = True
    newest_only = True
    subject: Subject = CanvasSubject()
    model: Model = Model()
    training: TrainingSetup = TrainingSetup()


class ReadForwardGraphCommand(Command, frozen=True, kw_only=True):
    """Read the graph that one step of a subject of code records, with the module of each node ->
    ForwardGraphSnapshots, the parts of one graph. The step runs as for ReadStructureCommand. In the
    graph the path of a module begins with the class of the subject: `Net.layers.0`."""

    handler = "backward:read_forward_graph"
    subject: CodeSubject
    objective: Objective
    training: TrainingSetup = TrainingSetup()


class ForwardGraphSnapshot(Snapshot, frozen=True, kw_only=True):
    """A part of the graph of a step; no pass goes through it."""

    graph: GraphSnapshot


MAX_WATCHED = 4
"""The most modules that are watched at a time."""
WHOLE_SUBJECT = "the whole subject"
"""The name of the subject itself in figures, if it is watched."""
WATCHED_FIGURES = (
    "output mean",
    "output std",
    "output zeros",
    "output norm",
    "output gradient norm",
    "parameter gradient norm",
)
"""The figures of a watched module in each step. In StepColumns they are named `head: output mean`.
Zeros are a share, from 0 to 1."""


class WatchCommand(Command, frozen=True, kw_only=True):
    """Watch exactly these modules of a subject of code, by their paths -> WatchedSnapshot. Each
    optimizer step of Train, and of a loop in a cell or file, then has their WATCHED_FIGURES."""

    handler = "structures.reading:watch"
    subject: CodeSubject
    paths: tuple[str, ...]
    training: TrainingSetup = TrainingSetup()


class WatchedSnapshot(Snapshot, frozen=True, kw_only=True):
    """The modules that are watched from now on."""

    paths: tuple[str, ...]


class KeepBeforeCommand(Command, frozen=True, kw_only=True):
    """Keep a copy of a subject of code, in place of the one kept before -> KeptSnapshot."""

    handler = "structures.comparing:keep_before"
    subject: CodeSubject
    training: TrainingSetup = TrainingSetup()


class KeptSnapshot(Snapshot, frozen=True, kw_only=True):
    """A copy is kept; `title` is that of its subject."""

    title: str


class CompareSubjectsCommand(Command, frozen=True, kw_only=True):
    """Compare a subject of code with another one, or with the copy that is kept (`other` None) ->
    DifferenceSnapshot. Both are called with what a step of the subject gives it, if `objective` has
    data. `model` is what the canvas has, for it may be the other one."""

    handler = "structures.comparing:compare_subjects"
    subject: CodeSubject
    other: Subject | None = None
    model: Model = Model()
    objective: Objective = Objective()
    training: TrainingSetup = TrainingSetup()


class ModuleDifference(Struct, frozen=True):
    """A module whose class differs; a side that does not have it is empty."""

    path: str
    before: str
    after: str


class WeightDifference(Struct, frozen=True):
    """A parameter or buffer that differs. `before` and `after` tell shape, dtype and kind; empty
    where there is none. Where both are alike, `difference` is the largest |after - before|."""

    name: str
    before: str
    after: str
    difference: float | None = None


class OutputDifference(Struct, frozen=True):
    """The output of one call of a module, by the number of the call (from 1). `before` and `after`
    tell shapes and dtypes; empty where there is no such call. Where both are alike, `difference` is
    the largest |after - before|: 0 if the outputs are equal."""

    path: str
    call: int
    before: str
    after: str
    difference: float | None = None


class DifferenceSnapshot(Snapshot, frozen=True, kw_only=True):
    """What differs between two modules. `weights` are those that differ, besides `equal_weights`
    that do not; `outputs` are those of all calls, in the order in which calls end. Of many, the
    first are told, and all counted. `first` is the number of the first output that differs, from 0;
    -1 if none does. `unrun` is what was raised if there are no outputs."""

    before: str
    after: str
    modules: tuple[ModuleDifference, ...] = ()
    module_count: int = 0
    weights: tuple[WeightDifference, ...] = ()
    weight_count: int = 0
    equal_weights: int = 0
    outputs: tuple[OutputDifference, ...] = ()
    output_count: int = 0
    first: int = -1
    unrun: ErrorReport | None = None
