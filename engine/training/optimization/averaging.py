"""Averaged weights of a run, by torch.optim.swa_utils."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from ...project.document import Averaging
from ...system.errors import LabError
from ...system.private_torch import BatchNorm

_EPOCH = "last_epoch"


class AveragedWeights:
    """The running average of a model's weights: after each step (EMA), or after each epoch (SWA).

    Raises LabError for a model that cannot be copied.
    """

    def __init__(self, averaging: Averaging, model: nn.Module) -> None:
        self._averaging, self._model = averaging, model
        average = get_ema_multi_avg_fn(averaging.decay) if averaging.kind == "EMA" else None
        try:
            self._averaged = AveragedModel(model, multi_avg_fn=average)
        except Exception as error:  # a user's module may refuse in any way
            raise LabError(
                f"The model cannot be copied to average its weights: {error}",
                hint="Set averaging to none.",
            ) from error
        self._averaged.requires_grad_(False)
        self._last_epoch = -1

    @property
    def has_begun(self) -> bool:
        return bool(self._averaged.n_averaged)

    @property
    def weights(self) -> dict[str, Tensor]:
        """The averaged state_dict, in live tensors."""
        return self._averaged.module.state_dict()

    def after_step(self, epoch: int) -> None:
        """Take in the weights after an optimizer step of an epoch (0-based)."""
        if self._averaging.kind == "EMA" and epoch >= self._averaging.start:
            self._averaged.update_parameters(self._model)

    def after_epoch(self, epoch: int) -> bool:
        """Take in the weights after an epoch, once. Returns whether the statistics of BatchNorm are
        to be computed anew (see `norms_reset`)."""
        if self._averaging.kind != "SWA" or epoch < self._averaging.start:
            return False
        if epoch > self._last_epoch:
            self._averaged.update_parameters(self._model)
            self._last_epoch = epoch
        return any(isinstance(module, BatchNorm) for module in self._averaged.modules())

    @contextmanager
    def norms_reset(self) -> Iterator[None]:
        """As torch's update_bn begins and ends: in this context, batches that the model sees
        `in_use` give the averaged weights the statistics of BatchNorm, from the first on."""
        norms = [module for module in self._model.modules() if isinstance(module, BatchNorm)]
        momenta = [module.momentum for module in norms]
        with self.in_use():
            for module in norms:
                module.reset_running_stats()
        try:
            for module in norms:
                module.momentum = None
            yield
        finally:
            for module, momentum in zip(norms, momenta, strict=True):
                module.momentum = momentum

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """The model has the averaged weights and buffers in this context."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def _swap(self) -> None:
        pairs = zip(_tensors(self._model), _tensors(self._averaged.module), strict=True)
        for live, averaged in pairs:
            live.data, averaged.data = averaged.data, live.data

    def to(self, device: torch.device) -> None:
        self._averaged.to(device)

    def state(self) -> dict[str, Tensor]:
        return {**self._averaged.state_dict(), _EPOCH: torch.tensor(self._last_epoch)}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Raises LabError for a state of another model."""
        own = dict(state)
        try:
            self._last_epoch = int(own.pop(_EPOCH))
            self._averaged.load_state_dict(own)
        except (KeyError, RuntimeError, ValueError) as error:
            raise LabError(f"The averaged weights do not fit the model: {error}") from error


def _tensors(module: nn.Module) -> Iterator[Tensor]:
    yield from module.parameters()
    yield from module.buffers()
