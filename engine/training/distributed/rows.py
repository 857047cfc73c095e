"""A rank's rows of every batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ...system.errors import LabError
from ..figures.metrics import ACCURACY
from ..objectives.batches import samples_in
from ..objectives.code_data import CodeData
from ..objectives.code_objective import CodeObjective
from ..objectives.guessing import Guess
from ..objectives.objective import Objective, Outcome
from ..objectives.seen_batches import SeenBatches
from .ranks import Ranks


class Rows(NamedTuple):
    """Rows r, r + N, r + 2 N, ... of a batch for rank r of N, as DistributedSampler deals them out:
    `share` is how large a part they are of the batch. A rank that would have none gets the first
    row, with share 0. `seed` is that of what the model draws on them."""

    batch: Any
    share: float
    seed: int


class RowsObjective:
    """The objective of one rank: of each batch of another objective, the rank's rows. The loss must
    be a mean over the rows, or a sum of such means. Data that can loads no rows of other ranks (see
    `objectives/rank_rows`). A prediction on rows is their whole outcome:
    DistributedDataParallel wants to see the loss at the end of its forward pass.

    What the model draws (dropout) comes from a seed for the step and the rank, so that a run goes
    on alike with nothing but the state of rank 0. Validation is not divided: each rank has the same
    model and gets the same figures. Metrics that are objects count the rows of their own rank.
    """

    def __init__(self, whole: Objective, ranks: Ranks, model: nn.Module, seed: int) -> None:
        self._whole, self._ranks, self._model, self._seed = whole, ranks, model, seed
        self.metrics, self.generators = whole.metrics, whole.generators
        self.validation_samples, self.runs_code = whole.validation_samples, whole.runs_code
        self._divided: CodeData | None = None
        data = whole.loaded if isinstance(whole, CodeObjective) else None
        if isinstance(data, CodeData) and data.divide(ranks.rank, ranks.size):
            self._divided = data

    @property
    def guess(self) -> Guess:
        return self._whole.guess

    @property
    def batches_per_epoch(self) -> int | None:
        return self._whole.batches_per_epoch

    @property
    def repeats(self) -> bool:
        return self._whole.repeats

    @property
    def draws_by_code(self) -> bool:
        return self._whole.draws_by_code

    def to(self, device: torch.device) -> None:
        self._whole.to(device)

    def batches(self, epoch: int, first: int, seen: SeenBatches | None = None) -> Iterator[Rows]:
        if self._divided is not None:
            parts = self._divided.parts(first)
            return (
                Rows(part.batch, part.rows / part.samples, self._seed_at(epoch, n))
                for n, part in enumerate(parts, first)
            )
        batches = self._whole.batches(epoch, first, seen)
        return (self._rows(batch, (epoch, n)) for n, batch in enumerate(batches, first))

    def close(self) -> None:
        self._whole.close()

    def validation_batches(self) -> Iterator[Any]:
        self._ranks.agree()
        self._ranks.send_from_first(self._model.buffers())  # BatchNorm's means are of own rows
        return self._whole.validation_batches()

    def predict(self, batch: Any) -> Any:
        if not isinstance(batch, Rows):
            return self._whole.predict(batch)
        if not torch.is_grad_enabled():
            return self._outcome(batch)
        found: list[Outcome] = []

        def compute() -> Tensor:
            found.append(self._outcome(batch))
            return found[0].loss

        loss = self._ranks.forward(compute)
        return found[0]._replace(loss=loss)

    def judged(self, batch: Any, prediction: Any) -> Outcome:
        return prediction if isinstance(batch, Rows) else self._whole.judged(batch, prediction)

    def outcome(self, batch: Any) -> Outcome:
        return self.judged(batch, self.predict(batch))

    def _outcome(self, batch: Rows) -> Outcome:
        with self._drawing(batch):
            outcome = self._whole.outcome(batch.batch)
        figures = dict(outcome.figures)
        if outcome.scores is not None:
            scores, labels = outcome.scores
            figures[ACCURACY] = (scores.detach().argmax(1) == labels).float().mean()
        samples = outcome.samples if batch.share else 0
        return outcome._replace(samples=samples, scores=None, figures=figures)

    def _rows(self, batch: Any, place: tuple[int, int]) -> Rows:
        ranks, samples = self._ranks, samples_in(batch)
        rows = list(range(ranks.rank, samples, ranks.size))
        taken = _taken(batch, rows or [0], samples)
        return Rows(taken, len(rows) / samples, self._seed_at(*place))

    def _seed_at(self, epoch: int, number: int) -> int:
        return hash((self._seed, epoch, number, self._ranks.rank)) & (2**63 - 1)

    @contextmanager
    def _drawing(self, rows: Rows) -> Iterator[None]:
        device = self._ranks.device
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            torch.manual_seed(rows.seed)
            yield


def _taken(value: Any, rows: list[int], samples: int) -> Any:
    """These rows of the tensors and lists that have one entry for each sample. Raises LabError for
    a batch of a type that is not known."""
    if isinstance(value, Tensor):
        whole = not value.ndim or len(value) != samples
        return value if whole else value[torch.tensor(rows, device=value.device)]
    if isinstance(value, Mapping):
        return {key: _taken(item, rows, samples) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields") and not hasattr(value, "to"):
        return type(value)(*(_taken(item, rows, samples) for item in value))
    if isinstance(value, tuple | list) and not hasattr(value, "to"):  # no packed sequence
        is_column = len(value) == samples and not any(isinstance(item, Tensor) for item in value)
        taken = [value[row] for row in rows] if is_column else [
            _taken(item, rows, samples) for item in value
        ]  # fmt: skip
        return type(value)(taken)
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise LabError(
        f"The rows of a {type(value).__name__} cannot be divided between processes.",
        hint="Give batches of tensors, in tuples, lists or dicts; or train in one process.",
    )
