"""Messages about subjects: what a Python file holds, and the structure of a module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct, field, structs

from ..project.document import Model, TrainingSetup
from ..project.subject import CanvasSubject, CodeSubject, Objective, Subject
from .commands import Command
from .snapshots import Snapshot
from .value_snapshots import Histogram
from .values import ErrorReport

FileObjectKind = Literal["class", "module", "function", "data"]


class FileObject(Struct, frozen=True):
    """A name in a Python file that a workspace can work on: a class of modules, a module, a
    function of the file's own, a bound method or a partial, or data (a Dataset, DataLoader or
    tensors). `required` are the parameters without a default. `takes_tensors`: it may be a function
    of tensors. `is_bare`: it is a module without parameters and buffers, as most losses are.
    `methods` are those of a module that may be functions of tensors."""

    name: str
    kind: FileObjectKind
    type: str
    required: tuple[str, ...] = ()
    takes_tensors: bool = False
    is_bare: bool = False
    methods: tuple[str, ...] = ()


class RunFileCommand(Command, frozen=True, kw_only=True):
    """Run a Python file as a module -> its output, then a FileSnapshot. It runs again if it has
    already run."""

    handler = "structures.choosing:run_file"
    path: str


class FileSnapshot(Snapshot, frozen=True, kw_only=True):
    """A Python file has run. `digest` is the SHA-256 of its source, `imports` has those of the
    files in its folder that it has imported, by path."""

    path: str
    digest: str
    objects: tuple[FileObject, ...]
    imports: dict[str, str] = field(default_factory=dict)


class ShowSubjectCommand(Command, frozen=True, kw_only=True):
    """The workspaces work on this subject: `lab.subject` in a cell is its module, made when it is
    first wanted."""

    handler = "structures.choosing:show_subject"
    while_running = True
    subject: Subject
    training: TrainingSetup = TrainingSetup()


class ReadStructureCommand(Command, frozen=True, kw_only=True):
    """Read a subject's modules, parameters and buffers -> StructureSnapshots, the last of which has
    `left` 0. With data in `objective` (the canvas has its own), one step is run to see the shapes
    that each module takes and gives."""

    handler = "structures.reading:read_structure"
    subject: Subject = CanvasSubject()
    objective: Objective = Objective()
    model: Model = Model()
    training: TrainingSetup = TrainingSetup()


class PreviewInitCommand(Command, frozen=True, kw_only=True):
    """Try `torch.nn.init.FUNCTION(tensor, ARGUMENTS)` on copies of parameters or buffers -> an
    InitPreviewSnapshot. `arguments` are constants as Python writes them: `0.0, std=0.02`."""

    handler = "structures.reading:preview_init"
    subject: CodeSubject
    names: tuple[str, ...]
    function: str
    arguments: str = ""
    training: TrainingSetup = TrainingSetup()


class InitialValues(Struct, frozen=True):
    """What a tensor would hold; `problem` is the error that it would meet instead."""

    name: str
    mean: float | None = None
    std: float | None = None
    problem: str = ""


class InitPreviewSnapshot(Snapshot, frozen=True, kw_only=True):
    rows: tuple[InitialValues, ...]


class WriteStepCommand(Command, frozen=True, kw_only=True):
    """Write the step of the usual task that fits the first batch of `objective.data`, or tell the
    one that the subject's own code defines -> StepSnapshot."""

    handler = "structures.choosing:write_usual_step"
    newest_only = True
    subject: Subject
    objective: Objective
    training: TrainingSetup = TrainingSetup()


class StepSnapshot(Snapshot, frozen=True, kw_only=True):
    """`source` is the Python of `def step(batch)`; it is empty if the subject's own code defines
    `step`. `task` names the usual task ("classification"), `batch` tells the first batch."""

    task: str
    source: str
    batch: str


class ModuleCall(Struct, frozen=True):
    """One call of a module's forward: the shapes of the tensors that it took and gave, in the order
    in which they stand in its arguments and result, and the multiply-accumulates inside (torch's
    flop counter, halved). `kept_bytes` are those of the storages that autograd keeps for backward,
    parameters and buffers aside; None where torch cannot tell. `ms` is the time that one such call
    took, by the wall clock."""

    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[int, ...], ...]
    macs: int = 0
    kept_bytes: int | None = 0
    ms: float = 0.0


class ModuleRow(Struct, frozen=True):
    """One module. `path` is "" for the subject itself. `parameters` and `parameter_bytes` count
    those of the module and all inside it, shared ones once. `calls` is empty without a batch, and
    for a module that the step does not run; it has the first of `call_count` calls; `macs`,
    `kept_bytes` and `ms` are those of all of them, and a storage that several calls keep counts
    once. `code` is what Python writes after the subject to reach the module (`.net[0]`)."""

    path: str
    type: str
    parameters: int
    parameter_bytes: int
    trainable: int
    calls: tuple[ModuleCall, ...] = ()
    call_count: int = 0
    training: bool = True
    macs: int = 0
    kept_bytes: int | None = 0
    ms: float = 0.0
    code: str = ""


class WeightRow(Struct, frozen=True):
    """A parameter or a buffer. `shared_with` are the other names of the same tensor; `persistent`
    is False for a buffer that the state_dict leaves out. `fed_by` are the optimizers among the
    subject's variables that hold it, `code` what Python writes after the subject to reach it.
    `gradient` is the 2-norm of `.grad`, None if that is None. `update` is the 2-norm of the change
    in one optimizer step as a share of that of the values before; None where that is not known."""

    name: str
    kind: Literal["parameter", "buffer"]
    shape: tuple[int, ...]
    dtype: str
    device: str
    elements: int
    bytes: int
    trainable: bool
    shared_with: tuple[str, ...] = ()
    persistent: bool = True
    mean: float | None = None
    std: float | None = None
    fed_by: tuple[str, ...] = ()
    code: str = ""
    histogram: Histogram | None = None
    gradient: float | None = None
    update: float | None = None


class StructureTotals(Struct, frozen=True):
    """Counts over the whole subject, shared tensors once."""

    modules: int
    parameters: int
    trainable: int
    parameter_bytes: int
    buffers: int
    buffer_bytes: int


class StructureSnapshot(Snapshot, frozen=True, kw_only=True):
    """A part of a subject's structure; `left` rows follow in further parts. `title` is the
    subject's, `batch` tells the batch that was run ("" if none was), and `unrun` what was raised if
    that failed. `made`: the subject's expression was called to make the module, so it would make
    another in a cell. `optimizers` are those among the subject's variables. `unregistered`:
    attributes that hold modules or parameters in a plain list, tuple or dict. `bare`: attributes
    that are tensors which require a gradient, but not parameters. `watched` are paths of
    modules."""

    title: str
    totals: StructureTotals
    modules: tuple[ModuleRow, ...] = ()
    weights: tuple[WeightRow, ...] = ()
    left: int = 0
    batch: str = ""
    unrun: ErrorReport | None = None
    made: bool = False
    optimizers: tuple[str, ...] = ()
    unregistered: tuple[str, ...] = ()
    bare: tuple[str, ...] = ()
    watched: tuple[str, ...] = ()


def join_structure(parts: Sequence[StructureSnapshot]) -> StructureSnapshot:
    """One structure from all its parts, in order."""
    return structs.replace(
        parts[-1],
        modules=tuple(row for part in parts for row in part.modules),
        weights=tuple(row for part in parts for row in part.weights),
    )
