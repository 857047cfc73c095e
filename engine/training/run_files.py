"""Files of a run: its folder with the figures, and a checkpoint from time to time."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

from ..project.document import Project, TrainingSetup
from ..protocol import EpochRow, StepColumns, TrainingState
from ..runs import folders
from ..runs.parameter_figures import Look
from ..runs.writer import RunWriter
from ..system.errors import LabError
from .checkpoints import checkpoint_files
from .checkpoints.checkpoint_files import Checkpoint

CHECKPOINT_INTERVAL_S = 2.0
CHECKPOINT_SHARE = 0.005
"""Writing checkpoints takes at most this share of the time."""


class RunFiles:
    """The files of one run. `checkpoint_path` and `checkpoint_step` are those of its newest
    checkpoint. A run that resumes one has that as its own until it writes another."""

    def __init__(self, writer: RunWriter, begun_at: int, checkpoint_path: str) -> None:
        self.writer = writer
        self.checkpoint_path = checkpoint_path
        self.checkpoint_step = self._begun_at = begun_at
        self._due_s = perf_counter() + CHECKPOINT_INTERVAL_S

    def save_is_due(self, now_s: float, at_end_of_epoch: bool) -> bool:
        """Whether a checkpoint should be written at a time of `perf_counter`: half an interval
        earlier at the end of an epoch, where a checkpoint is worth more."""
        early_s = CHECKPOINT_INTERVAL_S / 2 if at_end_of_epoch else 0.0
        return now_s >= self._due_s - early_s

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint. Raises LabError if it cannot be written."""
        started = perf_counter()
        try:
            self.checkpoint_path = str(checkpoint_files.save(checkpoint, self.writer.folder))
            self.checkpoint_step = checkpoint.step
            self.writer.settle(checkpoint.setup)
        finally:
            now = perf_counter()
            cost_s = now - started
            self._due_s = now + max(CHECKPOINT_INTERVAL_S, cost_s / CHECKPOINT_SHARE)

    def begin(self) -> None:
        """Make the folder, if it has not been made. Raises LabError."""
        self.writer.begin(self._begun_at)

    def write(
        self,
        state: TrainingState,
        steps: StepColumns,
        epoch_rows: tuple[EpochRow, ...],
        failure: str,
        looks: tuple[Look, ...] = (),
    ) -> LabError | None:
        """Give the figures of a snapshot to the run's folder, and tell it the end; `failure` says
        why the run failed. Returns what could not be written. A run without a step leaves no
        folder."""
        writer, problem = self.writer, None
        if writer.begun or steps.step:
            try:
                self.begin()
                writer.add(steps, epoch_rows, looks)
                if state in ("finished", "stopped", "failed"):
                    writer.end(state, failure)
            except LabError as error:
                problem = error
        if writer.problem:
            problem = LabError(writer.problem, hint="The run goes on without them.")
            writer.problem = ""
        return problem

    def move(self, folder: Path) -> None:
        """Move the run's folder. Raises LabError."""
        before = self.writer.folder
        self.writer.move(folder)
        path = Path(self.checkpoint_path)
        if self.checkpoint_path and path.is_relative_to(before):
            self.checkpoint_path = str(folder / path.relative_to(before))


def writer_in_data_folder(setup: TrainingSetup, resume: Checkpoint | None) -> RunWriter:
    """The writer of a run that is given no folder."""
    runs, project = folders.data_runs(), Project(training=setup)
    if resume is None:
        return RunWriter.new(runs, project)
    return RunWriter.resumed(runs / resume.run, resume.run, project)
