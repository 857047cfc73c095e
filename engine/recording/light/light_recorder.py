"""Records what a cell runs at little cost: which torch functions made nodes, where gradients end,
what was written.

Noted is the least from which the rest can be told when a view asks for it.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ...system.private_torch import next_sequence
from ...system.user_files import UsersFrames, is_user_file
from ..argument_values import TINY_ELEMENTS, tiny_values
from ..call_names import op_name
from ..compiled import never_compiled
from ..gradient_cuts import GradientCuts
from ..kernel_asserts import checks
from ..modes import LightMode, Told, custom_functions
from ..module_paths import ModulePaths, NameOf
from ..recording import Place, Slot
from ..tensor_arguments import Given, given_tensors, in_order, is_tensor, statistics
from ..writes import SHARING, Watch, version_of
from .library_modules import module_calls
from .light_recording import FIRST_TURNS, LightRecording
from .patterns import Alike
from .pauses import training_unseen
from .repeats import Repeats, Whole

MAX_CALLS = 50_000

_NAMED_BY_ARGUMENTS = (Tensor.__getitem__, Tensor.__setitem__)


class Begun(NamedTuple):
    """A function that is running. `in_order`: `given` is in the order of its parameters."""

    given: Given
    in_order: bool
    first: int


class LightRecorder:
    """A context manager that records what this thread runs, at a few us per torch function.

    `recording` has the torch functions that made nodes, of a long loop the first turns and the
    last, with the numbers of results of a few elements. No tensor is kept alive, and nothing that
    runs is changed. What an optimizer of torch or a package runs is not seen; `watch` is told of
    its step. Other threads are not seen.

    `modules` names modules, as it does for a Recorder; `files` tells the user's own source files.
    `watch` and `cuts` remember what wrote to tensors and why they require no grad. The
    functions of `told` have each call of theirs that returns told, except inside of a module that
    repeats (see `Repeats`) while `looks` returns False.
    """

    def __init__(
        self,
        modules: Mapping[nn.Module, str] | NameOf | None = None,
        files: Callable[[str], bool] = is_user_file,
        *,
        watch: Watch | None = None,
        cuts: GradientCuts | None = None,
        told: Told | None = None,
        looks: Callable[[], bool] | None = None,
        max_calls: int = MAX_CALLS,
    ) -> None:
        self.recording = LightRecording(max_calls)
        self._told = {} if told is None else told
        self._noted = self.recording.noted
        self._names: dict[Callable, str] = {}
        self._cuts = cuts or GradientCuts()
        self._watch = watch
        self.frames = UsersFrames(files)
        self._is_user_file = files
        self._paths = ModulePaths(modules, self.recording.classes, self.frames.innermost)
        self.running = self._paths.running
        self._steps = 0
        self._last_step: tuple[weakref.ref[torch.optim.Optimizer] | None, Place | None] = None, None
        self.repeats = Repeats(self.recording.repeats, self._cuts, watch, looks)
        self.checks = checks()
        self._entered = ExitStack()

    def __enter__(self) -> LightRecorder:
        with ExitStack() as stack:
            mode = LightMode(self, self._told, self.running, self.checks)
            stack.enter_context(mode)
            stack.enter_context(module_calls(self, mode))
            stack.enter_context(custom_functions(self, unless=lambda: self.repeats.is_running))
            stack.enter_context(training_unseen(mode, self._is_user_file, self._stepped))
            self._entered = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self._entered.__exit__(*error)
        self._paths.clear()
        self.recording.end = next_sequence()
        self._cuts.forget_the_dead()
        if self.recording.is_folded:
            self.recording.notes.append(
                f"Of lines that ran often, the first {FIRST_TURNS} turns and the newest"
                f" {len(self._noted):,} calls are remembered."
            )

    # -- told by the modes -------------------------------------------------------------------------

    @never_compiled
    def begin_function(self, name: str | Callable, args: tuple, kwargs: dict[str, Any]) -> Begun:
        """`name` is the function, or its name where torch shows it to no mode."""
        ordered = in_order(getattr(name, "__name__", ""), kwargs) if kwargs else kwargs
        given = given_tensors(args, kwargs if ordered is None else ordered)
        return Begun(given, ordered is not None, next_sequence())

    @never_compiled
    def end_function(self, begun: Begun, name: str | Callable, args: tuple, result: object) -> None:
        given, _, first = begun
        end = next_sequence()
        if end != first:
            self._note(name, args, begun, end, result)
        for t, version, _ in given:
            if version_of(t) != version and self._watch is not None and not isinstance(name, str):
                self._watch.wrote(t, name, args)
        if is_tensor(result):
            self._end_result(given, name, args, result)  # pyright: ignore[reportArgumentType]
        elif type(result) in (tuple, list):
            for t in result:  # pyright: ignore[reportGeneralTypeIssues]
                if is_tensor(t):
                    self._end_result(given, name, args, t)

    @never_compiled
    def ran(self, func: Callable, args: tuple, given: Given, first: int, result: object) -> None:
        """As `end_function`, in one frame for what runs most."""
        end = next_sequence()
        if type(result) is not Tensor or func in _NAMED_BY_ARGUMENTS:
            self.end_function(Begun(given, True, first), func, args, result)
            return
        name, place = self._names.get(func), None
        if name is None:
            name = self._names[func] = sys.intern(op_name(func))
        if end != first:
            slots: tuple[Slot, ...] = ()
            for each in given:
                if not each[2]:
                    slots = self._slots(func, args, given)
                    break
            is_tiny = end - first == 1 and result.numel() <= TINY_ELEMENTS
            tiny = tiny_values(result) if is_tiny else None
            path, place = self._paths.current, self.frames.place(2)
            self._noted.append((first, end, name, path, place, slots, tiny))
            if len(self._noted) >= self.recording.max_calls:
                self.recording.fold()
        for t, version, _ in given:
            if version is not None and t._version != version and self._watch is not None:
                self._watch.wrote(t, func, args)
        if not result.requires_grad:
            self._end_result(given, func, args, result)
        elif (
            given
            and self._watch is not None
            and result._is_view()
            and all(result is not other for other, _, _ in given)
        ):
            self._watch.viewed(result, given[0][0], name, place)

    @never_compiled
    def fail_function(self, begun: Begun, error: BaseException) -> None:
        """What raised has made nothing."""

    def enter_module(self, module: nn.Module) -> None:
        self._paths.enter(module)

    def leave_module(self, module: nn.Module) -> None:
        self._paths.leave(module)
        if self._watch is not None and not self.running:
            self._watch.written = None

    def begin_whole(self, alike: Alike, given: list[Tensor]) -> Whole:
        recording = self.recording
        before = recording.dropped, len(self._noted)
        return self.repeats.begin_whole(alike, given, before, self._steps)

    def learn(self, whole: Whole, module: nn.Module, result: object) -> None:
        dropped, count = whole.noted_before
        noted = self._noted[count:] if dropped == self.recording.dropped else None
        with torch.DisableTorchFunction():
            path = self._paths.current
            self.repeats.learn(whole, module, path, noted, self._steps, result)

    @never_compiled
    def ran_one(
        self, module: nn.Module, func: Callable, args: tuple, first: int, result: object
    ) -> None:
        if func in self._told:
            self._told[func](func, args, {}, result, (*self.running, module))
        end = next_sequence()
        if end == first or type(result) is not Tensor or not result.requires_grad:
            self._paths.enter(module)
            self.end_function(Begun(given_tensors(args, {}), True, first), func, args, result)
            self._paths.leave(module)
            return
        slots: tuple[Slot, ...] = ()
        for t in args:
            if t is not None and not t.requires_grad:
                cuts = self._cuts
                for each in args:  # a comprehension is a function of its own, which takes longer
                    if each is not None:
                        slots = (*slots, each.requires_grad or cuts.why(each))
                break
        is_tiny = end - first == 1 and result.numel() <= TINY_ELEMENTS
        tiny = tiny_values(result) if is_tiny else None
        path, place = self._paths.of(module), self.frames.place(3)
        self._noted.append((first, end, func.__name__, path, place, slots, tiny))
        if len(self._noted) >= self.recording.max_calls:
            self.recording.fold()

    # -- what a call is noted for ------------------------------------------------------------------

    def _note(
        self, func: str | Callable, args: tuple, begun: Begun, end: int, result: object
    ) -> None:
        given, is_in_order, first = begun
        slots: tuple[Slot, ...] = ()
        for _, _, required in given:
            if not required:
                slots = self._slots(func, args, given) if is_in_order else ()
                break
        name = func if isinstance(func, str) else op_name(func, args)
        # If it made one node, this node made the result.
        tiny = tiny_values(result) if end - first == 1 else None
        path, place = self._paths.current, self.frames.place()
        self._noted.append((first, end, sys.intern(name), path, place, slots, tiny))
        if len(self._noted) >= self.recording.max_calls:
            self.recording.fold()

    def _slots(self, func: str | Callable, args: tuple, given: Given) -> tuple[Slot, ...]:
        if left_out := [id(t) for t in statistics(func, args)]:
            given = [each for each in given if id(each[0]) not in left_out]
        if all(required for _, _, required in given):
            return ()
        return tuple(self._cuts.slot(t, required) for t, _, required in given)

    def _end_result(self, given: Given, func: str | Callable, args: tuple, t: Tensor) -> None:
        shares = t._is_view()
        if not t.requires_grad:
            name = func if isinstance(func, str) else op_name(func, args)
            self._cuts.note_result(name, given, t, self.frames.place)
            shares = shares or name in SHARING
        if not shares or not given or self._watch is None or isinstance(func, str):
            return
        if all(t is not other for other, _, _ in given):
            self._watch.made(t, given[0][0], func, args)

    def _stepped(self, optimizer: torch.optim.Optimizer) -> None:
        self._steps += 1
        if self._watch is None:
            return
        known, before = self._last_step
        place = self.frames.place(4)  # the hook and torch's wrapper of `step` are inside it
        if place is None or place is not before or known is None or known() is not optimizer:
            self._last_step = weakref.ref(optimizer), place
            self._watch.stepped(optimizer, place)
