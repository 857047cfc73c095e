"""A loop that the user's own code runs: the figures of its optimizer steps, and holding it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from math import inf, nan
from time import perf_counter
from typing import TypeGuard

import torch
from torch import Tensor
from torch.optim import Optimizer

from ..protocol import ErrorReport, HeldAt, Hold, LoggedPoints, LoopSnapshot, TrainingState
from ..system.control import Control
from ..system.private_torch import next_sequence
from ..training.figures.gpu import GpuUse
from ..training.figures.memory import cuda_bytes, rss_bytes
from ..training.figures.metrics import Measured, Metrics
from ..training.figures.pace import (
    FREE_STEPS,
    LONGEST_SILENCE_S,
    SENT_SHARE,
    SNAPSHOT_INTERVAL_S,
    Budget,
    Speed,
)
from ..training.figures.watch import Watch
from ..training.objectives.objective import Outcome
from .hooks import Passed, Steps, gradient_norms, quiet
from .limits import LoopLimits
from .logged_numbers import LoggedNumbers
from .loss_lines import LossLines
from .step_losses import StepLoss, StepLosses

MAX_GROUPS = 4
"""Groups of one optimizer that get figures of their own."""

Holds = Callable[[HeldAt], None]
"""Holds the user's code until it is to go on."""


class OwnLoop(Steps):
    """Measures what one cell or file runs: `with steps_shown(loop):` around it.

    A row has the loss, the learning rate of the optimizer's first group, and the norm of the
    gradients before the step; what is not known of it, since the step was seen in part, is None.
    The loss is the sum of `losses`, which `steps_shown` is to have, too. A step with a closure has
    the loss and the gradients of the closure's last call. `watch` gives figures of watched modules.
    Each optimizer has a line of its own, and with several groups named figures; `name_of` names an
    optimizer or a parameter, `name_of_loss` a scalar on which backward is called, "" without one.
    `logged` has what the user has logged; `has_images` says whether there are images.

    `send` gets snapshots while the code runs, at most 30 a second, and none before the first step;
    making them takes at most SENT_SHARE of the time.
    `hold`, if given, holds the code after a step while `control.pause` is set, and before an update
    as `control.hold_when` says.
    """

    def __init__(
        self,
        title: str,
        control: Control,
        send: Callable[[LoopSnapshot], None],
        name_of: Callable[[object], str] = lambda thing: "",
        name_of_loss: Callable[[Tensor], str] = lambda root: "",
        hold: Holds | None = None,
        watch: Watch | None = None,
        logged: LoggedNumbers | None = None,
        has_images: Callable[[], bool] = lambda: False,
        losses: StepLosses | None = None,
    ) -> None:
        self.title = title
        self.losses = losses or StepLosses()
        self.losses.begin(name_of_loss, self._line_of)
        self._lines = LossLines(name_of, lambda: self.losses.is_late)
        self._line_of_step: dict[int, int] = {}  # of the rows that are not sent yet
        self.step = 0
        self.metrics = Metrics(may_diverge=True)
        self._control = control
        self._emit = send
        self._logged = logged or LoggedNumbers()
        self.early: set[str] = set()
        """The names that were logged before the first step of any optimizer had ended."""
        self._counts_logs = False  # whether steps end where something is logged
        self._made = 0  # the next node's number when the last step ended
        self._has_begun = False  # `backward` was called since
        self._ahead = 0  # by so much the number of a step is above that of `losses`
        self._name_of = name_of
        self._hold = hold
        self.watch = watch
        self._has_images = has_images
        self._budget, self._speed = Budget(), Speed()
        self._is_measured = False
        self._has_stepped = False
        self._waiting: set[str] = set()  # the names that were logged in the step by hand
        self._thread = threading.get_ident()
        self._norms: list[Tensor] | None = None  # before a step they are not known
        self._device = torch.device("cpu")
        self._gpu = GpuUse(self._device)
        self._ended_s = nan
        self._due_s = 0.0
        self._accounted_s = 0.0
        self._is_broken = False
        self._limits = LoopLimits(control.hold_when, name_of)
        self._why: Hold | None = None

    def last(self, error: BaseException | None, report: ErrorReport | None) -> LoopSnapshot | None:
        """The snapshot at the end of the cell, which `error` ended; None if it took no step."""
        if not self.step:
            return None
        if self._waiting and not self._has_stepped:
            self.after_log()
        state: TrainingState = "finished" if error is None else "failed"
        if isinstance(error, KeyboardInterrupt):
            state, report = "stopped", None
        logged: dict[str, LoggedPoints] = {}
        with self._sheltered():
            self._flush()
            logged = self._read_logged()
        return self._snapshot(state, logged, report)

    def catch_up(self) -> None:
        """Send the figures up to the last step."""
        if self.step:
            with self._sheltered(is_measuring=False):
                self._send("running")

    def leave_out(self, seconds: float) -> None:
        """The code was held for this time, which does not count as time of the next step."""
        self._ended_s += seconds
        self._accounted_s += seconds

    def clock(self) -> float:
        """A time in s that stands still while the code is held, and while the loop does what it
        takes the time for from its own budgets."""
        return perf_counter() - self._accounted_s

    def spend(self, seconds: float) -> None:
        """If the last step was measured, the measuring took this much longer."""
        if self._is_measured:
            self._budget.spend(seconds)

    @property
    def is_due(self) -> bool:
        """Whether the next step is to be measured, were it to begin now."""
        return not self._is_broken and self._budget.takes(self.step)

    @property
    def due_s(self) -> float:
        """When a step is to be measured next, were none to begin before."""
        return inf if self._is_broken else self._budget.next_s

    @property
    def looks(self) -> bool:
        """Whether watchpoints look at each step."""
        if self._limits.when is not self._control.hold_when:
            self._limits = LoopLimits(self._control.hold_when, self._name_of)
        return self._limits.are_set and self._hold is not None and not self._is_broken

    def needed_from(self) -> tuple[float, float]:
        is_early = self.step < self._budget.free_steps and not self._is_broken
        return -inf if is_early or self.looks or self.watch is not None else self.due_s, inf

    def count(self, passed: Passed) -> None:
        self.step += passed.steps
        self._made, self._has_begun = passed.made, passed.has_begun
        self._ended_s = nan

    def end_unseen(self) -> None:
        """A step has ended, also one that was not shown: its backward may have been seen, if the
        gate was opened in the middle of it."""
        self._made, self._has_begun = next_sequence(), False

    def begin_step(self) -> None:
        self._ended_s = perf_counter()

    def step_of(self, names: Iterable[str]) -> int:
        """The step that numbers of these names belong to, if they are logged now: the step that has
        ended, or the next one if it has begun. It has begun if `backward` was called since. If only
        a graph was made since, it has begun if one of these names was logged before the first step
        had ended."""
        if not self.step:
            self.early.update(names)
            return 1
        has_begun = self._has_begun or (
            next_sequence() != self._made and not self.early.isdisjoint(names)
        )
        return self.step + has_begun

    def step_by_logs(self, names: Iterable[str]) -> int:
        """As `step_of`; but until an optimizer of torch's steps, a step ends where a name is logged
        again."""
        is_here = threading.get_ident() == self._thread and not self._control.in_own_code
        if self._has_stepped or not is_here:
            return self.step_of(names)
        if not self._waiting.isdisjoint(names):
            self._waiting.clear()
            self.after_log()
        self._waiting.update(names)
        self.early.update(names)
        return self.step + 1

    # -- what the hooks call ---------------------------------------------------------------------

    def saw_loss(self, loss: Tensor, root: Tensor) -> None:
        self._has_begun = True

    def before_step(self, optimizer: Optimizer, has_closure: bool) -> None:
        self._has_stepped = True
        self._is_measured = self.is_due
        looks = self.looks
        if (self._is_measured or looks) and not has_closure:
            with self._sheltered(is_measuring=self._is_measured):
                self._norms = gradient_norms(optimizer)
            if looks:
                self._look(optimizer)

    def after_log(self) -> None:
        """Figures were logged in a loop in which no optimizer of torch's steps: they are a step."""
        self._is_measured, self._counts_logs = self.is_due, True
        self._end_step(None)

    def after_step(self, optimizer: Optimizer, has_closure: bool) -> None:
        if self._is_measured and has_closure:
            with self._sheltered():
                self._norms = gradient_norms(optimizer)
        self._counts_logs = False
        self._end_step(optimizer)

    def _look(self, optimizer: Optimizer) -> None:
        """Hold the code before this update, if a watchpoint says so."""
        with self._sheltered(is_measuring=False):
            loss = self.losses.so_far(optimizer)
            self._why = self._limits.look(self.step + 1, loss, self._norms or (), optimizer)
        if not self._is_measured:
            self._norms = None
        if self._why is not None:
            self._be_held("update")

    def _end_step(self, optimizer: Optimizer | None) -> None:
        self.step += 1
        self._made = next_sequence()
        started, self._ended_s = self._ended_s, perf_counter()
        self._has_begun = False
        learned = None if optimizer is None else self.losses.last()
        if learned is not None:
            self._ahead = self.step - learned.step
        if self._is_measured:
            with self._sheltered():
                self._add(optimizer, learned, (started, self._ended_s))
            if self._ended_s >= self._due_s:
                with self._sheltered(is_measuring=False):
                    self._send("running")
            self._ended_s = perf_counter()
        elif self.watch is not None:
            self.watch.begin(True)
        if self._control.pause.is_set():
            self._be_held("step")

    def _be_held(self, at: HeldAt) -> None:
        hold, control = self._hold, self._control
        if hold is None:
            return
        with control.own_code():
            with self._sheltered(is_measuring=False):
                self._send("paused")
            with self._unbroken():
                hold(at)
            self._why = None
            if not control.interrupted:
                with self._sheltered(is_measuring=False):
                    self._send("running")
        self._ended_s = perf_counter()

    # -- figures ---------------------------------------------------------------------------------

    def _line_of(self, optimizer: Optimizer) -> int:
        """The number of its line. A new one has a row for each of its first steps, too."""
        known = len(self._lines)
        line = self._lines.of(optimizer)
        if known and len(self._lines) > known:
            self._budget.free_steps = max(self._budget.free_steps, self.step + FREE_STEPS)
        return line

    def _add(self, optimizer: Optimizer | None, learned: StepLoss | None, timing: tuple) -> None:
        norms, self._norms = self._norms, None
        loss = None if learned is None else learned.total
        figures = {} if learned is None else self._lines.parts(learned)
        if optimizer is None:  # a backward of the next step may have come by now
            loss = self._logged.take("loss")
        tensors = [each for each in (*(norms or ()), loss, *figures.values()) if _is_tensor(each)]
        device = tensors[0].device if tensors else self._device
        if device != self._device:
            self._flush()
            self._device, self._gpu = device, GpuUse(device)
        rate = nan
        if optimizer is not None:
            rate = _rate(optimizer.param_groups[0])
            for number, group in enumerate(optimizer.param_groups[1:MAX_GROUPS], 2):
                figures[f"learning rate{self._lines.suffix(optimizer)}, group {number}"] = _rate(
                    group
                )
        figures |= {} if self.watch is None else self.watch.take()
        watched = {k: v.to(device) for k, v in figures.items() if isinstance(v, Tensor)}
        numbers = {k: v for k, v in figures.items() if not isinstance(v, Tensor)}
        shown = torch.as_tensor(nan if loss is None else loss).to(device)
        measured = Measured(
            rate,
            timing,
            None if norms is None else [norm.to(device) for norm in norms],
            numbers,
            has_loss=loss is not None,
        )
        self.metrics.add(self.step, Outcome(shown, 1, None, watched), measured)
        line = 0 if learned is None else learned.line
        if learned is None and optimizer is not None and len(self._lines):
            line = self._line_of(optimizer)  # only its loss is not known
        if line:
            self._line_of_step[self.step] = line

    def _flush(self) -> None:
        """Read the figures until now; waits for the device."""
        self._lines.add(self.losses.take(), self._ahead)
        is_cuda = self._device.type == "cuda"
        cuda = cuda_bytes(self._device) if is_cuda else (0, 0)
        self.metrics.flush(rss_bytes(), cuda, self._gpu.percent())

    def _read_logged(self) -> dict[str, LoggedPoints]:
        return self._logged.read(but="loss" if self._counts_logs else "")

    # -- snapshots -------------------------------------------------------------------------------

    def _send(self, state: TrainingState) -> None:
        began_s = perf_counter()
        self._flush()
        self._emit(self._snapshot(state, self._read_logged()))
        now_s = perf_counter()
        wait_s = min((now_s - began_s) / SENT_SHARE, LONGEST_SILENCE_S)
        self._due_s = now_s + max(wait_s, SNAPSHOT_INTERVAL_S)

    def _snapshot(
        self,
        state: TrainingState,
        logged: dict[str, LoggedPoints],
        error: ErrorReport | None = None,
    ) -> LoopSnapshot:
        steps, _ = self.metrics.drain(with_cuda=self._device.type == "cuda")
        line_of_step, self._line_of_step = self._line_of_step, {}
        return LoopSnapshot(
            run=self.title,
            title=self.title,
            state=state,
            step=self.step,
            steps_per_second=self._speed.per_second(self.step, running=state == "running"),
            steps=steps,
            device=str(self._device),
            gpu=self._gpu.memory(),
            error=error,
            hold=self._why,
            lines=self._lines.lines(),
            line_of_step={s: line_of_step[s] for s in steps.step if s in line_of_step},
            logged=logged,
            has_images=self._has_images(),
        )

    @contextmanager
    def _sheltered(self, is_measuring: bool = True) -> Iterator[None]:
        """Torch's functions of ours inside the user's code, not interrupted midway."""
        began_s = perf_counter()
        with self._control.own_code():
            with quiet(), self._unbroken():
                yield
            spent_s = perf_counter() - began_s
            self._accounted_s += spent_s
            if is_measuring:
                self._budget.spend(spent_s)

    @contextmanager
    def _unbroken(self) -> Iterator[None]:
        """An error of ours ends the figures, but never the user's loop."""
        try:
            yield
        except Exception:
            self._is_broken = True
            self.losses.end()
            logging.getLogger(__name__).exception("A loop cannot be shown any longer.")


def _rate(group: dict) -> float:
    return float(group.get("lr", nan))


def _is_tensor(value: object) -> TypeGuard[Tensor]:
    return isinstance(value, Tensor)
