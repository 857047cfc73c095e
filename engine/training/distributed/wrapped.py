"""The model of a run in torch's wrappers: DistributedDataParallel, or FSDP2's fully_shard."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any, Protocol

import torch
import torch.distributed as dist
from msgspec.structs import replace
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from ...errors import LabError
from ...project.document import TrainingSetup
from ..checkpoints.checkpoint_fields import Checkpoint

_WHOLE = ("optim.Adafactor", "optim.Muon")
"""Optimizers that look at whole matrices."""


class Wrapped(Protocol):
    """A model whose gradients are averaged over the ranks. `is_sharded`: each rank has a part of
    every parameter, of its gradient and of its state in the optimizer."""

    is_sharded: bool

    def forward(self, compute: Callable[[], Tensor], is_last: bool) -> Tensor:
        """The loss that `compute` gives; its backward pass averages what has been added up if it is
        of the step's last batch."""
        ...

    def gathered(self) -> Any:
        """In this context the model has whole parameters, for what calls it or a part of it."""
        ...

    def parted(self, saved: Checkpoint) -> Checkpoint:
        """A checkpoint of whole tensors, as this rank's model and optimizer take it."""
        ...


class Step(nn.Module):
    """Runs a function as the forward pass of a model: the wrapper thereby sees all of it, whatever
    it calls."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, compute: Callable[[], Tensor]) -> Tensor:
        return compute()


class Replicated:
    """Each rank has the whole model; all begin with the weights of rank 0. Raises RuntimeError and
    ValueError for a model that torch refuses."""

    is_sharded = False

    def __init__(self, model: nn.Module) -> None:
        self._step = DistributedDataParallel(Step(model), find_unused_parameters=True)

    def forward(self, compute: Callable[[], Tensor], is_last: bool) -> Tensor:
        with nullcontext() if is_last else self._step.no_sync():
            return self._step(compute)

    def gathered(self) -> Any:
        return nullcontext()

    def parted(self, saved: Checkpoint) -> Checkpoint:
        return saved


class Sharded:
    """Each rank has a part of every parameter between two steps, and always of the gradients and
    of the optimizer's state; a step gathers the parameters, since it may call any part of the model
    in any way. The parameters of the model are DTensors from now on."""

    is_sharded = True

    def __init__(self, model: nn.Module, device: torch.device) -> None:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        for tensor in model.state_dict().values():
            if isinstance(tensor, Tensor):
                whole = tensor.contiguous()  # NCCL takes no other
                dist.broadcast(whole, 0)
                tensor.copy_(whole)
        self._mesh = init_device_mesh(device.type, (dist.get_world_size(),))
        self._step = Step(model)
        self._shards = fully_shard(self._step, mesh=self._mesh)

    def forward(self, compute: Callable[[], Tensor], is_last: bool) -> Tensor:
        self._shards.set_requires_gradient_sync(is_last)
        return self._step(compute)

    @contextmanager
    def gathered(self) -> Iterator[None]:
        self._shards.unshard()
        try:
            yield
        finally:
            self._shards.reshard()

    def parted(self, saved: Checkpoint) -> Checkpoint:
        model = {
            name: self._part(tensor) if name in self._names else tensor
            for name, tensor in saved.model.items()
        }
        state = {
            index: {name: self._part(entry) for name, entry in entries.items()}
            for index, entries in saved.optimizer["state"].items()
        }
        return replace(saved, model=model, optimizer={**saved.optimizer, "state": state})

    @property
    def _names(self) -> Mapping[str, nn.Parameter]:
        return dict(self._step.model.named_parameters(remove_duplicate=False))

    def _part(self, entry: Any) -> Any:
        from torch.distributed.tensor import Shard, distribute_tensor

        if not isinstance(entry, Tensor) or not entry.ndim:
            return entry
        return distribute_tensor(entry, self._mesh, [Shard(0)], src_data_rank=None)


def check_sharding(setup: TrainingSetup, model: nn.Module) -> None:
    """Raise LabError if FSDP2 cannot train this."""
    reason = ""
    if setup.optimizer == "optim.LBFGS":
        reason = "LBFGS looks at all gradients as one vector"
    elif setup.optimizer in _WHOLE:
        reason = f"{setup.optimizer.removeprefix('optim.')} needs whole matrices"
    elif setup.averaging.kind != "none":
        reason = "Averaged weights need a copy of the model"
    elif setup.stopping.patience:
        reason = "Early stopping keeps the whole weights of the best epoch"
    elif setup.precision == "float16":
        reason = "The GradScaler of float16 looks at whole gradients"
    elif setup.compile:
        reason = "torch.compile here takes whole parameters"
    elif any(getattr(module, "sparse", False) for module in model.modules()):
        reason = "The gradients of an embedding with sparse=True cannot be divided"
    elif any(not parameter.ndim for parameter in model.parameters()):
        reason = "A parameter that is a single number cannot be divided"
    if reason:
        raise LabError(
            f"{reason}: FSDP2 cannot train this.", hint="Set sharding to none, or change this."
        )
