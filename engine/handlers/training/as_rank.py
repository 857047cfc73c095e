"""What a process does that is one rank of a run."""

from __future__ import annotations

from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

from ...lab import Lab
from ...protocol import TrainCommand
from ...training.checkpoints import checkpoint_files
from ...training.distributed.launch import WEIGHTS
from ...training.distributed.rank_files import RANKS
from ...training.distributed.ranks import Ranks, RanksEnded
from ...training.distributed.rows import RowsObjective
from ...training.loop import TrainingLoop
from ...training.objectives.objective import Objective
from ..subjects import find_subject, objective_of

FLUSHED_STEPS = 100


def begin_as_rank(
    ranks: Ranks, module: nn.Module, objective: Objective, command: TrainCommand
) -> RowsObjective:
    """Give the module of this rank the weights that the run begins with; returns its objective."""
    path = Path(command.folder) / RANKS / WEIGHTS
    module.load_state_dict(torch.load(path, weights_only=True, map_location="cpu"))
    return RowsObjective(objective, ranks, module, command.training.seed)


def follow(lab: Lab, command: TrainCommand) -> None:
    """Train in a rank that is not the first, until that one ends the run. Raises what the user's
    code raises, LabError, and Diverged."""
    ranks, setup = lab.ranks, command.training
    assert ranks is not None
    subject = find_subject(lab, command.subject, command.model, setup)
    whole = objective_of(lab, subject, command.objective, command.model, setup)
    objective = begin_as_rank(ranks, subject.module, whole, command)
    loop = TrainingLoop(subject.module, setup, objective, None, command.subject, ranks)
    if command.checkpoint:
        loop.restore(checkpoint_files.load(command.checkpoint))
    try:
        for _ in loop.steps():
            if loop.step % FLUSHED_STEPS == 0:  # figures are those of rank 0
                loop.flush()
                loop.metrics.drain(with_cuda=False)
        ranks.end()
    except RanksEnded:
        dist.destroy_process_group()
    finally:
        loop.close()
