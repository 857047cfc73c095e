"""The result of an operation, predicted by torch. It runs in fake mode, where nothing is computed.
If its tensors are small, it also runs on copies of them. That is more exact: fake mode accepts some
dtypes that the CPU refuses, and its errors have other words."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from itertools import dropwhile
from typing import Any

import torch

from ...system.private_torch import FAKE_TENSORS, TorchDispatchMode
from ...tensors.fake_mode import fake_mode
from .indices import check_ranges, fake_arguments
from .layout import Ints, Layout, layout_of
from .stand_ins import StandIns, copied_storage, fake_storage
from .steps import (
    Kind,
    NoRule,
    Outcome,
    Refusal,
    Runner,
    RunResult,
    Step,
    Term,
    with_terms,
    without_side_effects,
)
from .words import refusal_of, with_words

SMALL = 1 << 16
"""Operations on tensors of up to this many elements are tried on copies."""
MAX_TRIED_WORK = 1 << 24
MAX_READ = 1 << 24
"""Masks and indices are computed from tensors of up to this many elements."""

_BOUNDED = frozenset(
    {"nonzero", "argwhere", "where", "masked_select", "unique", "unique_consecutive"}
    | {"__getitem__", "__setitem__"}
)
"""Operations whose result's shape depends on numbers, and is at most as large as their operands."""
_UNSEEN = re.compile(
    r"dtype|scalar type|result type|not implemented for|complex|bool|refers to a single memory",
    re.IGNORECASE,
)
"""torch's errors about dtypes, and about elements that share a cell."""


class Predictor:
    """Predicts the steps of one line, in fake mode and on copies."""

    def __init__(self, new_memory: Callable[[], int]) -> None:
        self._new_memory = new_memory
        self._work = _Work()
        fakes, copies = StandIns(fake_storage), StandIns(copied_storage)
        self._fake = Runner(fakes.of, self._within_fake_mode, fake_arguments)
        self._copies = Runner(copies.of, ExitStack)

    def _within_fake_mode(self) -> AbstractContextManager[Any]:
        stack = ExitStack()
        stack.enter_context(fake_mode())
        stack.enter_context(self._work)
        return stack

    def predict(self, step: Step) -> tuple[RunResult, bool]:
        """Run the step in fake mode, and on copies if its operands are small; set its `outcome` or
        `refusal`. Returns the result of the last run, and whether that was on copies. Raises NoRule
        if fake mode cannot run the step."""
        self._work.count = 0
        ran = self._fake.ran(step)
        if _is_unknown(ran.error) and not self._is_bounded(step):
            raise NoRule(f"`{step.operation}` here: what it gives depends on numbers not yet read")
        tried = self._is_small(step, ran)
        try:
            if tried:
                ran = self._copies.ran(step)
            unless = self._check_rest(step, ran, tried)
            if ran.error is not None:
                raise refusal_of(step, ran.error, tried)
        except Refusal as refusal:
            step.refusal = refusal
            return ran, tried
        if all(isinstance(t, torch.Tensor) and t.layout == torch.strided for t in ran.tensors):
            outcome = observed(ran, step, lambda _: self._new_memory())
            outcome = replace(outcome, unless=unless, work=self._work_of(step, outcome))
            is_set = step.operation == "__setitem__"
            written_to = self._assigned_to(step).shape if is_set else None
            step.outcome = with_words(step, outcome, ran.warned, written_to)
        return ran, tried

    def _assigned_to(self, step: Step) -> Layout:
        """The layout that `x[index] = value` writes to."""
        args = step.args[:2]
        picking = replace(step, operation="__getitem__", run=operator.getitem, args=args)
        ran = self._fake.ran(picking)
        if ran.error is not None:
            raise refusal_of(picking, ran.error, certain=False)
        return observed(ran, picking, lambda _: 0).result

    def _is_bounded(self, step: Step) -> bool:
        return step.operation in _BOUNDED and all(term.is_small for term in step.operands)

    def _is_small(self, step: Step, ran: RunResult) -> bool:
        if not all(term.is_small for term in step.operands) or self._work.count > MAX_TRIED_WORK:
            return False
        made = (t for t in ran.tensors if isinstance(t, torch.Tensor))
        return sum(t.numel() for t in made) <= SMALL

    def _check_rest(self, step: Step, ran: RunResult, tried: bool) -> str:
        """Raises Refusal for mistakes that fake mode does not find, and for indices out of range,
        in better words than torch's. Returns in words what could not be checked."""
        if tried:
            if ran.error is not None and re.search("out of (DATA )?(range|bounds)", str(ran.error)):
                try:
                    check_ranges(step)
                except Refusal as refusal:
                    raise _as_raised(refusal, ran.error) from None
            return ""
        if ran.error is not None or step.operation in ("view", "view_as", "unflatten"):
            error = _error_on_meta(step)
            if error is not None and "meta" not in str(error).lower():
                raise refusal_of(step, error, certain=False)
        if ran.error is not None:
            return ""
        _check_within_storages(ran)
        error = _unseen_error(step)
        if error is not None:
            raise refusal_of(step, error, certain=True)
        if step.operation == "__setitem__":
            self._check_assignable(step)
        elif 0 in ran.written:
            _check_overlap(step.operands[0].layout, step.operands[1:])
        return check_ranges(step)

    def _check_assignable(self, step: Step) -> None:
        """Raises Refusal if the value does not broadcast to the target, or overlaps with it."""
        value, target = step.args[2], self._assigned_to(step)
        if not isinstance(value, Term):
            return
        try:
            fits = torch.broadcast_shapes(target.shape, _without_ones(value.layout.shape))
        except RuntimeError:
            fits = None
        if fits != target.shape:
            error = RuntimeError(  # in torch's words
                f"shape mismatch: value tensor of shape {list(value.layout.shape)} cannot be"
                f" broadcast to indexing result of shape {list(target.shape)}"
            )
            raise refusal_of(step, error, certain=True)
        _check_overlap(target, [value])

    def _work_of(self, step: Step, outcome: Outcome) -> int:
        if outcome.kind != "copy":
            return 0
        layouts = (*outcome.results, *(term.layout for term in step.operands))
        return max(self._work.count, *(x.numel for x in layouts))


def can_be_read(step: Step) -> bool:
    """Whether an index that this step leads to may be computed."""
    assert step.outcome is not None
    return step.outcome.work <= MAX_READ and all(term.is_readable for term in step.operands)


def observed(ran: RunResult, step: Step, memory: Callable[[int], int]) -> Outcome:
    """The outcome of an operation that ran. `memory(i)` numbers new storages."""
    numbers = {
        t.untyped_storage()._cdata: term.layout.memory
        for t, term in zip(ran.operands, step.operands, strict=True)
    }
    results = []
    for i, t in enumerate(ran.tensors):
        storage = t.untyped_storage()._cdata
        if storage not in numbers:
            numbers[storage] = memory(i)
        results.append(layout_of(t, numbers[storage]))
    names = getattr(ran.given, "__match_args__", ())
    many = isinstance(ran.given, tuple | list)
    return Outcome(_kind(ran, step), tuple(results), many=many, names=tuple(names))


def _kind(ran: RunResult, step: Step) -> Kind:
    if not ran.tensors:
        return "view"  # unbind of an empty dimension gives no tensor
    first = ran.tensors[0]
    for i, operand in enumerate(ran.operands):
        if first is operand:
            changed = step.operation == "__setitem__" or i in ran.written
            renamed = step.operation.endswith("_") and not step.operation.endswith("__")
            return "in place" if changed or (renamed and i == 0) else "same"
    own = {operand.untyped_storage()._cdata for operand in ran.operands}
    return "view" if first.untyped_storage()._cdata in own else "copy"


class _Work(TorchDispatchMode):
    """Counts multiplications."""

    count = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        from torch.utils.flop_counter import flop_registry

        given = func(*args, **(kwargs or {}))
        counted = flop_registry.get(func._overloadpacket)
        if counted is not None:
            self.count += counted(*args, **(kwargs or {}), out_val=given) // 2
        return given


def _is_unknown(error: Exception | None) -> bool:
    """Whether the error means that fake mode cannot run the operation, not that torch refuses
    it."""
    if "all tensors to be on the same device" in str(error):
        return False
    no_rule = isinstance(error, NotImplementedError) and "'Meta' backend" in str(error)
    return no_rule or type(error).__module__.startswith(FAKE_TENSORS)


def _as_raised(refusal: Refusal, error: Exception) -> Refusal:
    return Refusal(
        str(refusal), refusal.hint, refusal.reasoning, raises=type(error), said=str(error)
    )


def _check_within_storages(ran: RunResult) -> None:
    """Raises Refusal if fake mode made a storage larger, because strides lead out of it."""
    for t, there in zip(ran.operands, ran.nbytes, strict=True):
        if (needed := t.untyped_storage().nbytes()) > there:
            raise Refusal(
                f"The last element would end at byte {needed} of a storage of {there} bytes.",
                "Take smaller sizes, strides or offset.",
                raises=RuntimeError,
            )


def _without_ones(shape: Ints) -> Ints:
    """The shape without leading dimensions of size 1, which an assignment ignores."""
    return tuple(dropwhile(lambda size: size == 1, shape))


def _check_overlap(x: Layout, others: Sequence[Term]) -> None:
    """Raises Refusal if `x`, which is written to, shares cells with another operand in another
    order (`at::get_overlap_status`)."""
    for y in (term.layout for term in others):
        if x.memory != y.memory or not (x.is_dense and y.is_dense and x.numel and y.numel):
            continue
        x_start, y_start = x.offset * x.dtype.itemsize, y.offset * y.dtype.itemsize
        x_end, y_end = x_start + x.nbytes, y_start + y.nbytes
        same = (x_start, x_end, x.stride) == (y_start, y_end, y.stride)
        if not same and x_start < y_end and y_start < x_end:
            raise Refusal(
                "Some cells would be read after they were written: both operands lie over the same"
                " memory in a different order.",
                "clone() one of them first.",
                raises=RuntimeError,
            )


def _error_on_meta(step: Step) -> Exception | None:
    """torch's error for tensors of the same layouts on the meta device. Fake mode has other code
    for views, which accepts some mistakes, and its errors have other words."""

    def blank(term: Term) -> torch.Tensor:
        x = term.layout
        cells = torch.empty(x.offset + x.extent(), dtype=x.dtype, device="meta")
        return cells.as_strided(x.shape, x.stride, x.offset)

    with torch.no_grad(), without_side_effects():
        try:
            step.run(*with_terms(list(step.args), blank), **with_terms(dict(step.kwargs), blank))
        except Exception as error:  # torch raises errors of many types
            return error
    return None


def _unseen_error(step: Step) -> Exception | None:
    """torch's error about dtypes, or about elements that share a cell, which fake mode does not
    check. The operation is tried on tensors of at most two elements a dimension."""
    if any(term.layout.device != "cpu" for term in step.operands):
        return None

    def few(term: Term) -> torch.Tensor:
        sizes = [min(size, 2) for size in term.layout.shape]
        pairs = zip(sizes, term.layout.stride, strict=True)
        cells = [size if stride else 1 for size, stride in pairs]
        return torch.ones(cells, dtype=term.layout.dtype).expand(sizes)

    def run() -> Any:
        return step.run(*with_terms(list(step.args), few), **with_terms(dict(step.kwargs), few))

    with torch.no_grad(), without_side_effects():
        try:
            with fake_mode():
                given = run()
        except Exception:  # the operation refuses these sizes: nothing is known
            return None
        tensors = given if isinstance(given, tuple | list) else (given,)
        if sum(t.numel() for t in tensors if isinstance(t, torch.Tensor)) > SMALL:
            return None
        try:
            run()
        except Exception as error:  # other errors may come from the small sizes
            return error if _UNSEEN.search(str(error)) else None
    return None
