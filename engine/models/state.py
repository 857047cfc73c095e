"""The state that model commands share: the live model and a forward pass of it."""

from __future__ import annotations

from dataclasses import dataclass

from ..project.document import Model
from ..system.errors import LabError
from .forward import ForwardPass
from .live import LiveModel


@dataclass
class ModelState:
    """`live` is None before the first command that needs weights. `forward` is the last pass, also
    after its end."""

    live: LiveModel | None = None
    forward: ForwardPass | None = None

    def live_model(self, model: Model, seed: int) -> LiveModel:
        """The live model, rebuilt after `model`. Raises as `LiveModel.sync` does."""
        if self.live is None:
            self.live = LiveModel(model, seed)
        else:
            self.live.sync(model, seed)
        return self.live

    def require_forward(self) -> ForwardPass:
        """The forward pass. Raises LabError if there is none."""
        if self.forward is None:
            raise LabError(
                "No forward pass is under way.", hint="Start one with a batch of the data."
            )
        return self.forward
