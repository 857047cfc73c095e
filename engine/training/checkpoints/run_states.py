"""The states from which a run goes to any of its steps: in memory, and in its folder."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import torch

from ...project.atomic import private_folder, replacing
from ...project.document import TrainingSetup, replace
from ...runs import states
from ...system.errors import LabError
from ..objectives.objective import Objective
from .checkpoint_fields import Checkpoint, encode
from .checkpoint_files import load
from .past import Past
from .states_in_memory import KeptStates, size_of

MAX_FILES = 8
MAX_FILE_BYTES = 8 * 2**30


class RunStates:
    """States in memory while they are small, else in files. The first one, and those at which
    something cannot be repeated (`past.breaks`), also have a file: a later process, which goes on
    with the run, starts from them. Files are MAX_FILES at most, of MAX_FILE_BYTES together.

    `folder()` is the folder of the run, `objective` that of its steps; another one may hold from a
    step on (`objectives`).
    """

    def __init__(self, folder: Callable[[], Path], objective: Objective) -> None:
        self.past = Past()
        self.objectives = [(0, objective)]
        self._folder = folder
        self._memory = KeptStates()
        self._left_after: int | None = None  # files of later steps are of a past that is left

    def resume(self, saved: Checkpoint, setup: TrainingSetup) -> None:
        """The run goes on from a checkpoint, with a set-up that may be another one."""
        self.past, self._left_after = saved.past.until(saved.step), saved.step
        if replace(saved.setup, hold=setup.hold) != setup:
            self.past = self.past.broken(saved.step)

    def add(self, state: Checkpoint, ready: Callable[[], bool]) -> None:
        """Keep a state; one that is too large for memory gets a file, if the folder is `ready`.
        Raises LabError if that cannot be written."""
        if not self._memory.add(state) and ready():
            self._write(state)

    def write(self) -> None:
        """Write the files that a later process starts from. Raises LabError."""
        self._drop_left()
        for step in (0, *self.past.breaks):
            state = self._memory.newest(step)
            if state is not None and state.step == step and step not in self._steps():
                self._write(state)

    def newest(self, step: int) -> Checkpoint | None:
        """The newest state that leads to a step; None if there is none."""
        found = self._memory.newest(step)
        if found is not None and not self.past.leads(found.step, step):
            found = None
        for each in reversed(self._steps()):
            if each > step or not self.past.leads(each, step):
                continue
            if found is not None and found.step >= each:
                break
            try:
                return load(states.path_of(self._folder(), each))
            except LabError:  # it is damaged, or gone by now
                continue
        return found

    def newest_finite(self, step: int) -> Checkpoint | None:
        """The newest state in memory, as `newest`, whose model has no number that is NaN or
        infinite."""
        found = self._memory.newest_finite(step)
        return found if found is not None and self.past.leads(found.step, step) else None

    def until(self, step: int, folder: Callable[[], Path]) -> RunStates:
        """The states at a step or before it, for a run that goes there and may have another
        folder."""
        found = RunStates(folder, self.objectives[0][1])
        found.objectives = [each for each in self.objectives if each[0] <= step]
        found._memory, found._left_after = self._memory.until(step), self._left_after
        found.past = self.past.until(step)
        return found

    def objective_at(self, step: int) -> Objective:
        """The objective of the steps after this one."""
        return [objective for since, objective in self.objectives if since <= step][-1]

    # -- files -----------------------------------------------------------------------------------

    def _steps(self) -> list[int]:
        found = states.steps_in(self._folder())
        return [step for step in found if self._left_after is None or step <= self._left_after]

    def _drop_left(self) -> None:
        for step in {*states.steps_in(self._folder())} - {*self._steps()}:
            with suppress(OSError):  # the folder is out of reach, and so are the files
                states.path_of(self._folder(), step).unlink()
        self._left_after = None

    def _write(self, state: Checkpoint) -> None:
        folder, size = self._folder(), size_of(state)
        path = states.path_of(folder, state.step)
        try:
            private_folder(path.parent)
            self._drop_left()
            if 2 * size > min(MAX_FILE_BYTES, shutil.disk_usage(folder).free):
                return
            with replacing(path, private=True) as temporary:
                torch.save(encode(state), temporary)
            self._thin_out(folder)
        except OSError as error:
            raise LabError(
                f"A state of the run could not be written: {error.strerror or error}.",
                hint="Free some disk space, or train in a folder where you can write. The run goes"
                " on; it cannot go back from there.",
            ) from error

    def _thin_out(self, folder: Path) -> None:
        """Remove files that are too many: where the steps lie closest, but neither the first nor
        the last, and those with a break only after the others."""
        steps = states.steps_in(folder)
        sizes = {step: states.path_of(folder, step).stat().st_size for step in steps}
        while len(steps) > 2 and (
            len(steps) > MAX_FILES or sum(sizes[step] for step in steps) > MAX_FILE_BYTES
        ):
            _, _, closest = min(
                (steps[i] in self.past.breaks, steps[i + 1] - steps[i - 1], i)
                for i in range(1, len(steps) - 1)
            )
            states.path_of(folder, steps.pop(closest)).unlink()
