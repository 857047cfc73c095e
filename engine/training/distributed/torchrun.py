"""This process's place among those that torchrun has started, and joining them."""

from __future__ import annotations

import os
from typing import NamedTuple

import torch

from ...project.document import TrainingSetup
from ...system.devices import usable_cores
from ...system.errors import LabError
from ..components.devices import find_device
from .ranks import Ranks


class Place(NamedTuple):
    """`rank` of `size`, and `local` of the `local_size` on this machine; all from 0."""

    rank: int
    size: int
    local: int
    local_size: int


def own_place() -> Place | None:
    """None if torchrun has not started this process."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return None
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
    return Place(*(int(os.environ[name]) for name in names))


def join(place: Place, setup: TrainingSetup) -> Ranks:
    """Wait for the other ranks. Raises LabError if there is no device for this one."""
    torch.set_num_threads(max(1, usable_cores() // place.local_size))
    return Ranks.join(place.rank, place.size, _device(setup, place.local))


def _device(setup: TrainingSetup, local_rank: int) -> torch.device:
    """The CPU, or the local rank's own GPU."""
    kind = setup.device.split(":")[0]
    if kind == "cuda":
        return find_device(f"cuda:{local_rank}")
    if kind != "cpu":
        raise LabError(
            f"Several processes cannot train on {setup.device}.", hint="Choose cpu or cuda."
        )
    return find_device("cpu")
