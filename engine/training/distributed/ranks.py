"""What the ranks of one run share at each step: gradients, losses and figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from math import isfinite
from typing import Protocol

import msgspec
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from ...project.document import TrainingSetup
from ...project.step_order import PHASES
from ...system.errors import LabError
from ..figures.metrics import Diverged
from ..objectives.objective import FIGURE_MEANS, Outcome

PATIENCE = timedelta(days=7)
"""A rank may wait as long for another: for a run that is paused, or one slow batch."""
_GO, _END, _ADJUST = 1, 2, 3


class Led(Protocol):
    """What each rank trains, and what it does at the word of rank 0."""

    model: nn.Module
    setup: TrainingSetup

    def adjust(self, setup: TrainingSetup) -> None:
        """Take settings."""
        ...


class Step(nn.Module):
    """Runs a function as the forward pass of a model: DistributedDataParallel sees all of it,
    whatever it calls."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, compute: Callable[[], Tensor]) -> Tensor:
        return compute()


class RanksEnded(Exception):
    """Rank 0 has ended the run."""


class RankLost(LabError):
    """Another rank has ended in the middle of the run."""


def check_setup(setup: TrainingSetup) -> None:
    """Raise LabError if several processes cannot train with this set-up."""
    if setup.order != PHASES:
        raise LabError(
            "The phases of a step are in another order: several processes cannot train so.",
            hint="Train in one process, or choose the usual order.",
        )


def check_order(repeats: bool) -> None:
    """Raise LabError unless each process gets the same batches in the same order."""
    if not repeats:
        raise LabError(
            "Each process takes its rows of the same batches: they must come in order.",
            hint="Turn in_order on.",
        )


class Ranks:
    """This process's place among those that train one model together: each computes the gradients
    of its rows of every batch, which DistributedDataParallel averages.

    `rank` of `size`, from 0; `device` is this rank's own. Before ranks exchange anything, all wait
    in `agree` for the word of rank 0: there it may pause, end the run for all, or give settings.
    `is_last`: the next `forward` is of the last batch whose gradients the step adds up.
    """

    def __init__(self, rank: int, size: int, device: torch.device) -> None:
        self.rank, self.size, self.device = rank, size, device
        self.is_lost = False
        self.is_last = True
        self._wrapped: DistributedDataParallel | None = None
        self._led: Led | None = None

    @staticmethod
    def join(rank: int, size: int, device: torch.device) -> Ranks:
        """Wait for the others, whose addresses are in the environment that torchrun sets."""
        backend = "gloo"
        if device.type == "cuda":
            torch.cuda.set_device(device)
            backend = "cpu:gloo,cuda:nccl"
        dist.init_process_group(backend, rank=rank, world_size=size, timeout=PATIENCE)
        return Ranks(rank, size, device)

    def begin(self, led: Led) -> None:
        """Train its model from now on: every rank begins with the weights of rank 0. Raises
        LabError for what several processes cannot do."""
        model = led.model
        check_setup(led.setup)
        self._led = led
        if self.device.type == "cuda" and any(getattr(m, "sparse", False) for m in model.modules()):
            raise LabError(
                "NCCL cannot add up the sparse gradients of an embedding.",
                hint="Set sparse=False in the embedding, or train on the CPU or in one process.",
            )
        if self.device.type == "cpu" and any(
            isinstance(m, nn.SyncBatchNorm) for m in model.modules()
        ):
            raise LabError(
                "torch has SyncBatchNorm for GPUs only.",
                hint="Take BatchNorm on the CPU: each process then normalises by its own rows.",
            )
        with self._exchanging():
            try:
                self._wrapped = DistributedDataParallel(Step(model), find_unused_parameters=True)
            except (RuntimeError, ValueError) as error:
                if _is_of_exchange(error):
                    raise
                raise LabError(
                    f"Several processes cannot train this model. torch says: {error}",
                    hint="Train in one process.",
                ) from error

    # -- the word of rank 0 ----------------------------------------------------------------------

    def agree(self) -> None:
        """Wait until rank 0 gets here too. Raises RanksEnded if it has ended the run, RankLost."""
        if self.rank == 0:
            self._say(_GO)
            return
        while (word := self._hear()) != _GO:
            if word == _END:
                raise RanksEnded

    def give(self, setup: TrainingSetup) -> None:
        """In rank 0, between two steps: let the others take settings."""
        if self.rank == 0:
            self._say(_ADJUST)
            self.from_first(msgspec.json.encode(setup))

    def from_first(self, told: bytes) -> bytes:
        """The bytes that rank 0 gives here, in every rank; what other ranks give is ignored."""
        size = torch.tensor(len(told))
        with self._exchanging():
            dist.broadcast(size, 0)
            data = torch.zeros(int(size), dtype=torch.uint8)
            if self.rank == 0 and told:
                data = torch.frombuffer(bytearray(told), dtype=torch.uint8)
            if len(data):
                dist.broadcast(data, 0)
        return data.numpy().tobytes()

    def end(self) -> None:
        """In rank 0: end the run for all. In another: wait for that."""
        if self.rank == 0:
            self._say(_END)
        else:
            while self._hear() != _END:
                pass
        dist.destroy_process_group()

    def _say(self, word: int) -> int:
        """Broadcast the word of rank 0, and return it; the `word` of another rank is ignored."""
        said = torch.tensor(word)
        with self._exchanging():
            dist.broadcast(said, 0)
        return int(said)

    def _hear(self) -> int:
        """Do what rank 0's next word asks for, and return the word."""
        word = self._say(0)
        assert self._led is not None
        if word == _ADJUST:
            self._led.adjust(msgspec.json.decode(self.from_first(b""), type=TrainingSetup))
        return word

    # -- a step ----------------------------------------------------------------------------------

    def forward(self, compute: Callable[[], Tensor]) -> Tensor:
        """The loss that `compute` gives. The backward pass of the step's last batch averages the
        gradients over the ranks. `compute` may call the model or any part of it."""
        assert self._wrapped is not None
        with self._exchanging(), nullcontext() if self.is_last else self._wrapped.no_sync():
            return self._wrapped(compute)

    def backward(self, loss: Tensor) -> None:
        with self._exchanging():
            loss.backward()

    def share(self, step: int, outcomes: Sequence[Outcome]) -> Outcome:
        """What the whole batches gave, from what this rank's rows of them gave: means over the
        samples. Raises Diverged in all ranks if the loss is not finite in one, and RankLost."""
        names = list(dict.fromkeys(name for outcome in outcomes for name in outcome.figures))
        counts = sum(outcome.samples for outcome in outcomes)
        loss = sum(float(o.loss.detach()) * o.samples for o in outcomes if o.samples)
        sums = torch.tensor(
            [counts, loss, *(_sum(outcomes, name) for name in names)], dtype=torch.float64
        )
        with self._exchanging():
            dist.all_reduce(sums)
        samples, *totals = sums.tolist()
        loss, *means = (total / samples for total in totals)
        if not isfinite(loss):
            raise Diverged(step, loss)
        figures = {
            name: _back(name, torch.tensor(mean, device=self.device))
            for name, mean in zip(names, means, strict=True)
        }
        return Outcome(torch.tensor(loss, device=self.device), int(samples), figures=figures)

    def send_from_first(self, tensors: Iterable[Tensor]) -> None:
        """Give every rank the values that these tensors have in rank 0."""
        for tensor in tensors:
            dense = tensor.contiguous()
            with self._exchanging():
                dist.broadcast(dense, 0)
            if dense is not tensor:
                tensor.copy_(dense)

    @contextmanager
    def _exchanging(self) -> Iterator[None]:
        """In this context another rank's end is told as RankLost."""
        try:
            yield
        except RuntimeError as error:
            if not _is_of_exchange(error):
                raise
            self.is_lost = True
            raise RankLost("Another process of the run has ended.") from error


def _is_of_exchange(error: Exception) -> bool:
    """Whether it is not of the user's code, but of what ranks exchange. Gloo has no type of error
    of its own."""
    return isinstance(error, dist.DistError) or "/gloo/" in str(error)


def _sum(outcomes: Sequence[Outcome], name: str) -> float:
    """The sum of a figure over this rank's samples."""
    into = FIGURE_MEANS[name][0] if name in FIGURE_MEANS else Tensor.float
    return sum(
        float(into(outcome.figures[name].float())) * outcome.samples
        for outcome in outcomes
        if outcome.samples and name in outcome.figures
    )


def _back(name: str, mean: Tensor) -> Tensor:
    return FIGURE_MEANS[name][1](mean) if name in FIGURE_MEANS else mean
