"""A session that trains a project, driven by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import torch

from engine.project.document import Project
from engine.protocol import Snapshot, TrainCommand, TrainingSnapshot
from engine.server.session import Session


class Driven:
    """A session that trains a project, and what it has told."""

    def __init__(self, project: Project, folder: Path) -> None:
        self.project, self.told = project, list[Snapshot]()
        self.session = Session(self.told.append)
        self.folder = folder
        self._id = 0

    def send(self, command) -> None:
        self._id += 1
        self.session.handle(msgspec.structs.replace(command, id=self._id))

    def train(self) -> None:
        self.send(
            TrainCommand(
                model=self.project.model,
                training=self.project.training,
                paused=True,
                folder=str(self.folder),
            )
        )

    def until(self, is_there: Callable[[TrainingSnapshot], bool]) -> TrainingSnapshot:
        """Go on until the run tells something."""
        while True:
            self.session.advance()
            for snapshot in self.told:
                if isinstance(snapshot, TrainingSnapshot) and is_there(snapshot):
                    self.told.clear()
                    return snapshot
            assert self.session.lab.is_training, self.told

    def weights(self) -> dict[str, torch.Tensor]:
        """Those of the live model."""
        live = self.session.lab.models.live
        assert live is not None
        return {name: tensor.clone() for name, tensor in live.module.state_dict().items()}


def is_paused_at(step: int) -> Callable[[TrainingSnapshot], bool]:
    return lambda run: run.state == "paused" and run.step == run.checkpoint_step == step
