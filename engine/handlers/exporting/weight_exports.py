"""Exports of weights: every tensor that a fresh process reads has the bits of the live one."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor, nn

from ...exporting.package import class_name
from ...exporting.state import cast, own_state
from ...exporting.weight_folders import save_distributed, save_hugging_face
from ...exporting.weights import save_state, write_saved
from ...lab import Lab
from ...protocol import ExportCommand
from ...restoring.module_kept import ModuleState
from ...system.errors import LabError
from ...tensors.compare import same_bits
from ...training.checkpoints import checkpoint_files
from ...training.checkpoints.checkpoint_fields import Checkpoint, encode
from ...training.loop import TrainingLoop
from ...training.run import TrainingRun
from ...verifier.jobs import WeightsJob, WeightsRead
from ...verifier.values import entry
from .results import Result, Work
from .sources import Source

NEW_RUN = "exported"
"""The id of the run that a checkpoint of step 0 stands for."""


def write_and_read(work: Work) -> Iterator[str]:
    """Yields what is done next. Raises LabError if the files cannot be written."""
    lab, command, result, verifier = work.lab, work.command, work.result, work.verifier
    result.stages = 2 if verifier else 1
    yield f"Writing {work.path.name}"
    with lab.control.user_code():
        state = _write(work)
        result.keys = tuple(state)
    if verifier is None:
        return
    yield "Reading it in a fresh process"
    with lab.control.user_code():
        read = verifier.ask(WeightsJob(command.format, str(work.path)))
        assert isinstance(read, WeightsRead)
        expected = {name: entry(tensor) for name, tensor in state.items()}
    names = [*expected, *(name for name in read.tensors if name not in expected)]
    different = [name for name in names if expected.get(name) != read.tensors.get(name)]
    result.verified = not different
    if different:
        result.differs = f"the tensor {different[0]}"
        result.max_abs_error = result.max_rel_error = float("inf")


def _write(work: Work) -> dict[str, Tensor]:
    """Write the files; returns the state that is in them."""
    command, source, path, result = work.command, work.source, work.path, work.result
    result.files = [path]
    if command.format == "checkpoint":
        checkpoint = _checkpoint(work.lab, command, source)
        write_saved(path, encode(checkpoint))
        result.notes.append(f"It is that of step {checkpoint.step:,}.")
        return dict(checkpoint.model)
    state = _cast(own_state(source.module), command.dtype, result)
    if command.format == "dcp":
        result.files = save_distributed(state, path)
    elif command.format == "hf":
        result.files = save_hugging_face(state, class_name(source.module), path)
    else:
        assert command.format in ("pt", "safetensors")
        save_state(state, path, command.format)
    return state


def _cast(state: dict[str, Tensor], dtype: str, result: Result) -> dict[str, Tensor]:
    if not dtype:
        return state
    made = cast(state, dtype)
    result.max_abs_error, result.max_rel_error, _ = made.difference
    if made.overflown:
        result.notes.append(
            f"{made.overflown:,} numbers are too large for {dtype}, and became infinite."
        )
    return made.state


def _checkpoint(lab: Lab, command: ExportCommand, source: Source) -> Checkpoint:
    """The checkpoint of the subject's run as it stands; without a run, that of one before its
    first step. Raises LabError."""
    run = lab.run
    if isinstance(run, TrainingRun):
        if run.loop.model is source.module:
            if run.is_in_step:
                raise LabError(
                    "The run stands between two phases of a step.",
                    hint="Go to the end of the step, then export.",
                )
            return run.loop.checkpoint(run.id)
    elif run is not None and (last := run.snapshot("finished").checkpoint):
        saved = checkpoint_files.load(last)
        if saved.subject == command.subject and _has_weights(source.module, saved):
            return saved
    model = source.module
    with ModuleState(model):
        loop = TrainingLoop(
            model, command.training, source.subject.objective(), subject=command.subject
        )
        try:
            return loop.checkpoint(NEW_RUN)
        finally:
            loop.close()


def _has_weights(module: nn.Module, saved: Checkpoint) -> bool:
    """Whether a module has the weights of a checkpoint: the live model of a run of other processes
    does, until it is changed."""
    state = module.state_dict()
    return state.keys() == saved.model.keys() and all(
        same_bits(tensor, state[key]) for key, tensor in saved.model.items()
    )
