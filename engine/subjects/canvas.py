"""`canvas`, the object through which a cell's code reaches the model on the canvas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor, fx, nn

from ..datasets.load import load_dataset
from ..models.check import require_runnable
from ..models.state import ModelState
from ..project.document import Model, TrainingSetup
from ..project.edits import loss_call
from ..protocol import WeightsSnapshot
from ..system.errors import LabError
from ..training.components.class_weights import BALANCED
from ..training.components.losses import make_loss

_Print = list[tuple[int, int, str]]
"""Of each weight: its identity, its version, and its norm, which also tells writes to `.data`."""


@dataclass
class Canvas:
    """The canvas's model and training setup, as the window told them last. `sheltered()` is a
    context in which the lab itself works while a cell runs."""

    models: ModelState
    sheltered: Callable[[], AbstractContextManager[object]]
    model: Model = field(default_factory=Model)
    training: TrainingSetup = field(default_factory=TrainingSetup)
    _was_taken: bool = False
    _before: tuple[nn.Module, _Print] | None = None

    def show(self, model: Model, training: TrainingSetup) -> None:
        self.model, self.training = model, training

    def take(self) -> fx.GraphModule:
        """The live module, for a cell. Raises LabError if the canvas has no model that can be
        made."""
        if not self.model.blocks:
            raise LabError(
                "The canvas has no model yet.",
                hint="Drag blocks from the palette of Model, or begin with a template.",
            )
        with self.sheltered():
            try:
                live = self.models.live_model(self.model, self.training.seed)
            except Exception:
                require_runnable(self.model, self.training)  # names the block
                raise
            self._was_taken = True
            if self._before is None or self._before[0] is not live.module:
                self._before = live.module, _print_of(live.module)
        return live.module

    @property
    def taken(self) -> nn.Module | None:
        """The live module, once a cell has taken it."""
        live = self.models.live
        return live.module if self._was_taken and live is not None else None

    def named(self) -> dict[str, nn.Module]:
        """The module that cells reach through `canvas`, by its expression."""
        module = self.taken
        return {} if module is None else {"canvas.model": module}

    @contextmanager
    def watched(self) -> Iterator[None]:
        """A context around a cell: in it, `new_weights` tells whether the cell has changed weights
        of the live model. Before a cell has taken the model, no cell can change it."""
        module = self.taken
        self._before = None if module is None else (module, _print_of(module))
        try:
            yield
        finally:
            self._before = None

    def new_weights(self) -> WeightsSnapshot | None:
        """Tells that the cell has changed weights; None if it has not."""
        if self._before is None:
            return None
        module, before = self._before
        if _print_of(module) == before:
            return None
        count = sum(parameter.numel() for parameter in module.parameters())
        origin = "The console has changed the canvas's weights."
        return WeightsSnapshot(origin=origin, parameters=count, learnt=True)


class UsersCanvas:
    """`canvas.model` is the canvas's module with its live weights: those that Train trains and
    Export writes. `canvas.batch()` and `canvas.loss(output, target)` are Train's."""

    def __init__(self, canvas: Canvas) -> None:
        self._canvas = canvas

    @property
    def model(self) -> fx.GraphModule:
        """The module. An edit of the canvas makes a new one; the blocks that were not edited keep
        their weights. Raises LabError if the canvas has no model."""
        return self._canvas.take()

    def batch(self, number: int = 0) -> tuple[Tensor, Tensor]:
        """Inputs (B, ...) and targets (B,): batch `number` of Train's first epoch, on the model's
        device. Raises IndexError after the last one."""
        canvas = self._canvas
        with canvas.sheltered():
            live, setup = canvas.models.live, canvas.training
            if given := setup.data.loading.given:
                raise LabError(
                    f"Train's batches come by a DataLoader with a {next(iter(given))} of yours.",
                    hint="Iterate a DataLoader with it here, too.",
                )
            device = torch.device("cpu") if live is None else live.device
            x, y = load_dataset(setup.data).train_batch(number, setup.batch_size, setup.seed)
            return x.to(device), y.to(device)

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """The loss, a scalar: that of the canvas's loss block, else the one set under Train."""
        canvas = self._canvas
        kind, params = loss_call(canvas.model, canvas.training)
        is_balanced = BALANCED in params.values()
        dataset = load_dataset(canvas.training.data) if is_balanced else None
        return make_loss(kind, params, dataset).to(output.device)(output, target)

    def __repr__(self) -> str:
        return "<canvas: canvas.model, canvas.batch() and canvas.loss(output, target)>"


def _print_of(module: nn.Module) -> _Print:
    tensors = module.state_dict(keep_vars=True).values()
    return [(id(t), t._version, repr(t.detach().float().norm().item())) for t in tensors]
