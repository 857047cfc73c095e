"""The training loop: batches, optimizer steps and validation passes."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import ExitStack
from itertools import islice
from math import ceil, isnan, nan
from typing import Any, Literal

import torch
from torch import Tensor, nn

from ..project.document import ADJUSTABLE, HoldWhen, TrainingSetup, replace
from ..project.step_order import keeps_gradients
from ..project.subject import CanvasSubject, Subject
from ..protocol import StepUnit
from ..recording.compiled import has_compiled_parts
from ..restoring.module_kept import modes_kept
from ..restoring.randomness import RandomStream
from ..system.errors import LabError
from .checkpoints.best_epoch import BestEpoch, is_over, with_epoch
from .checkpoints.checkpoint_fields import Checkpoint
from .checkpoints.checkpoint_match import check_change, check_match
from .components.devices import find_device
from .distributed.ranks import Ranks
from .evaluation import Evaluation
from .execution.determinism import Determinism
from .figures.gpu import GpuUse
from .figures.marks import Marks
from .figures.memory import cuda_bytes, rss_bytes
from .figures.metrics import Measured, Metrics
from .figures.pace import Budget, now_on
from .figures.watch import Watch
from .looks.looks import Looks
from .objectives.objective import CatalogueObjective, Objective
from .objectives.seen_batches import SeenBatches
from .optimization.averaging import AveragedWeights
from .optimization.optimization import Optimization
from .optimization.training_step import Inside, TrainingStep, check_setup
from .watchpoints.holding import Holding


class TrainingLoop:
    """A model, its objective and optimizer, and the progress of its training.

    `model` is any nn.Module. It is moved to the set-up's device; `close` moves it back. Without an
    `objective` it is trained on the set-up's data set, with the set-up's loss. `watch` adds figures
    to the rows of steps. `subject`, the canvas unless given, refers to the model in
    checkpoints. One of several `ranks` has their `RowsObjective`.

    `step` is the number of optimizer steps done; `epoch` and `batch` (0-based) are those of the
    next batch. `current` is the newest step; `is_in_step` says whether some of its phases are still
    to come. `by` is how far the user lets it go on by hand, "" not by hand: then steps measure
    their updates too, and by less than a step the loop stops between the phases of one, and
    `inside` holds it within a phase. It also stops where `holding` has a reason. Raises
    LabError, before the model is touched, if the set-up cannot be trained with.
    """

    def __init__(
        self,
        model: nn.Module,
        setup: TrainingSetup,
        objective: Objective | None = None,
        watch: Watch | None = None,
        subject: Subject | None = None,
        ranks: Ranks | None = None,
    ) -> None:
        check_setup(setup)
        self.setup = setup
        self.model = model
        self.ranks = ranks
        self.device = find_device(setup.device) if ranks is None else ranks.device
        self.objective = objective or CatalogueObjective(model, setup)
        self._home = next((p.device for p in model.parameters()), torch.device("cpu"))
        if ranks is not None:
            model.to(self.device)
            ranks.begin(self)  # before the optimizer: it may replace the parameters
        self._optimization = Optimization(setup, model, self.device, self.total_steps)
        self.objective.to(self.device)
        self.watch, self.subject = watch, subject or CanvasSubject()
        runs_code, generators = self.objective.runs_code, self.objective.generators
        self.random = RandomStream(setup.seed, self.device, generators, of_code=runs_code)
        self._may_hold = ranks is None or ranks.rank == 0
        limits = setup.hold if self._may_hold else HoldWhen()
        self.determinism = Determinism(setup.deterministic, self.device)
        self.holding = Holding(limits, model, self.random)
        self.metrics = Metrics()
        self.gpu = GpuUse(self.device)
        self.marks, self.seen = Marks(), SeenBatches()
        self.best: BestEpoch | None = None
        self._budget = Budget.of_run()
        self.looks = Looks(self._optimization.groups.named if self._may_hold else {})
        self.step = self.epoch = self.batch = 0
        self.current: TrainingStep | None = None
        self.is_in_step = False
        self.by: StepUnit | Literal[""] = ""
        self.inside: Inside | None = None
        self.epoch_rng = self.random.state()
        self._modes = ExitStack()
        self._modes.enter_context(modes_kept(model))
        self.model.to(self.device)  # in place, so the optimizer keeps its parameters
        kind = setup.averaging.kind
        try:
            self.averaged = AveragedWeights(setup.averaging, model) if kind != "none" else None
        except LabError:
            self.model.to(self._home)
            raise
        self._optimization.groups.freeze(setup)

    @property
    def total_steps(self) -> int | None:
        """None if the data does not say how many batches it has."""
        per_epoch = self.objective.batches_per_epoch
        if per_epoch is None:
            return None
        return self.setup.epochs * ceil(per_epoch / self.setup.accumulate)

    @property
    def stops_in_step(self) -> bool:
        """Whether it goes on by less than a step."""
        return self.by in ("op", "module", "phase", "batch") and not self.holding.is_on_way

    @property
    def is_compiled(self) -> bool:
        return self._optimization.forward.compiled is not None or has_compiled_parts(self.model)

    @property
    def optimizer(self) -> torch.optim.Optimizer:
        return self._optimization.optimizer

    @property
    def learning_rate(self) -> float:
        return self._optimization.learning_rate

    @property
    def parameters(self) -> list[nn.Parameter]:
        """The parameters that learn, and the frozen ones among them."""
        return self._optimization.parameters

    def adjust(self, setup: TrainingSetup) -> None:
        """Take over the ADJUSTABLE fields of a set-up; the optimizer's state stays. Raises
        LabError, and changes nothing, if they are invalid, or need a state that the optimizer does
        not have."""
        before = self.setup
        self._optimization.adjust(setup)
        adjusted = {name: getattr(setup, name) for name in ADJUSTABLE}
        self.setup = replace(self.setup, **adjusted)
        self.marks.add_change(self.step, before, self.setup)
        self._optimization.groups.freeze(self.setup)
        if self.ranks is not None:
            self.ranks.give(self.setup)

    def hold_when(self, limits: HoldWhen) -> None:
        """Hold the run for other reasons from the next step on. Of several ranks the first one is
        held, and the others wait for it."""
        if limits != self.setup.hold and self._may_hold:
            self.setup = replace(self.setup, hold=limits)
            self.holding.set_limits(limits)

    def become(self, setup: TrainingSetup, objective: Objective) -> None:
        """Go on with another set-up and objective of the same data. An optimizer of the same class
        keeps its state. Raises LabError for what a run cannot change (see `check_change`)."""
        check_change(self.setup, setup)
        check_setup(setup)
        self.hold_when(setup.hold)
        self.marks.add_change(self.step, self.setup, setup)
        self.setup = setup
        self._optimization.become(setup, self.total_steps, self.epoch)
        self._optimization.groups.freeze(setup)
        if objective is not self.objective:
            objective.to(self.device)
            objective.metrics.restore(self.objective.metrics.states())
            self.objective = objective

    # -- training --------------------------------------------------------------------------------

    def steps(self) -> Generator[None, None, None]:
        """Train to the end. Yields after every optimizer step, every batch of a validation pass,
        and every epoch but the last; while it `stops_in_step`, also between the phases of a step,
        and where it is held. A caller may close the generator there; the progress is kept, but for
        that of such a step.

        Raises Diverged if the loss is NaN or infinite, and any error of the model's.
        """
        with self.random, self.determinism:
            while not self.is_over:
                batches = self._batches()
                while of_step := list(islice(batches, self.setup.accumulate)):
                    yield from self._train_step(of_step)
                    yield
                    self.holding.leave()
                yield from self._end_epoch()

    def _train_step(self, batches: list[Any]) -> Iterator[None]:
        """One step. Yields between two of its phases while it `stops_in_step`."""
        if self.ranks is not None:
            self.ranks.agree()
        if not self.model.training:  # a command between two steps may have changed it
            self.model.train()
        measured = self._budget.takes(self.step)
        start = now_on(self.device) if measured else None
        rates = self._optimization.all_rates() if measured else (0.0, {})
        if self.watch is not None:
            self.watch.begin(measured)
        by_hand = bool(self.by)
        look = self.looks.begin(self.step, by_hand)
        step = self.current = TrainingStep(
            self.step + 1,
            batches,
            self.setup,
            self.objective,
            self._optimization,
            measured or by_hand,
            by_hand,
            lets_diverge=self.holding.looks_for_divergence,
            ranks=self.ranks,
            look=look,
        )
        self.is_in_step = True
        for _ in self._stops(step):
            start = nan  # the time between two phases is the user's
            yield
        self.is_in_step = False
        self.by = ""  # the next step has a word of its own
        if look is not None:
            self.looks.end(look)
            start = start + look.spent_s if isinstance(start, float) else start and nan
        is_timed = not (isinstance(start, float) and isnan(start))
        timing = (start, now_on(self.device) if is_timed else nan) if measured else None
        if self.averaged is not None:
            self.averaged.after_step(self.epoch)
        self.step += 1
        self.batch += len(batches)
        if measured:
            self._budget.spend(step.measuring_s)
        self._record(step, rates, timing)
        compiled = self._optimization.forward.compiled
        if compiled is not None and self.step == 1:
            self.marks.add(self.step, compiled.words())

    def _stops(self, step: TrainingStep) -> Iterator[None]:
        """Run the step. Yields where it stops between two phases."""
        if self.step and not self.by and not self.holding.looks:
            step.run()
            return
        self._hold_inside(step)
        for _ in self.holding.phases(step) if self.holding.looks else step.phases():
            if not self.step:
                step.check_gradients(self.model)
            stops = self.stops_in_step and step.can_stop(self.by)
            if stops or self.holding.hold is not None:
                yield
                self.holding.leave()
                self._hold_inside(step)
        if not self.step:
            step.check_gradients(self.model)

    def _hold_inside(self, step: TrainingStep) -> None:
        """From its next phase on the step is held within phases, if it goes on so by hand."""
        step.inside = self.inside if self.stops_in_step and not self.is_compiled else None

    def _end_epoch(self) -> Iterator[None]:
        """Validate, then begin the next epoch."""
        self.flush()
        metrics = self.objective.metrics
        of_epoch = metrics.figures()
        evaluation = Evaluation(
            self.model,
            self.objective,
            self._optimization,
            self.averaged,
            self.setup.seed,
            self.device,
        )
        with modes_kept(self.model), metrics.aside():
            if self.averaged is not None and self.averaged.after_epoch(self.epoch):
                yield from evaluation.norms_of_average(self.averaged, self.epoch)
            metrics.begin()
            totals = yield from evaluation.validated()
            of_validation = metrics.figures()
        self.epoch += 1
        self.batch = 0
        row = self.metrics.end_epoch(self.epoch, self.step, totals, of_epoch, of_validation)
        loss = row.validation_loss if totals.samples else row.train_loss
        self._optimization.rates.after_epoch(loss)
        with evaluation.judged():
            self.best = with_epoch(self.best, row, self.setup.stopping, self.model)
        if not self.is_over:
            yield

    @property
    def stopped_early(self) -> bool:
        return self.epoch < self.setup.epochs and is_over(self.best, self.setup.stopping)

    @property
    def is_over(self) -> bool:
        return self.epoch >= self.setup.epochs or self.stopped_early

    def _batches(self) -> Iterator[Any]:
        """The remaining batches of the current epoch. In the middle of an epoch they are made as
        at its beginning: the generators go back for it to the states of then."""
        if self.batch == 0:
            self.epoch_rng = self.random.state(of_code=self.objective.draws_by_code)
            self.objective.metrics.begin()
            return self.objective.batches(self.epoch, 0, self.seen)
        now = self.random.state()
        self.random.restore(self.epoch_rng)
        batches = self.objective.batches(self.epoch, self.batch, self.seen)
        self.random.restore(now)
        return batches

    def close(self) -> None:
        """Move the model back to where it was, in the mode that it had."""
        self._modes.close()
        self.objective.close()
        self._optimization.groups.thaw()
        if self.device != self._home:
            self.model.to(self._home)
            if self.averaged is not None:
                self.averaged.to(self._home)

    # -- figures ---------------------------------------------------------------------------------

    def _record(self, step: TrainingStep, rates: tuple, timing: tuple | None) -> None:
        outcome, measured = step.outcome, None
        if timing is not None:
            watched = {} if self.watch is None else self.watch.take()
            on_device = {k: v.to(outcome.loss.device) for k, v in watched.items()}
            measured = Measured(rates[0], timing, step.norms, rates[1], on_device)
        self.metrics.add(self.step, outcome, measured, step.loss_read)

    def flush(self) -> None:
        """Read the figures of the steps since the last flush. Raises Diverged."""
        if not self.metrics.has_new:
            return
        cuda = cuda_bytes(self.device) if self.device.type == "cuda" else (0, 0)
        self.metrics.flush(rss_bytes(), cuda, self.gpu.percent())

    # -- checkpoints -----------------------------------------------------------------------------

    def checkpoint(self, run: str) -> Checkpoint:
        """Return the state from which `restore` can go on bit for bit. It shares memory with the
        live model, so it must be written before the next step. There is none in the middle of a
        step. Raises Diverged."""
        assert not self.is_in_step
        self.flush()
        return Checkpoint(
            run=run,
            setup=self.setup,
            subject=self.subject,
            model=self.model.state_dict(),
            rng=self.random.state(),
            epoch_rng=self.epoch_rng,
            epoch=self.epoch,
            batch=self.batch,
            step=self.step,
            totals=self.metrics.totals.copied(),  # a kept state stays what it is
            history=tuple(self.metrics.history),
            epoch_rows=tuple(self.metrics.epochs),
            metrics=self.objective.metrics.states(),
            gradients=self._gradients(),
            marks=self.marks.all,
            best=self.best,
            digest=self.seen.digest(self.batch),
            averaged={} if self.averaged is None else self.averaged.state(),
            **self._optimization.state(),
        )

    def _gradients(self) -> dict[str, Tensor]:
        """The gradients that the next step uses, by parameter; none in the usual order."""
        if not keeps_gradients(self.setup.order):
            return {}
        named = self.model.named_parameters()
        return {name: p.grad for name, p in named if p.grad is not None and p.requires_grad}

    def restore(self, saved: Checkpoint) -> None:
        """Go on from a checkpoint. The options of the optimizer stay those of this set-up, so that
        a run can be resumed with, say, a lower learning rate.

        Raises LabError if the checkpoint is of another model or set-up; the model is not changed.
        """
        check_match(saved, self.setup, self.subject, self.model)
        self._optimization.restore(saved, self.total_steps)
        self.model.load_state_dict(saved.model)
        if keeps_gradients(self.setup.order):
            for name, parameter in self.model.named_parameters():
                gradient = saved.gradients.get(name)
                parameter.grad = None if gradient is None else gradient.to(parameter, copy=True)
        self.random.restore(saved.rng)
        self.epoch, self.batch, self.step = saved.epoch, saved.batch, saved.step
        self.epoch_rng = saved.epoch_rng
        self.seen.expect(saved.batch, saved.digest)
        self.marks.restore(saved.marks)
        self.best = saved.best
        if self.averaged is not None:
            self.averaged.restore(saved.averaged)
        self.metrics.restore(saved.history, saved.epoch_rows, saved.totals)
        self.objective.metrics.restore(saved.metrics)
