"""The losses of each step: those whose gradients are summed in the parameters of its optimizer."""

from __future__ import annotations

import gc
import logging
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.optim import Optimizer

Value = float | Tensor
"""A loss: a number on the CPU; on another device a 0-dim tensor without a graph, which nobody else
changes, so that no step waits for the device."""
TRACKED_STEPS = 64
"""An optimizer that has not stepped in so many steps of a loop is not followed until it does."""
MAX_SUMMED = 1 << 14
"""The most losses of one step. Of a step with more, they are not known."""


class Loss(NamedTuple):
    """A scalar on which `backward` was called. `name` is the user's for it, "" if it has none or
    was not looked for; `value` is None for what is not a real scalar."""

    name: str
    value: Value | None


class StepLoss(NamedTuple):
    """The losses that step number `step` has learned from; `line` is the number of its optimizer.
    There are none where they are not known: the step was seen in part, or had no backward."""

    step: int
    line: int
    losses: tuple[Loss, ...]

    @property
    def total(self) -> Value | None:
        """Their sum: its gradient is the one that the step has used."""
        values = [loss.value for loss in self.losses if loss.value is not None]
        return sum(values[1:], values[0]) if values and len(values) == len(self.losses) else None

    def by_name(self) -> dict[str, Value]:
        """The sum of the losses of each name."""
        found: dict[str, Value] = {}
        for name, value in self.losses:
            if name and value is not None:
                found[name] = found[name] + value if name in found else value
        return found


made = weakref.WeakSet[Optimizer]()
"""The optimizers of this process, as far as they are known: those that were made in `steps_shown`,
and those that there were at the last `know_all_optimizers`."""


def know_all_optimizers() -> None:
    """It looks at all objects of the process, which takes some 0.1 s."""
    made.update(each for each in gc.get_objects() if issubclass(type(each), Optimizer))


_Mark = tuple[int, int] | None
"""Of a gradient, None without one: which tensor it is, and how often it was written to."""


class _Gradients:
    """What the gradients of one optimizer are the sum of."""

    def __init__(self, optimizer: Optimizer, may_be_zero: bool) -> None:
        """`may_be_zero`: gradients of zeros have no loss behind them that was not seen."""
        self.optimizer = weakref.ref(optimizer)
        self._may_be_zero = may_be_zero
        self.line = -1  # before its first step
        self.losses: list[Loss] = []
        self.is_whole = False
        """Whether all losses since its last step, or since they were zero, were seen."""
        self._added: tuple[int, _Mark] = 0, None  # a gradient that the last of these has added to

    def begin_backward(self) -> list[_Mark]:
        """The marks before a backward. Gradients that were set to zero since the last one have
        forgotten its loss."""
        marks = [_mark(parameter) for parameter in self._parameters()]
        if self.losses or not self.is_whole:
            place, mark = self._added
            is_as_before = mark is not None and marks[place : place + 1] == [mark]
            if not is_as_before and (not any(marks) or (self._may_be_zero and self._are_zero())):
                self.losses.clear()
                self.is_whole = True
        return marks

    def end_backward(self, before: list[_Mark], losses: Sequence[Loss] | None) -> None:
        """A backward of `losses` has ended: they count if it has added to one of the gradients.
        None for one that has failed: what it has added is unknown."""
        for place, (parameter, was) in enumerate(zip(self._parameters(), before, strict=False)):
            mark = _mark(parameter)
            if mark != was:
                self.losses += losses or ()
                self._added = place, mark
                self.is_whole &= losses is not None
                break
        if len(self.losses) > MAX_SUMMED:
            self.losses.clear()
            self.is_whole = False

    def end_step(self) -> tuple[Loss, ...]:
        losses = tuple(self.losses) if self.is_whole else ()
        self.losses.clear()
        self.is_whole = self._may_be_zero = True
        return losses

    def _parameters(self) -> list[Tensor]:
        optimizer = self.optimizer()
        if optimizer is None:
            return []
        return [parameter for group in optimizer.param_groups for parameter in group["params"]]

    def _are_zero(self) -> bool:
        gradients = (parameter.grad for parameter in self._parameters())
        return not any(g is not None and bool(torch.count_nonzero(g)) for g in gradients)


class _Names(NamedTuple):
    """As in `StepLosses.begin`."""

    of_loss: Callable[[Tensor], str]
    line_of: Callable[[Optimizer], int]


class StepLosses:
    """Follows the optimizers of a thread, while somebody asks for it: `steps_shown(...,
    losses=losses)` around its code. It keeps no tensor of the user's alive. An optimizer that steps
    before it is known has no loss of that step. `begin` and `end` are for any thread; all else is
    for that one. `is_begun_inside`: `begin` may be called in the middle of a step.
    """

    def __init__(self, is_begun_inside: bool = False) -> None:
        self._is_begun_inside = is_begun_inside
        self._asked: _Names | None = None
        self.is_on = False
        """Whether somebody wants to know them. Read at every step, so it is no property."""
        self._follow_anew(None)

    def begin(
        self, name_of_loss: Callable[[Tensor], str], line_of: Callable[[Optimizer], int]
    ) -> None:
        """Follow the steps from now on. From before until `end`, each `backward` and each step is
        to be told. `name_of_loss(root)` is the user's name of a scalar on which backward is called,
        `line_of` gives the number of an optimizer at its first step."""
        self._asked = _Names(name_of_loss, line_of)
        self.is_on = True

    def end(self) -> None:
        """Nobody wants to know them any longer."""
        self._asked, self.is_on = None, False

    def know(self, optimizers: Iterable[Optimizer]) -> None:
        """Follow these optimizers, too."""
        if self._names() is None:
            return
        self._of = {key: each for key, each in self._of.items() if each.optimizer() is not None}
        self._of |= {
            id(each): _Gradients(each, not self._is_begun_inside)
            for each in optimizers
            if id(each) not in self._of
        }

    def _names(self) -> _Names | None:
        """Those that are asked for now; None if nobody asks."""
        asked = self._asked
        if asked is not self._followed:
            self._follow_anew(asked)
        return asked

    def _follow_anew(self, asked: _Names | None) -> None:
        self._followed = asked
        self._of: dict[int, _Gradients] = {}
        self._ended: list[StepLoss] = []
        self._began: list[tuple[_Gradients, list[_Mark]]] = []
        self._losses: list[Loss] = []
        self._steps = 0
        self.is_late = False
        """Whether there were steps before the first that it has followed."""
        if asked is not None:
            self.know(list(made))

    def begin_backward(self, roots: Sequence[Root], is_named: bool) -> None:
        """Before a backward that is not inside another; `is_named`: look for the user's names."""
        self._began = []
        try:
            names = self._names()
            if names is None:
                return
            if self._steps == TRACKED_STEPS and len(self._of) > 1:
                self._of = {key: each for key, each in self._of.items() if each.line >= 0}
            self._losses = [
                Loss(names.of_loss(root.named) if is_named else "", root.value()) for root in roots
            ]
            self._began = [(each, each.begin_backward()) for each in self._of.values()]
        except Exception:
            self._break()

    def end_backward(self, has_failed: bool) -> None:
        """It has ended."""
        for each, marks in self._began:
            each.end_backward(marks, None if has_failed else self._losses)
        self._began = []

    def end_step(self, optimizer: Optimizer, step: int) -> None:
        """Step number `step` (from 1) has ended."""
        try:
            names = self._names()
            if names is None:
                return
            self.is_late |= not self._steps and step > 1
            self._steps += 1
            each = self._of.get(id(optimizer))
            if each is None or each.optimizer() is not optimizer:
                self.know([optimizer])
                each = self._of[id(optimizer)]
            if each.line < 0:
                each.line = names.line_of(optimizer)
            for marks in [marks for began, marks in self._began if began is each]:
                each.end_backward(marks, self._losses)  # a hook of its backward has called it
            self._began = [(began, marks) for began, marks in self._began if began is not each]
            self._ended.append(StepLoss(step, each.line, each.end_step()))
        except Exception:
            self._break()

    def so_far(self, optimizer: Optimizer) -> Value | None:
        """The loss of the step that this optimizer is about to take; None if it is not known."""
        each = self._of.get(id(optimizer))
        if each is None or each.optimizer() is not optimizer or not each.is_whole:
            return None
        return StepLoss(0, 0, tuple(each.losses)).total

    def last(self) -> StepLoss | None:
        """The step that has ended last, if nobody has taken it yet. None if they are asked for anew
        since: it was another's then."""
        return self._ended[-1] if self.is_on and self._names() and self._ended else None

    def take(self) -> list[StepLoss]:
        """The steps that have ended since it was last called, or since they are asked for anew."""
        if self.is_on:
            self._names()
        ended, self._ended = self._ended, []
        return ended

    def _break(self) -> None:
        """An error of ours ends the losses, but never the user's loop."""
        self.end()
        logging.getLogger(__name__).exception("The losses of a loop are not known any longer.")


class Root(NamedTuple):
    """What backward is called on: `scalar` is that before a GradScaler scaled it, `named` the
    object that the user's code may have a name for; `gradient` that of the root, if it was given.
    An edge of a graph has no value.
    """

    scalar: Any
    named: Any
    gradient: Tensor | None = None

    def value(self) -> Value | None:
        scalar, gradient = self.scalar, self.gradient
        if not isinstance(scalar, Tensor) or scalar.numel() != 1 or scalar.is_complex():
            return None
        if gradient is None:
            return _read(scalar)
        return _read(scalar) * _read(gradient) if gradient.numel() == 1 else None


def _read(scalar: Tensor) -> Value:
    if scalar.is_cpu:
        return scalar.item()
    return scalar.detach().reshape(()).clone()


def _mark(parameter: Tensor) -> _Mark:
    gradient = parameter.grad
    return None if gradient is None else (gradient._cdata, gradient._version)
