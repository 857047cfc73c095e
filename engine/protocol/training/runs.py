"""The runs of a project, as they lie in their folders."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ...project.document import Project
from ..commands import Command
from ..snapshots import Snapshot
from .snapshots import EpochRow, StepColumns

KeptState = Literal[
    "running", "finished", "stopped", "failed", "cut off", "silent", "damaged", "event files"
]


class TrialRow(Struct, frozen=True):
    """Which trial of a sweep a run is: its `number` (from 1), the values that were drawn for it in
    words, and its `figure` in the last epoch, which is good if it is low, or with `maximise` high;
    `state` says whether it is the best so far, or has ended early since it was worse than most."""

    sweep: str
    number: int
    values: str
    figure: str
    value: float | None = None
    state: Literal["", "best", "pruned"] = ""
    maximise: bool = False


class RunRow(Struct, frozen=True, kw_only=True):
    """One run of a list.

    A run that is "cut off" has lost its process, one that is "silent" is of another machine and has
    given no sign of life for a while, one that is "damaged" cannot be read; `problem` says why.
    "event files" are TensorBoard's, of any program: they have figures, and nothing to go on from.
    `elsewhere` names the process that writes it, if that is another one. `told_s` is when its last
    figures were written, `sign_s` when its last sign of life came. `title` is its subject. Times
    are seconds since 1970, 0 if not known. `step` of `loss` and `epoch` are the last ones that were
    written. `checkpoint` is the path of the last checkpoint, "" without one. `error` says why it
    failed, `origin` from which run and step it went on, `no_script` why it has no train.py.
    """

    folder: str
    id: str = ""
    title: str = ""
    state: KeptState = "running"
    began_s: float = 0.0
    ended_s: float = 0.0
    step: int = 0
    loss: float | None = None
    epoch: EpochRow | None = None
    epochs: int = 0
    checkpoint: str = ""
    note: str = ""
    error: str = ""
    origin: str = ""
    no_script: str = ""
    elsewhere: str = ""
    told_s: float = 0.0
    sign_s: float = 0.0
    trial: TrialRow | None = None
    problem: str = ""


class ListRunsCommand(Command, frozen=True, kw_only=True):
    """List the runs in a folder ("": the data folder), or the one whose folder it is ->
    RunsSnapshot. With `events` also what event files of TensorBoard are in the folder."""

    handler = "training.runs:list_runs"
    newest_only = True
    while_running = True
    apart = True
    runs: str = ""
    events: bool = False


class ReadRunCommand(Command, frozen=True, kw_only=True):
    """Read the figures and the settings of a run -> KeptRunSnapshot."""

    handler = "training.runs:read_run"
    while_running = True
    apart = True
    folder: str


class CompareRunsCommand(Command, frozen=True, kw_only=True):
    """Compare the settings of two runs -> RunDifferenceSnapshot."""

    handler = "training.runs:compare_runs"
    while_running = True
    apart = True
    first: str
    second: str


class NoteRunCommand(Command, frozen=True, kw_only=True):
    """Write a note of the user's into a run's folder -> RunsSnapshot of its neighbours."""

    handler = "training.runs:note_run"
    folder: str
    note: str


class DeleteRunsCommand(Command, frozen=True, kw_only=True):
    """Put runs of one folder aside -> RunsSnapshot. The ones that were put aside before are gone
    for good."""

    handler = "training.runs:delete_runs"
    folders: tuple[str, ...]


class RestoreRunsCommand(Command, frozen=True, kw_only=True):
    """Bring back what the last DeleteRunsCommand put aside in a folder -> RunsSnapshot."""

    handler = "training.runs:restore_runs"
    runs: str


class MoveRunsCommand(Command, frozen=True, kw_only=True):
    """Move runs beside the project that has been saved -> MovedRunsSnapshot. The one that is
    trained goes on there."""

    handler = "training.runs:move_runs"
    folders: tuple[str, ...]
    runs: str


class CopyRunsCommand(Command, frozen=True, kw_only=True):
    """Copy runs into another folder of runs; one that is there stays as it is ->
    CopiedRunsSnapshot, after each and at the end."""

    handler = "training.runs:copy_runs"
    folders: tuple[str, ...]
    runs: str


class CopiedRunsSnapshot(Snapshot, frozen=True, kw_only=True):
    """`copied` of `runs` runs have been copied."""

    runs: int
    copied: int = 0


class RunsSnapshot(Snapshot, frozen=True, kw_only=True):
    """The runs in a folder, the newest first, as they were at the time `read_s`; `left_out` older
    ones are not told. `deleted` ones can be restored. `problem` says what could not be listed."""

    folder: str
    read_s: float = 0.0
    runs: tuple[RunRow, ...] = ()
    left_out: int = 0
    deleted: int = 0
    problem: str = ""


class Annotation(Struct, frozen=True, forbid_unknown_fields=True):
    """Words of the user's at a step of a run; in the plot of that name, elsewhere as a line."""

    step: int
    text: str
    plot: str = "loss"


class ReadAnnotationsCommand(Command, frozen=True, kw_only=True):
    """Read the annotations in a run's folder -> AnnotationsSnapshot."""

    handler = "training.runs:read_annotations"
    while_running = True
    apart = True
    folder: str


class AnnotateRunCommand(Command, frozen=True, kw_only=True):
    """Keep these annotations in a run's folder, in place of all others -> AnnotationsSnapshot."""

    handler = "training.runs:annotate_run"
    while_running = True
    apart = True
    folder: str
    annotations: tuple[Annotation, ...]


class AnnotationsSnapshot(Snapshot, frozen=True, kw_only=True):
    """The annotations in a run's folder."""

    folder: str
    annotations: tuple[Annotation, ...] = ()


class KeptRunSnapshot(Snapshot, frozen=True, kw_only=True):
    """A run as it lies in its folder: some of its steps, so that a plot looks the same, all epochs,
    the project that it trained, and the user's annotations."""

    folder: str
    steps: StepColumns
    epoch_rows: tuple[EpochRow, ...] = ()
    project: Project
    annotations: tuple[Annotation, ...] = ()


class SettingRow(Struct, frozen=True):
    """A setting by its path in the project, with its two values; "" where there is none."""

    name: str
    first: str
    second: str


class RunDifferenceSnapshot(Snapshot, frozen=True, kw_only=True):
    """The settings in which two runs differ; `left_out` more do."""

    first: str
    second: str
    rows: tuple[SettingRow, ...] = ()
    left_out: int = 0


class MovedRunsSnapshot(Snapshot, frozen=True, kw_only=True):
    """The folders of runs, before and now."""

    moved: tuple[tuple[str, str], ...]


class WriteEventsCommand(Command, frozen=True, kw_only=True):
    """Write runs as event files of TensorBoard, each into a folder of its own in `path` ->
    EventsSnapshot, now and then, and at the end."""

    handler = "training.events:write_events"
    folders: tuple[str, ...]
    path: str


class EventsSnapshot(Snapshot, frozen=True, kw_only=True):
    """`runs` runs have been written, and `steps` steps of the run that is being written; at the end
    `written` has the folders."""

    path: str
    runs: int
    steps: int = 0
    written: tuple[str, ...] = ()
