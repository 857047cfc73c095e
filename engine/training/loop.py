"""The training loop: batches, optimizer steps and validation passes."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from functools import partial
from math import isfinite, nan
from time import perf_counter

import torch
from torch import Tensor, nn

from ..errors import LabError
from ..project.document import ParamValue, TrainingSetup, replace
from ..randomness import RandomStream
from . import data
from .checkpoint_fields import Checkpoint, FieldProblem
from .checkpoint_match import check_match
from .components import find_device, make_loss, make_optimizer
from .memory import cuda_bytes, rss_bytes
from .metrics import Diverged, Measured, Metrics, UnreducedStep
from .optimizer_state import check_optimizer_state

ALWAYS_MEASURED_STEPS = 1000
MEASURE_INTERVAL_S = 2e-3
"""Each of the first steps gets a row of figures; later steps get at most one row per interval, so
that measuring costs little even if steps are short. Epoch means are over all steps."""


class TrainingLoop:
    """A model, its data, loss and optimizer, and the progress of its training.

    `model` is any nn.Module from x (B, *sample_shape) to a prediction (B, classes). It is moved to
    the set-up's device; `close` moves it back to the CPU. If `loss` is given (a loss block is on
    the canvas), `loss` and `loss_params` replace `setup.loss`.

    `step` is the number of optimizer steps done; `epoch` and `batch` (0-based) are those of the
    next batch. Raises LabError, before the model is touched, if the set-up cannot be trained with.
    """

    def __init__(
        self,
        model: nn.Module,
        setup: TrainingSetup,
        *,
        loss: str = "",
        loss_params: Mapping[str, ParamValue] | None = None,
    ) -> None:
        for name, value in {"batch size": setup.batch_size, "epochs": setup.epochs}.items():
            if value < 1:
                raise LabError(f"The training's {name} is {value}; it must be at least 1.")
        self.setup = setup
        self.model = model
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.device = find_device(setup.device)
        self.loss_fn = make_loss(loss or setup.loss, loss_params or {})
        self.optimizer = make_optimizer(setup.optimizer, setup.optimizer_params, self.parameters)
        try:
            self.dataset = data.load(setup.data).to(self.device)
        except ValueError as error:
            raise LabError(str(error), hint="Change the data set's parameters.") from error
        self.random = RandomStream(setup.seed, self.device)
        self.metrics = Metrics()
        self._measured_s = 0.0
        self.step = self.epoch = self.batch = 0
        self.model.to(self.device)  # in place, so the optimizer keeps its parameters

    @property
    def total_steps(self) -> int:
        return self.setup.epochs * self.dataset.batches(self.setup.batch_size)

    @property
    def learning_rate(self) -> float:
        return float(self.optimizer.param_groups[0]["lr"])

    def adjust(self, optimizer_params: Mapping[str, ParamValue]) -> None:
        """Give the optimizer other parameters; its state stays. Raises LabError, and changes
        nothing, if they are invalid, or need a state that this run's optimizer does not have."""
        make = partial(make_optimizer, self.setup.optimizer, optimizer_params)
        try:
            check_optimizer_state(self.optimizer.state_dict()["state"], self.parameters, make)
        except FieldProblem as problem:
            raise LabError(
                f"The run's optimizer cannot change this between two steps. {problem}.",
                hint="The next run will use it.",
            ) from problem
        for group, new in zip(
            self.optimizer.param_groups, make(self.parameters).param_groups, strict=True
        ):
            group.update({name: value for name, value in new.items() if name != "params"})
        self.setup = replace(self.setup, optimizer_params=dict(optimizer_params))

    # -- training --------------------------------------------------------------------------------

    def steps(self) -> Generator[None, None, None]:
        """Train to the end. Yields after every optimizer step, every batch of a validation pass,
        and every epoch but the last. A caller may close the generator there; the progress is kept.

        Raises Diverged if the loss is NaN or infinite, and any error of the model's.
        """
        with self.random:
            while self.epoch < self.setup.epochs:
                for x, y in self._batches():
                    self._train_step(x, y)
                    yield
                yield from self._end_epoch()

    def _train_step(self, x: Tensor, y: Tensor) -> None:
        """One step as in every course: zero_grad, forward, loss, backward, step."""
        if not self.model.training:  # a command between two steps may have changed it
            self.model.train()
        measured = self._is_measured()
        start = self._now() if measured else None
        self.optimizer.zero_grad()
        prediction = self.model(x)
        loss = self.loss_fn(prediction, y)
        self._check(loss)
        loss.backward()
        self.optimizer.step()
        timing = (start, self._now()) if measured else None
        self.step += 1
        self.batch += 1
        self._record(prediction, y, loss, timing)

    def _end_epoch(self) -> Iterator[None]:
        """Validate under eval() and no_grad, then begin the next epoch."""
        self.flush()
        x_val, y_val = self.dataset.x_val, self.dataset.y_val
        loss_sum, correct, samples, size = 0.0, 0, len(y_val), self.setup.batch_size
        random = RandomStream(self.setup.seed, self.device)  # training's own stream is not used
        for first in range(0, samples, size):
            x, y = x_val[first : first + size], y_val[first : first + size]
            if self.model.training:
                self.model.eval()
            with random, torch.no_grad():
                prediction = self.model(x)
                loss_sum += self.loss_fn(prediction, y).item() * len(y)
                correct += int(_count_correct(prediction, y))
            yield
        self.model.train()
        self.epoch += 1
        self.batch = 0
        validation = (loss_sum / samples, correct / samples) if samples else (nan, nan)
        self.metrics.end_epoch(self.epoch, self.step, validation)
        if self.epoch < self.setup.epochs:
            yield

    def _batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        """The remaining batches of the current epoch, as in `Dataset.train_batch`.

        The whole epoch is shuffled once, so that each batch is a slice without a copy.
        """
        order = data.epoch_order(len(self.dataset), self.setup.seed, self.epoch).to(self.device)
        x_epoch, y_epoch = self.dataset.x_train[order], self.dataset.y_train[order]
        size = self.setup.batch_size
        for first in range(self.batch * size, len(order), size):
            yield x_epoch[first : first + size], y_epoch[first : first + size]

    def close(self) -> None:
        """Move the model back to the CPU, in training mode, for export and stepping."""
        self.model.train()
        if self.device.type != "cpu":
            self.model.to("cpu")

    # -- figures ---------------------------------------------------------------------------------

    def _now(self) -> float | torch.cuda.Event:
        """A point in time after the device's work so far.

        On CUDA it is an event on the stream: it needs no synchronisation, and the device measures
        the time between two events. On other devices it is the wall clock in seconds.
        """
        if self.device.type == "cuda":
            event = torch.cuda.Event(enable_timing=True)
            event.record(torch.cuda.current_stream(self.device))
            return event
        if self.device.type == "mps":
            torch.mps.synchronize()
        return perf_counter()

    def _check(self, loss: Tensor) -> None:
        """Raise Diverged before a loss that is not finite spoils the weights.

        On CUDA this would wait for the device at every step, so only `flush` checks there.
        """
        if self.device.type != "cuda" and not isfinite(value := loss.item()):
            raise Diverged(self.step + 1, value)

    def _is_measured(self) -> bool:
        now = perf_counter()
        if self.step >= ALWAYS_MEASURED_STEPS and now - self._measured_s < MEASURE_INTERVAL_S:
            return False
        self._measured_s = now
        return True

    def _record(self, prediction: Tensor, y: Tensor, loss: Tensor, timing: tuple | None) -> None:
        measured = None
        if timing is not None:
            gradients = [p.grad for p in self.parameters if p.grad is not None]
            if any(gradient.is_sparse for gradient in gradients):
                gradients = [g.coalesce().values() if g.is_sparse else g for g in gradients]
            measured = Measured(self.learning_rate, timing, gradients)
        self.metrics.add(UnreducedStep(self.step, loss.detach(), prediction.detach(), y, measured))

    def flush(self) -> None:
        """Read the figures of the steps since the last flush. Raises Diverged."""
        cuda = cuda_bytes(self.device) if self.device.type == "cuda" else (0, 0)
        self.metrics.flush(rss_bytes(), cuda)

    # -- checkpoints -----------------------------------------------------------------------------

    def checkpoint(self, run: str) -> Checkpoint:
        """Return the state from which `restore` can go on bit for bit. It shares memory with the
        live model, so it must be written before the next step. Raises Diverged."""
        self.flush()
        return Checkpoint(
            run=run,
            setup=self.setup,
            model=self.model.state_dict(),
            optimizer=self.optimizer.state_dict(),
            rng=self.random.state(),
            epoch=self.epoch,
            batch=self.batch,
            step=self.step,
            loss_sum=self.metrics.loss_sum,
            correct=self.metrics.correct,
            samples=self.metrics.samples,
            history=tuple(self.metrics.history),
            epoch_rows=tuple(self.metrics.epochs),
        )

    def restore(self, saved: Checkpoint) -> None:
        """Go on from a checkpoint. The options of the optimizer stay those of this set-up, so that
        a run can be resumed with, say, a lower learning rate.

        Raises LabError, and changes nothing, if the checkpoint is of another model or set-up.
        """
        check_match(saved, self.setup, self.model)
        try:
            check_optimizer_state(
                saved.optimizer["state"],
                self.parameters,
                partial(make_optimizer, self.setup.optimizer, self.setup.optimizer_params),
            )
        except FieldProblem as problem:
            raise LabError(
                f"The checkpoint does not fit the optimizer. {problem}.",
                hint="Set the optimizer's options back to go on from it, or train again.",
            ) from problem
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": saved.optimizer["state"], "param_groups": groups})
        self.model.load_state_dict(saved.model)
        self.random.restore(saved.rng)
        self.epoch, self.batch, self.step = saved.epoch, saved.batch, saved.step
        self.metrics.restore(saved.history, saved.epoch_rows)
        self.metrics.loss_sum = saved.loss_sum
        self.metrics.correct = saved.correct
        self.metrics.samples = saved.samples


def _count_correct(prediction: Tensor, y: Tensor) -> Tensor:
    """The number of samples whose largest score is at the label, a 0-dim int64 tensor."""
    return (prediction.argmax(1) == y).sum()
