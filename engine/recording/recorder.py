"""Records what torch runs: modules, functions and operators, with the nodes that each made.

```python
with Recorder(keep_values=True) as recorder:
    loss = net(x).square().mean()
for call in recorder.recording.chain_of(loss.grad_fn._sequence_nr()):
    print(call.kind, call.name, call.module, call.source)
```
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from .argument_values import Keeper, tiny_copy
from .executed_lines import CUT_NOTE, LineRecorder
from .gradient_cuts import GradientCuts
from .modes import FunctionMode, OperatorMode, custom_functions
from .module_paths import ModulePaths, NameOf
from .open_calls import OpenCalls, next_sequence
from .recording import Call, Kind, Place, Recording, Slot
from .statement_counts import StatementCounts
from .tensor_arguments import in_order, statistics, tensor_arguments, tensors_of, written
from .user_files import is_user_file
from .writes import op_name, version_of

MAX_CALLS = 50_000

Given = list[tuple[Tensor, int | None, bool]]
"""The tensors given to a call: each with its version and whether it required grad before."""


class Observer(Protocol):
    """An object that a Recorder calls after every torch function with tensor arguments."""

    def after(self, func: Callable, args: tuple, given: Given, result: object) -> None: ...


class _Begun(NamedTuple):
    """A function that is running. `call` is None in a light recording."""

    call: Call | None
    first: int
    given: Given
    in_order: bool = True
    """Whether `given` is in the order of the function's parameters."""


class Recorder:
    """A context manager that records what this thread runs. Entered again, it goes on recording.

    A light recording (the default) costs a few us per torch function, keeps no tensor alive and
    changes nothing: it has the newest `max_calls` torch functions that made nodes, with copies of
    results of a few elements. A recording
    with `keep_values` has everything: modules, functions and operators, their arguments and
    results as they were (up to `max_calls` calls and the keeper's bytes; `recording.notes` says
    what is missing). Operators are seen by a TorchDispatchMode, under which torch takes `view` in
    place of `_reshape_alias` for a reshape inside C++: the same numbers, another node's name.

    `modules` names modules: a mapping, or a function that returns "" for a module it does not know
    (which is then named after the module around it, or by its class). `files` tells the user's
    own source files. With `counts` each line of these files that runs is a call too, around what
    it runs, numbered by how often it ran. Other threads are not seen, nor what NumPy writes into
    a tensor's memory.
    """

    def __init__(
        self,
        keep_values: bool = False,
        modules: Mapping[nn.Module, str] | NameOf | None = None,
        files: Callable[[str], bool] = is_user_file,
        *,
        observer: Observer | None = None,
        cuts: GradientCuts | None = None,
        keeper: Keeper | None = None,
        counts: StatementCounts | None = None,
        max_calls: int = MAX_CALLS,
    ) -> None:
        self.keep_values = keep_values
        self.recording = Recording()
        self.keeper = keeper or Keeper()
        self.cuts = cuts or GradientCuts()
        self._counts = counts
        self._lines: LineRecorder | None = None
        if counts is not None:
            counts.watcher = self._lines = LineRecorder(self)
        self.place: Place | None = None
        """The place of calls that no line of the user's code runs."""
        self._observer = observer
        self._paths = ModulePaths(modules, self.recording.classes)
        self._is_user_file = files
        self._known_files: dict[str, bool] = {}
        self._open = OpenCalls(self.recording, max_calls)
        self._quiet = False
        self._thread = 0
        self._entered = ExitStack()

    @property
    def quiet(self) -> bool:
        """Our own code runs now, and is not recorded."""
        return self._quiet

    @quiet.setter
    def quiet(self, quiet: bool) -> None:
        self._quiet = quiet
        if self._counts is not None:
            self._counts.listen(not quiet)

    def __enter__(self) -> Recorder:
        self._thread = threading.get_ident()
        with ExitStack() as stack:
            before = register_module_forward_pre_hook(self._before_module)
            stack.callback(before.remove)
            after = register_module_forward_hook(self._after_module, always_call=True)
            stack.callback(after.remove)
            stack.enter_context(custom_functions(self))
            if self.keep_values:
                stack.enter_context(OperatorMode(self))
            stack.enter_context(FunctionMode(self))
            if self._counts is not None:
                stack.enter_context(self._counts)
            self._entered = stack.pop_all()
        self._open.start()
        self.quiet = False
        return self

    def __exit__(self, *error: Any) -> None:
        self._entered.__exit__(*error)
        self._open.clear()
        self._paths.clear()
        self.recording.end = next_sequence()
        self.keeper.forget_the_dead()
        self.cuts.forget_the_dead()
        if self.keeper.full:
            self.note(self.keeper.full_note)
        if self._counts is not None and self._counts.was_cut:
            self.note(CUT_NOTE)

    @contextmanager
    def scope(self, path: str, title: str) -> Iterator[None]:
        """Calls inside belong to `path`, as if a module of the class `title` ran them."""
        self._paths.enter_scope(path, title)
        call = self._begin("module", title) if self.keep_values else None
        try:
            yield
        except BaseException as error:
            self._fail(call, error)
            raise
        finally:
            self._paths.leave_scope()
            self._end(call)

    # -- torch functions ---------------------------------------------------------------------------

    def begin_function(self, name: str | Callable, args: tuple, kwargs: dict[str, Any]) -> _Begun:
        """`name` is the function, or its name where torch shows it to no mode."""
        call = None
        self.quiet = True
        with torch._C.DisableTorchFunction():
            ordered = in_order(getattr(name, "__name__", ""), kwargs) if kwargs else kwargs
            given = [
                (t, version_of(t), t.requires_grad) for t in tensors_of(args, ordered or kwargs)
            ]
            if self.keep_values:
                title = name if isinstance(name, str) else op_name(name, args)
                call = self._begin("function", title, name, args, kwargs)
        self.quiet = False
        return _Begun(call, next_sequence(), given, ordered is not None)

    def end_function(
        self, begun: _Begun, name: str | Callable, args: tuple, result: object
    ) -> None:
        end = next_sequence()
        self.quiet = True
        with torch._C.DisableTorchFunction():
            if self._observer is not None and begun.given and not isinstance(name, str):
                self._observer.after(name, args, begun.given, result)
            if self.keep_values:
                self._end(begun.call, result)
                if begun.call is not None and isinstance(name, str):
                    begun.call.slots = self._slots(begun.given)
            else:
                if end > begun.first:
                    self._add_light(name, args, begun, end, result)
                self._note_cuts(name, args, begun.given, result)
        self.quiet = False

    def fail_function(self, begun: _Begun, error: BaseException) -> None:
        self.quiet = False
        self._fail(begun.call, error)
        self._end(begun.call)

    def _add_light(
        self, name: str | Callable, args: tuple, begun: _Begun, end: int, result: object
    ) -> None:
        title = name if isinstance(name, str) else op_name(name, args)
        given = begun.given
        if left_out := [id(t) for t in statistics(name, args)]:
            given = [each for each in given if id(each[0]) not in left_out]
        slots = self._slots(given) if begun.in_order else ()
        path = self._paths.current
        recording = self.recording
        index = len(recording.calls)
        call = Call(index, -1, "function", title, path, self._place(), begun.first, end, slots)
        if call.end - call.first == 1:  # so it is the one node that made the result
            call.tiny = tiny_copy(result)
        recording.add(call)
        max_calls = self._open.max_calls
        if index + 1 >= 2 * max_calls:
            recording.trim(max_calls)
            self.note(f"Only the newest calls are remembered, at least {max_calls:,}.")

    # -- operators ---------------------------------------------------------------------------------

    def begin_op(self, func: Any, args: tuple, kwargs: dict[str, Any]) -> Call | None:
        self.quiet = True
        with torch._C.DisableTorchFunction():
            own = self._open.take_node(
                lambda: (
                    torch.is_grad_enabled()
                    and any(t.requires_grad for t in tensors_of(args, kwargs))
                )
            )
            call = self._begin("op", func.name(), func, args, kwargs)
            if call is not None:
                if own is not None:
                    call.first, call.end = own, own + 1
                    self.recording.made_by[own] = call.index
                    call.slots = tuple(
                        isinstance(t, Tensor) and self.cuts.slot(t, t.requires_grad)
                        for t in tensor_arguments(func, args, kwargs)
                    )
                if func._schema.is_mutable:
                    self._open.mark_write()
                    self.keeper.before_write(written(func, args, kwargs))
        self.quiet = False
        return call

    def end_op(
        self, call: Call | None, func: Any, args: tuple, kwargs: dict[str, Any], result: object
    ) -> None:
        if call is None:
            return
        self.quiet = True
        with torch._C.DisableTorchFunction():
            given: Given = [(t, None, t.requires_grad) for t in tensors_of(args, kwargs)]
            self._note_cuts(func.name().split(".")[0], args, given, result)
            self._end(call, result)
        self.quiet = False

    def fail_op(self, call: Call | None, error: BaseException) -> None:
        self._fail(call, error)
        self._end(call)

    # -- lines -------------------------------------------------------------------------------------

    @property
    def is_full(self) -> bool:
        """No more calls are recorded."""
        return self._open.is_full

    @contextmanager
    def unseen(self) -> Iterator[None]:
        """A context for code of ours that runs within a line of the user's: it is not recorded."""
        before, self._quiet = self._quiet, True
        try:
            yield
        finally:
            self._quiet = before

    def begin_line(
        self, frame: FrameType, turn: int, line: int, reads: dict[str, Any]
    ) -> Call | None:
        """`reads` are the names that the line reads, with their values kept."""
        call = self._new_call("line", "", (frame.f_code.co_filename, line), turn)
        if call is not None:
            call.kwargs = reads
        return call

    def end_line(self, call: Call, result: dict[str, Any]) -> None:
        """`result` are the names that the line bound or changed, with their values kept."""
        self._open.end(call)
        call.result = result

    def fail_line(self, call: Call, error: BaseException) -> None:
        """The line raised `error`. Whether it is caught is not known yet."""
        self._open.fail(call, error)

    # -- modules -----------------------------------------------------------------------------------

    def _before_module(self, module: nn.Module, args: tuple) -> None:
        if torch.compiler.is_compiling() or threading.get_ident() != self._thread:
            return
        self.quiet = True
        with torch._C.DisableTorchFunction():
            self._paths.enter(module)
            if self.keep_values:
                self._begin("module", type(module).__name__, None, args, {})
        self.quiet = False

    def _after_module(self, module: nn.Module, args: tuple, result: object) -> None:
        if torch.compiler.is_compiling() or threading.get_ident() != self._thread:
            return
        self._paths.leave(module)
        self.quiet = True
        with torch._C.DisableTorchFunction():
            call = self._open.innermost
            while call is not None and call.kind != "module":
                self._open.end(call)
                call = self._open.innermost
            error = sys.exc_info()[1]  # torch also calls this hook when forward has raised
            if result is None and error is not None:
                self._fail(call, error)
            self._end(call, result)
        self.quiet = False

    # -- calls of all kinds ----------------------------------------------------------------------

    def _begin(
        self,
        kind: Kind,
        name: str,
        func: Any = None,
        args: tuple = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Call | None:
        if self._open.is_full:
            return self._new_call(kind, name, None, 0)
        frame = self._users_frame()
        turn = 0
        if frame is not None and self._counts is not None and self._lines is not None:
            turn = self._counts.of(frame)
            self._open.close_inside(self._lines.begin_around(frame))
        place = self.place if frame is None else (frame.f_code.co_filename, frame.f_lineno)
        call = self._new_call(kind, name, place, turn)
        if call is not None:
            call.func = func
            call.args = self.keeper.values(args)
            call.kwargs = self.keeper.values(kwargs or {})
        return call

    def _new_call(self, kind: Kind, name: str, place: Place | None, turn: int) -> Call | None:
        if self._open.is_full:
            self.note(f"Only the first {self._open.max_calls:,} calls are recorded.")
            return None
        return self._open.begin(kind, name, self._paths.current, place, turn)

    def _end(self, call: Call | None, result: object = None) -> None:
        if call is not None:
            self._open.end(call)
            call.result = self.keeper.values(result)

    def _fail(self, call: Call | None, error: BaseException) -> None:
        if call is not None:
            self._open.fail(call, error)

    def _slots(self, given: Given) -> tuple[Slot, ...]:
        if all(required for _, _, required in given):
            return ()
        return tuple(self.cuts.slot(t, required) for t, _, required in given)

    def _note_cuts(self, name: str | Callable, args: tuple, given: Given, result: object) -> None:
        for t in result if type(result) in (tuple, list) else (result,):  # pyright: ignore
            if isinstance(t, Tensor) and not t.requires_grad:
                pairs = [(arg, required) for arg, _, required in given]
                title = name if isinstance(name, str) else op_name(name, args)
                self.cuts.note_result(title, pairs, t, self._place())

    def _place(self) -> Place | None:
        """The innermost line of the user's code that is running."""
        frame = self._users_frame()
        return self.place if frame is None else (frame.f_code.co_filename, frame.f_lineno)

    def _users_frame(self) -> FrameType | None:
        frame = sys._getframe(1)
        known = self._known_files
        while frame is not None:
            file = frame.f_code.co_filename
            is_users = known.get(file)
            if is_users is None:
                is_users = known[file] = self._is_user_file(file)
            if is_users:
                return frame
            frame = frame.f_back
        return None

    def note(self, text: str) -> None:
        """Add `text`, which says what the recording lacks, to its notes, once."""
        if text not in self.recording.notes:
            self.recording.notes.append(text)
