"""Trains several models at once, each to the middle of an epoch, and kills itself with SIGKILL.

python -m tests.engine.runs.killed FOLDER THREADS
"""

from __future__ import annotations

import os
import random
import signal
import sys
from pathlib import Path

import numpy as np
import torch

from app.templates import load_template
from engine.lab import Lab
from engine.project.document import Model, TrainingSetup, replace
from engine.protocol import RunFileCommand, TrainCommand
from engine.server.session import handler_of
from engine.training.run import TrainingRun
from tests.engine.subjects.eight import CASES
from tests.engine.subjects.eight import SETUP as OWN_SETUP

OWN = [case for case in CASES if case.name in ("resnet", "vae")]
TEMPLATES = ("mlp", "lenet", "residual_mlp", "lstm", "attention")
NAMES = (*TEMPLATES, *(case.name for case in OWN))
STEPS_BEFORE, STEPS_LOST = 3, 2


def command_of(name: str, folder: str = "", checkpoint: str = "") -> TrainCommand:
    """A few epochs of a template, or of a file of code, in few steps."""
    for case in OWN:
        if case.name == name:
            return TrainCommand(
                model=Model(),
                training=replace(OWN_SETUP, epochs=4),
                subject=case.subject,
                objective=case.objective,
                folder=folder,
                checkpoint=checkpoint,
            )
    project = load_template(name)
    setup: TrainingSetup = replace(project.training, epochs=2, batch_size=400)
    return TrainCommand(model=project.model, training=setup, folder=folder, checkpoint=checkpoint)


def opened(name: str) -> Lab:
    """A lab that has run the file, if the subject is in one. All processes have the same generators
    of NumPy and Python, which no run seeds."""
    np.random.seed(0)
    random.seed(0)
    lab = Lab(emit=lambda snapshot: None)
    for case in OWN:
        if case.name == name:
            list(handler_of(RunFileCommand)(lab, RunFileCommand(path=str(case.path))))
    return lab


def train_and_die(folder: Path) -> None:
    jobs = []
    for name in NAMES:
        lab = opened(name)
        job = iter(handler_of(TrainCommand)(lab, command_of(name, str(folder / name))))
        jobs.append((lab, job))
        next(job)
        run = lab.run
        assert isinstance(run, TrainingRun)
        while run.step < STEPS_BEFORE:
            next(job)
        run.save()
        while run.step < STEPS_BEFORE + STEPS_LOST:
            next(job)
        run.snapshot("running")  # its figures are in the folder; the steps are not
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[2]))
    train_and_die(Path(sys.argv[1]))
