"""Whether something may be computed on the model of a run: only while the run is paused."""

from __future__ import annotations

from ...lab import Lab
from ...system.errors import LabError


def require_rest(lab: Lab) -> None:
    """Raises LabError while a run goes on, or is in the middle of a step: the graph and the
    gradients of that step are still needed."""
    if not lab.is_training or lab.run is None:
        return
    if not lab.control.pause.is_set():
        raise LabError(
            "A run is going on: its weights move.",
            hint="Pause it first. It goes on afterwards as if nothing had been computed, bit for"
            " bit.",
        )
    if lab.run.is_in_step:
        raise LabError(
            f"The run is in the middle of step {lab.run.step + 1:,}.",
            hint="Step finishes it, Back goes to its start.",
        )
