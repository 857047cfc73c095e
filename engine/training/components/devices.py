"""The device of a run."""

from __future__ import annotations

import torch

from ...system.errors import LabError


def find_device(name: str) -> torch.device:
    """Return the device `name` (`"cpu"`, `"cuda:0"`, `"mps"`).

    Raises LabError if this machine has no such device.
    """
    hint = "Choose the CPU, or a device that this machine has."
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise LabError(f"{name!r} is not a name of a device.", hint=hint) from error
    if device.type == "cpu":
        return torch.device("cpu")
    if device.type == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        device = torch.device("cuda", device.index or 0)
        available = device.index < count
    else:
        available = device.type == "mps" and torch.backends.mps.is_available()
    if not available:
        raise LabError(f"This machine has no device {name!r} that torch can use.", hint=hint)
    return device
