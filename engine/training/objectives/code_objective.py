"""Training with the user's own step."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...project.document import Loading
from ...recording.kernel_asserts import is_gpu
from ...system.errors import LabError
from ...system.user_files import keep_source, own_name
from .batches import samples_in
from .catalogue_data import CatalogueData
from .code_data import CodeData
from .epoch_metrics import EpochMetrics, is_metric
from .guessing import Guess
from .labels_seen import LabelsSeen
from .loaders import NOTHING_GIVEN, Given
from .objective import Outcome
from .seen_batches import SeenBatches

STEP_FILE = "<step>"
"""The name of the step's source in tracebacks, if no other text has it."""
LOSS = "loss"
_SHAPE = "def step(batch): ... returns the loss, or a dict of figures with “loss” among them."

Step = Callable[[Any], Any]
Logging = AbstractContextManager[Mapping[str, Tensor | float]]


class CodeObjective:
    """A step over the batches of `data`: those of a set-up or of code, or what CodeData makes
    batches of, with the arguments that it takes besides.

    `step(batch)` runs the model and returns the loss, a scalar with a graph, or a dict of numbers
    with the key `loss`. `logging()` is a context that gives the figures which code names in it by
    `lab.log`; they stand beside those that the step returns. `reached` are the values that the step
    can reach: those of them that are metrics may be figures too. `source` is the Python of the
    step, "" for a function of the user's own. Raises LabError for data that has no batches.
    """

    def __init__(
        self,
        step: Step,
        data: object,
        validation: object | None = None,
        batch_size: int = 1,
        logging: Callable[[], Logging] = lambda: nullcontext({}),
        reached: Iterable[object] = (),
        loading: Loading | None = None,
        given: Given = NOTHING_GIVEN,
        source: str = "",
    ) -> None:
        self.metrics, self.runs_code = EpochMetrics(reached), True
        self._step, self._logging, self.source = step, logging, source
        self._labels: LabelsSeen | None = None  # on a GPU
        self.loaded = (
            data
            if isinstance(data, CatalogueData | CodeData)
            else CodeData(data, validation, batch_size, loading, given)
        )
        self.generators = self.loaded.generators
        self.validation_samples = self.loaded.validation_samples

    @property
    def guess(self) -> Guess:
        return self.loaded.guess

    @property
    def data(self) -> object:
        """What the batches are made of, if they are of code: see CodeData."""
        return self.of_code.data

    @property
    def validation(self) -> object | None:
        return self.of_code.validation

    @property
    def given(self) -> Given:
        return self.of_code.given

    @property
    def of_code(self) -> CodeData:
        """Raises TypeError if the data is that of a set-up."""
        if not isinstance(self.loaded, CodeData):
            raise TypeError("The data is that of the set-up.")
        return self.loaded

    @property
    def batches_per_epoch(self) -> int | None:
        return self.loaded.batches_per_epoch

    @property
    def repeats(self) -> bool:
        return self.loaded.repeats

    @property
    def draws_by_code(self) -> bool:
        return self.loaded.draws_by_code

    def to(self, device: torch.device) -> None:
        self.loaded.to(device)
        self._labels = LabelsSeen() if is_gpu(device) else None
        self.metrics.to(device)

    def batches(self, epoch: int, first: int, seen: SeenBatches | None = None) -> Iterator[Any]:
        return self.loaded.batches(epoch, first, seen)

    def validation_batches(self) -> Iterator[Any]:
        return self.loaded.validation_batches()

    def close(self) -> None:
        self.loaded.close()

    def predict(self, batch: Any) -> None:
        """The user's step makes the prediction and the loss in one."""

    def judged(self, batch: Any, prediction: None) -> Outcome:
        return self.outcome(batch)

    def outcome(self, batch: Any) -> Outcome:
        with self._logging() as logged:
            if self._labels is None:
                result = self._step(batch)
            else:
                with self._labels.checked(batch):
                    result = self._step(batch)
            self.metrics.take(result)
            outcome = outcome_of(result, samples_in(batch))
        if not logged:
            return outcome
        device = outcome.loss.device
        named = {name: _number(name, value, device) for name, value in logged.items()}
        return outcome._replace(figures={**named, **outcome.figures})


def outcome_of(result: object, samples: int) -> Outcome:
    """What a step returned, without metrics of the epoch. Raises LabError unless it is a loss, or
    figures with a loss."""
    figures = dict(result) if isinstance(result, dict | Mapping) else {LOSS: result}
    if LOSS not in figures:
        names = ", ".join(map(str, figures)) or "nothing"
        raise LabError(f"The step returned {names}, but no “loss”.", hint=_SHAPE)
    loss = figures.pop(LOSS)
    if not isinstance(loss, Tensor):
        raise LabError(f"The step's loss is of type {type(loss).__name__}.", hint=_SHAPE)
    if loss.numel() != 1:
        raise LabError(
            f"The step's loss has shape {tuple(loss.shape)}; it must be one number.",
            hint="Reduce it: loss.mean() or loss.sum().",
        )
    if torch.is_grad_enabled() and not loss.requires_grad:
        raise LabError(
            "The step's loss has no graph, so no gradient can be computed.",
            hint="Do not detach it, and compute it with gradients on.",
        )
    device = loss.device
    numbers = {
        str(name): _number(name, value, device)
        for name, value in figures.items()
        if not is_metric(value)
    }
    return Outcome(loss.reshape(()) if loss.ndim else loss, samples, None, numbers)


def _number(name: object, value: object, device: torch.device) -> Tensor:
    if isinstance(value, Tensor) and value.numel() == 1:
        if value.requires_grad:
            value = value.detach()
        return value if value.ndim == 0 and value.device == device else value.reshape(()).to(device)
    if isinstance(value, int | float):
        return torch.tensor(float(value), device=device)
    shown = str(tuple(value.shape)) if isinstance(value, Tensor) else type(value).__name__
    raise LabError(f"The figure “{name}” of the step is not a number: {shown}.", hint=_SHAPE)


def compile_step(source: str, module: nn.Module, variables: Mapping[str, Any]) -> Step:
    """The function `step` that the source defines. It sees `model`, `torch`, `nn` and `F`, and the
    variables around the subject. Raises LabError, with the line, if the source does not define
    it."""
    file = own_name(STEP_FILE, source)
    keep_source(file, source)
    namespace: dict[str, Any] = {"torch": torch, "nn": nn, "F": F, **variables, "model": module}
    namespace.pop("step", None)
    try:
        exec(compile(ast.parse(source, file), file, "exec"), namespace)
    except SyntaxError as error:
        raise LabError(f"Line {error.lineno} of the step: {error.msg}.", hint=_SHAPE) from error
    except Exception as error:  # user code may raise anything
        raise LabError(
            f"The step's source raised {type(error).__name__}: {error}.", hint=_SHAPE
        ) from error
    step = namespace.get("step")
    if not callable(step):
        raise LabError("The source defines no function `step`.", hint=_SHAPE)
    return step
