"""All checks of one subject, one after the other."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, get_args

import torch
from torch import nn

from ...project.document import TrainingSetup
from ...protocol import Check, CheckKind, RateCurve
from ...system.errors import LabError
from ...system.user_files import is_user_file
from ...tensors.error_help import explain_error
from ..objectives.batches import moved
from ..objectives.objective import Objective
from .data_checks import inputs, labels, leaks
from .losses_seen import LossesSeen, LossSeen
from .model_checks import first_loss, modes, one_batch, unreached
from .rates import rates
from .untouched import untouched

BATCHES = 20
"""The most batches of the training part that are looked at."""
KINDS: tuple[CheckKind, ...] = get_args(CheckKind)
Found = Check | tuple[Check, RateCurve] | None


class Checking:
    """The checks of a model with its objective and set-up. Raises LabError for data without a
    batch."""

    def __init__(self, model: nn.Module, objective: Objective, setup: TrainingSetup) -> None:
        self._model, self._objective, self._setup = model, objective, setup
        device = next((p.device for p in model.parameters()), torch.device("cpu"))
        objective.to(device)
        self._batches = [moved(b, device) for b in islice(objective.batches(0, 0), BATCHES)]
        if not self._batches:
            raise LabError("The data has no batch.", hint="Give data with samples.")
        self._losses: list[float] = []
        self._calls: list[LossSeen] = []
        self._refusal = ""
        self._failure: Exception | None = None  # what the code raised before its loss was known

    def run(self) -> Iterator[tuple[Check, RateCurve] | None]:
        """The check of each of KINDS, in their order, with the curve of rates; None between. The
        model is as before after each. A check that the model's code ends is told as its error."""
        first = self._batches[0]
        of_kind: dict[CheckKind, Callable[[], Iterator[Found]]] = {
            "inputs": lambda: iter([inputs(self._batches)]),
            "leaks": lambda: leaks(self._objective),
            "labels": self._labels,
            "first_loss": self._first_loss,
            "unreached": lambda: iter([unreached(self._model, self._objective, first)]),
            "modes": lambda: iter([modes(self._model, self._objective, first)]),
            "one_batch": lambda: one_batch(self._model, self._objective, self._setup, first),
            "rates": lambda: rates(self._model, self._objective, self._setup),
        }
        for kind in KINDS:
            try:
                for found in of_kind[kind]():
                    yield (found, RateCurve()) if isinstance(found, Check) else found
            except Exception as error:  # the user's code may raise anything
                text = f"This cannot be checked: {type(error).__name__}: {error}"
                hint = error.hint if isinstance(error, LabError) else explain_error(error)
                yield Check(kind, "error", text, _where(error), hint), RateCurve()

    def _labels(self) -> Iterator[Found]:
        with untouched(self._model), torch.no_grad():
            for batch in self._batches:
                try:
                    self._see(batch)
                except Exception as error:
                    is_label = isinstance(error, IndexError | RuntimeError) and self._calls
                    if not is_label:
                        self._failure = error
                        raise
                    self._refusal = str(error)
                yield None
        yield labels(self._calls)

    def _see(self, batch: Any) -> None:
        with LossesSeen() as seen:
            try:
                self._losses.append(float(self._objective.outcome(batch).loss.detach()))
            finally:
                self._calls += seen.calls

    def _first_loss(self) -> Iterator[Found]:
        if self._failure is not None:
            raise self._failure
        if self._refusal:
            raise LabError(f"The loss refuses a target: {self._refusal}.", hint="See labels.")
        yield first_loss(sum(self._losses) / len(self._losses), self._calls)


def _where(error: Exception) -> str:
    """The line of the user's code that raised; "" if none did."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f"{f.filename}:{f.lineno}: {f.line}" for f in frames if is_user_file(f.filename)]
    return lines[-1] if lines else ""
