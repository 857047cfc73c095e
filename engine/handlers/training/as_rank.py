"""The work of a process that is one rank of a run."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
import torch
import torch.distributed as dist
from torch import nn

from ...lab import Lab
from ...project.subject import title
from ...protocol import TrainCommand
from ...system.errors import LabError
from ...training.checkpoints import checkpoint_files
from ...training.checkpoints.checkpoint_fields import Checkpoint
from ...training.distributed.launch import WEIGHTS
from ...training.distributed.rank_files import RANKS
from ...training.distributed.ranks import Ranks, RanksEnded, check_order
from ...training.distributed.rows import RowsObjective
from ...training.loop import TrainingLoop
from ...training.objectives.objective import Objective
from ..subjects.find import subject_of

FLUSHED_STEPS = 100


def begin_as_rank(
    ranks: Ranks, module: nn.Module, objective: Objective, command: TrainCommand
) -> RowsObjective:
    """Load the weights that the run begins with into rank 0's module, if the engine that started
    the ranks gave any; the other ranks get them from rank 0. Returns the objective of this rank.
    Raises LabError if rank 0 trains something else, or the batches have no order."""
    check_order(objective.repeats)
    path = Path(command.folder) / RANKS / WEIGHTS
    if ranks.rank == 0 and command.folder and path.exists():
        module.load_state_dict(torch.load(path, weights_only=True, map_location="cpu"))
    own = digest_of(command, module)
    if ranks.from_first(own) != own:
        raise LabError(
            f"Rank {ranks.rank} has another model, set-up or data than rank 0.",
            hint="Start all ranks with the same project file and the same options.",
        )
    return RowsObjective(objective, ranks, module, command.training.seed)


def digest_of(command: TrainCommand, module: nn.Module) -> bytes:
    """A digest of what must be equal in all ranks. Paths are left out: they may differ from machine
    to machine."""
    setup = msgspec.structs.replace(command.training, device="", processes=1)
    shapes = [(name, list(tensor.shape)) for name, tensor in module.state_dict().items()]
    chosen = command.objective.loss_of_setup
    parts = (command.model, setup, title(command.subject), shapes, chosen)
    return hashlib.sha256(msgspec.json.encode(parts)).digest()


def begin_together(ranks: Ranks, resume: Checkpoint | None) -> Checkpoint | None:
    """The checkpoint from which rank 0 goes on, in each rank; only rank 0 need have it."""
    told = ranks.from_first(b"" if resume is None else checkpoint_files.dumps(resume))
    return checkpoint_files.loads(told) if told else None


def follow(lab: Lab, command: TrainCommand) -> None:
    """Train in a rank that is not the first, until that one ends the run. Raises what the user's
    code raises, LabError, and Diverged."""
    ranks = lab.ranks
    assert ranks is not None
    subject = subject_of(lab, command)
    objective = begin_as_rank(ranks, subject.module, subject.objective(), command)
    resume = begin_together(ranks, None)
    loop = TrainingLoop(subject.module, command.training, objective, None, command.subject, ranks)
    try:
        if resume is not None:
            loop.restore(resume)
        for _ in loop.steps():
            if loop.step % FLUSHED_STEPS == 0:  # figures are those of rank 0
                loop.flush()
                loop.metrics.drain(with_cuda=False)
        ranks.end()
    except RanksEnded:
        dist.destroy_process_group()
    finally:
        loop.close()
