"""What the ranks of one run share at each step: losses, figures and gradients."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from math import isfinite

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors

from ...errors import LabError
from ...project.document import TrainingSetup
from ...project.steps.order import PHASES
from ..figures.metrics import Diverged
from ..objectives.objective import FIGURE_MEANS, Outcome

PATIENCE = timedelta(days=7)
"""A rank may wait as long for another: for a run that is paused, or one slow batch."""


class RanksEnded(Exception):
    """Rank 0 has ended the run."""


class RankLost(LabError):
    """Another rank has ended in the middle of the run."""


def check_setup(setup: TrainingSetup) -> None:
    """Raise LabError if several processes cannot train with this set-up."""
    reason = ""
    if setup.optimizer == "optim.LBFGS":
        reason = "LBFGS asks for the gradients several times a step"
    elif setup.order != PHASES:
        reason = "The phases of a step are in another order"
    if reason:
        raise LabError(
            f"{reason}: several processes cannot train so.",
            hint="Train in one process, or choose the usual order and another optimizer.",
        )


class Ranks:
    """This process's place among those that train one model together. Each has the whole model, and
    computes the gradients of its rows of every batch; `share` gives all the same sum.

    `rank` of `size`, from 0; `device` is this rank's own. Unlike DistributedDataParallel this adds
    up after the backward pass, not during it: then it holds whatever calls the module, a part of
    it or a plain function, and for a rank that has no row of the last batch.
    """

    def __init__(self, rank: int, size: int, device: torch.device) -> None:
        self.rank, self.size, self.device = rank, size, device
        self.is_lost = False
        self._parameters: Sequence[nn.Parameter] = ()

    @staticmethod
    def join(rank: int, size: int, device: torch.device) -> Ranks:
        """Wait for the others, whose addresses are in the environment that torchrun sets."""
        if device.type == "cuda":
            torch.cuda.set_device(device)
        backend = "nccl" if device.type == "cuda" else "gloo"
        dist.init_process_group(backend, rank=rank, world_size=size, timeout=PATIENCE)
        return Ranks(rank, size, device)

    def begin(self, model: nn.Module, setup: TrainingSetup) -> None:
        """Train this model from now on: every rank begins with the weights of rank 0. Raises as
        `check_setup` does."""
        check_setup(setup)
        self._parameters = list(model.parameters())
        self.send_from_first(v for v in model.state_dict().values() if isinstance(v, Tensor))

    def send_from_first(self, tensors: Iterable[Tensor]) -> None:
        """Give every rank the values that these tensors have in rank 0."""
        for tensor in tensors:
            dense = tensor.contiguous()
            self._together(lambda dense=dense: dist.broadcast(dense, 0))
            if dense is not tensor:
                tensor.copy_(dense)

    def share(self, step: int, outcomes: Sequence[Outcome]) -> Outcome:
        """Replace the gradients by their sums over the ranks. Returns what the whole batches gave,
        from what this rank's rows of them gave: means over the samples.

        Raises Diverged in all ranks if the loss is not finite in one, RanksEnded if rank 0 has left
        the run, and RankLost.
        """
        samples = sum(outcome.samples for outcome in outcomes)
        loss = sum(float(o.loss.detach()) * o.samples for o in outcomes if o.samples)
        here = [float(p.grad is not None) for p in self._parameters]
        head = self._head(0.0, loss, float(samples), here)
        if head[0]:
            raise RanksEnded
        loss, samples, counts = head[1] / head[2], head[2], head[3:]
        if not isfinite(loss):
            raise Diverged(step, loss)
        figures = _sums(outcomes, samples, self.device)
        self._add_up(counts, list(figures.values()))
        back = {name: FIGURE_MEANS[name][1](v) if name in FIGURE_MEANS else v
                for name, v in figures.items()}  # fmt: skip
        return Outcome(torch.tensor(loss, device=self.device), int(samples), figures=back)

    def end(self) -> None:
        """Tell the others that this rank leaves the run; rank 0 thereby ends it for all."""
        self._head(1.0, 0.0, 0.0, [0.0] * len(self._parameters))
        dist.destroy_process_group()

    def _head(self, ended: float, loss: float, samples: float, here: list[float]) -> list[float]:
        """Sums over the ranks: who has ended, loss times samples, samples, and of each parameter
        how many ranks have a gradient."""
        head = torch.tensor([ended, loss, samples, *here], dtype=torch.float64, device=self.device)
        self._together(lambda: dist.all_reduce(head))
        return head.tolist()

    def _add_up(self, counts: list[float], figures: list[Tensor]) -> None:
        """Add up gradients and figures, those of one dtype in one go. A parameter without a
        gradient in any rank stays without."""
        tensors = list(figures)
        for parameter, count in zip(self._parameters, counts, strict=True):
            if count and parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            if parameter.grad is not None:
                if parameter.grad.is_sparse:
                    raise LabError(
                        "Sparse gradients cannot be shared between processes.",
                        hint="Set sparse=False in the embedding, or train in one process.",
                    )
                tensors.append(parameter.grad)
        for dtype in dict.fromkeys(tensor.dtype for tensor in tensors):
            same = [tensor for tensor in tensors if tensor.dtype == dtype]
            flat = _flatten_dense_tensors(same)
            self._together(lambda flat=flat: dist.all_reduce(flat))
            for tensor, total in zip(same, _unflatten_dense_tensors(flat, same), strict=True):
                tensor.copy_(total)

    def _together(self, exchange) -> None:
        try:
            exchange()
        except RuntimeError as error:  # the others have closed their ends
            self.is_lost = True
            raise RankLost("Another process of the run has ended.") from error


def _sums(outcomes: Sequence[Outcome], samples: float, device: torch.device) -> dict[str, Tensor]:
    """This rank's part of each figure's mean over all samples."""
    names = dict.fromkeys(name for outcome in outcomes for name in outcome.figures)
    found = {}
    for name in names:
        into = FIGURE_MEANS[name][0] if name in FIGURE_MEANS else Tensor.float
        parts = [
            into(outcome.figures[name].float()) * (outcome.samples / samples)
            for outcome in outcomes
            if outcome.samples and name in outcome.figures
        ]
        found[name] = torch.stack(parts).sum(0) if parts else torch.zeros((), device=device)
    return found
