"""The commands of an export, and what they answer."""

from __future__ import annotations

from msgspec import Struct

from ...project.document import Model, TrainingSetup
from ...project.subject import CanvasSubject, Objective, Subject
from ..commands import Command
from ..snapshots import Snapshot
from .formats import Dtype, Format


class ExportCommand(Command, frozen=True, kw_only=True):
    """Write the subject to `path` in a format, read it back in a fresh process and compare it with
    the live model -> ExportStageSnapshots, then an ExportSnapshot. An interrupt ends it.

    With `weights` (a path), the subject has that file's state_dict. `dtype` and `opset` (0: torch's
    own) are for formats that have them. "script" begins with the live weights, or with `fresh` with
    those initialised from the seed. Without `verify`, only weights are compared, in the engine.
    """

    handler = "exporting.export:export"
    model: Model
    training: TrainingSetup
    format: Format
    path: str
    weights: str = ""
    fresh: bool = False
    subject: Subject = CanvasSubject()
    objective: Objective = Objective()
    dtype: Dtype = ""
    opset: int = 0
    verify: bool = True


class PlanExportCommand(Command, frozen=True, kw_only=True):
    """The files that an export of the subject would write -> ExportPlanSnapshot."""

    handler = "exporting.plan:plan"
    model: Model
    training: TrainingSetup
    subject: Subject = CanvasSubject()
    objective: Objective = Objective()


class ExportPlanSnapshot(Snapshot, frozen=True, kw_only=True):
    """`title` is the subject's. `float_bytes` are those of tensors that a dtype casts, by the bytes
    of one number; `other_bytes` those of the others: each storage once. `refusals` says which
    formats cannot hold this subject, and why. `run_step` is that of its run; -1 without one."""

    title: str
    tensors: int
    float_bytes: dict[int, int]
    other_bytes: int
    refusals: dict[str, str]
    run_step: int = -1

    def size_bytes(self, dtype: str = "") -> int:
        """The bytes of the tensors, after a cast to a dtype."""
        if not dtype:
            return sum(self.float_bytes.values()) + self.other_bytes
        width = 8 if dtype == "float64" else 2
        numbers = sum(size // each for each, size in self.float_bytes.items())
        return numbers * width + self.other_bytes


class ExportStageSnapshot(Snapshot, frozen=True, kw_only=True):
    """The stage of the export; `done` of `stages` are over."""

    words: str
    done: int
    stages: int


class WrittenFile(Struct, frozen=True):
    """`name` is relative to the folder in which the export's path lies."""

    name: str
    size_bytes: int


class ExportSnapshot(Snapshot, frozen=True, kw_only=True):
    """The files that were written. `verified`: a fresh process has read it, and found what the live
    model has. The errors are the largest of all tensors, or of all outputs with all batch sizes;
    with a dtype, those of the cast. `model_ms` and `export_ms` are the times of one call with the
    last batch size. `differs` says where the outputs part; `unverified` why equal ones prove
    nothing, as a sentence. `renaming`: how the names in
    `ExportCommand.weights` were changed to fit, in words. `sha256` is "" for a folder."""

    path: str
    format: str
    size_bytes: int
    sha256: str
    max_abs_error: float
    keys: tuple[str, ...]
    files: tuple[WrittenFile, ...] = ()
    verified: bool = False
    max_rel_error: float = 0.0
    batch_sizes: tuple[int, ...] = ()
    model_ms: float = 0.0
    export_ms: float = 0.0
    opset: int = 0
    differs: str = ""
    unverified: str = ""
    notes: tuple[str, ...] = ()
    renaming: str = ""
    seconds: float = 0.0
