"""Calls of modules that repeat. A module that a loop calls with tensors of the same shapes is
looked into at first and now and then. Of its other calls the nodes are counted, and what they ran
is told from a call that was looked into.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Any
from weakref import ref

import torch
from msgspec.structs import replace
from torch import Tensor, nn

from ...system.private_torch import next_sequence
from ..argument_values import TINY_ELEMENTS, tiny_values
from ..gradient_cuts import GradientCuts
from ..recording import Place
from ..remembered import Remembered
from ..writes import Making, Watch, Written, version_of
from .patterns import Alike, Noted, Pattern, Repeat, Result

WHOLE_CALLS = 8
"""The calls of one kind that are looked into before the first one that is not."""
EVERY = 128
"""After those, one call in this many is looked into, unless `looks` says which ones matter."""
MAX_KEYS = 64
"""Ways to call a module that are told apart. What is called in more ways is always looked into."""
MAX_MISSES = 3
"""A module whose calls differed this often from what was expected is always looked into."""
MAX_NODES = 5_000
"""The most nodes of one call. torch frees nodes that Python has touched by recursion: this many do
not overflow the stack."""
MAX_DEPTH = 4
_NESTING = (tuple, list, dict)


@dataclass(eq=False, slots=True)
class Whole:
    """A call that is looked into."""

    alike: Alike
    first: int
    noted_before: tuple[int, int]
    steps_before: int
    given: list[tuple[Tensor, int | None]]
    written: list[Written]


class Repeats:
    """Decides which calls are looked into, learns from these, and notes the others in `noted`.

    A call is always looked into if its module computes results of a few numbers, keeps tensors from
    one call to the next, writes to its arguments, steps an optimizer, has hooks, is compiled, or
    returns other things than tensors in tuples, lists and dicts. `looks`: whether someone wants
    the calls that run now.
    """

    def __init__(
        self,
        noted: deque[Repeat],
        cuts: GradientCuts,
        watch: Watch | None,
        looks: Callable[[], bool] | None,
    ) -> None:
        self.noted = noted
        self.is_running = False
        """Whether a call runs that is not looked into."""
        self._cuts, self._watch, self._looks = cuts, watch, looks
        self._alike = Remembered[dict[Hashable, Alike]]()

    def begin(
        self, module: nn.Module, place: Place | None, args: tuple, kwargs: dict[str, Any]
    ) -> tuple[Alike, list[Tensor], Repeat | None] | None:
        """The calls that this one is like, the tensors among its arguments, and its note if it need
        not be looked into; None for a call that cannot be compared. No mode may be on.

        After a call that is noted, also if it has raised, the `end` of its note is to be set, and
        it is no longer running."""
        found = self._alike.values.get(id(module))  # as `get`, without a call
        if found is not None and found[0]() is module:
            known = found[1]
        else:
            known = {}
            self._alike.set(module, known)
        given: list[Tensor] = []
        try:
            if len(args) == 1 and type(args[0]) is Tensor and not kwargs:  # what runs most
                given = [args[0]]
                kinds = args[0].shape, args[0].dtype, args[0].requires_grad
            else:
                kinds = *[_kind(each, given) for each in args], _kind(kwargs, given)
            key = place, module.training, torch.is_grad_enabled(), kinds
            alike = known.get(key)
        except (_OtherTensor, TypeError):
            return None
        if alike is None:
            if len(known) >= MAX_KEYS:
                return None
            alike = known[key] = Alike(type(module).__name__, place)
            alike.is_unfit = any(map(_is_special, module.modules()))
        if alike.is_unfit:
            return None
        alike.calls += 1
        pattern = alike.pattern
        if pattern is None or alike.calls <= WHOLE_CALLS:
            return alike, given, None
        if self._looks() if self._looks is not None else alike.calls % EVERY == 0:
            return alike, given, None
        repeat = Repeat(alike, pattern, tuple(map(ref, given)), next_sequence(), self._cuts)
        self.noted.append(repeat)
        self.is_running = True
        return alike, given, repeat

    def end(self, repeat: Repeat, given: list[Tensor], result: object) -> None:
        """The noted call has returned `result`."""
        alike, pattern = repeat.alike, repeat.pattern
        if repeat.end - repeat.first == pattern.plain_nodes and type(result) is Tensor:  # most do
            if pattern.made is not None and self._watch is not None:
                self._watch.remember(result, pattern.made)
            return
        results = [result] if type(result) is Tensor else _tensors(result)
        nodes = pattern.end - pattern.first
        if repeat.end - repeat.first != nodes or len(results) != len(pattern.results):
            alike.calls, alike.pattern, alike.misses = 0, None, alike.misses + 1
            alike.is_unfit = alike.misses >= MAX_MISSES
            return
        if pattern.written and self._watch is not None:
            self._watch.wrote_again(alike, pattern.written)
        for t, known in zip(results, pattern.results, strict=True):
            cut = known.cut
            if cut is not None:
                if known.is_cut_here:
                    cut = replace(cut, tensor=ref(t))
                self._cuts.know(t, cut)
            if known.made is not None and self._watch is not None:
                self._watch.made_again(t, known.made, [*given, *results])
            if known.is_tiny and (tiny := tiny_values(t)) is not None:
                repeat.tiny = (*repeat.tiny, (t.grad_fn._sequence_nr(), tiny))  # pyright: ignore

    def begin_whole(
        self, alike: Alike, given: list[Tensor], noted: tuple[int, int], steps: int
    ) -> Whole:
        versions = [(t, version_of(t)) for t in given]
        whole = Whole(alike, next_sequence(), noted, steps, versions, [])
        if self._watch is not None:
            self._watch.written = whole.written
        return whole

    def learn(
        self,
        whole: Whole,
        module: nn.Module,
        path: str,
        noted: list[Noted] | None,
        steps: int,
        result: object,
    ) -> None:
        """The call has returned. `noted` is what was noted in it; None if not all of it is left."""
        alike, first, end = whole.alike, whole.first, next_sequence()
        known = alike.pattern if alike.calls > WHOLE_CALLS else None
        if noted is None or (known is not None and known.is_of(end - first, noted)):
            return
        results = _tensors(result)
        before, alike.state = alike.state, tuple(map(ref, _tensors_held(module)))
        is_steady = before is None or (
            len(before) == len(alike.state)
            and all(old() is new() for old, new in zip(before, alike.state, strict=True))
        )
        nodes = {t.grad_fn._sequence_nr() for t in results if t.grad_fn is not None}
        if (
            not is_steady
            or steps != whole.steps_before
            or not _is_plain(result)
            or end - first > MAX_NODES
            or any(version_of(t) != version for t, version in whole.given)
            or any(each[6] is not None and each[1] - 1 not in nodes for each in noted)
            or any(map(_is_special, module.modules()))
        ):
            alike.pattern, alike.is_unfit = None, True
            return
        given = [t for t, _ in whole.given]
        written = [each for each in whole.written if each.tensor() is not None]
        returned = tuple(self._result(t, given, results) for t in results)
        made = returned[0].made if returned else None
        made = made if isinstance(made, Making) else None
        is_plain = returned == (Result(made),) and not written
        alike.pattern = Pattern(
            first,
            end,
            path,
            sorted(noted, key=itemgetter(0)),
            tuple(None if t.requires_grad else self._cuts.why(t) for t in given),
            _kinds(results, first, end),
            returned,
            written,
            end - first if is_plain else -1,
            made,
        )

    def _result(self, t: Tensor, given: list[Tensor], results: list[Tensor]) -> Result:
        if any(t is each for each in given):
            return Result()
        made = None if self._watch is None else self._watch.making_of(t, [*given, *results])
        if t.requires_grad:
            return Result(made, is_tiny=t.numel() <= TINY_ELEMENTS and t.grad_fn is not None)
        cut = self._cuts.why(t)
        return Result(made, cut, cut.tensor() is t)


class _OtherTensor(Exception):
    """A tensor of another class: to ask for its shape may run code of the user."""


def _kind(value: object, given: list[Tensor], depth: int = MAX_DEPTH) -> Hashable:
    """The facts of an argument that are the same in two calls that are alike. `given` gets its
    tensors."""
    kind = type(value)
    if kind is Tensor or kind is nn.Parameter:
        given.append(value)  # pyright: ignore[reportArgumentType]
        return value.shape, value.dtype, value.requires_grad  # pyright: ignore
    if kind is bool or kind is str or value is None:
        return value
    if issubclass(kind, Tensor):
        raise _OtherTensor
    if depth and issubclass(kind, _NESTING):
        parts = value.items() if isinstance(value, dict) else value
        return kind, *[_kind(each, given, depth - 1) for each in parts]  # pyright: ignore
    return kind


def _tensors(value: object) -> list[Tensor]:
    """The tensors in nested tuples, lists and dicts."""
    kind = type(value)
    if issubclass(kind, Tensor):
        return [value]  # pyright: ignore[reportReturnType]
    if kind in _NESTING or issubclass(kind, _NESTING):
        parts = value.values() if isinstance(value, dict) else value
        return [t for each in parts for t in _tensors(each)]  # pyright: ignore
    return []


def _is_plain(value: object) -> bool:
    """Whether `_tensors` finds all tensors in it."""
    kind = type(value)
    if kind is Tensor or kind is nn.Parameter or value is None or kind in (bool, int, float, str):
        return True
    if issubclass(kind, _NESTING):
        return all(map(_is_plain, value.values() if isinstance(value, dict) else value))  # pyright: ignore
    return False


def _is_special(module: nn.Module) -> bool:
    """Whether it is compiled, or has hooks, which may keep what they see."""
    return (
        module._compiled_call_impl is not None
        or "_orig_mod" in module._modules
        or bool(module._forward_hooks or module._forward_pre_hooks)
    )


def _tensors_held(module: nn.Module) -> Iterator[Tensor]:
    """The tensors that it and its parts hold, but for parameters."""
    for each in module.modules():
        for value in vars(each).values():  # its buffers are in one of them
            if type(value) is Tensor:
                yield value
            elif type(value) in (list, tuple, dict) and len(value) <= 100:
                yield from (t for t in _tensors(value) if type(t) is Tensor)


def _kinds(results: Iterable[Tensor], first: int, end: int) -> dict[int, str]:
    """The names of the nodes with the numbers from `first` to before `end`, by their place."""
    waiting = [t.grad_fn for t in results if t.grad_fn is not None]
    seen = set(waiting)
    kinds: dict[int, str] = {}
    while waiting:
        node = waiting.pop()
        number = node._sequence_nr()
        if not first <= number < end:
            continue
        kinds[number - first] = node.name()
        for each, _ in node.next_functions:
            if each is not None and each not in seen:
                seen.add(each)
                waiting.append(each)
    return kinds
