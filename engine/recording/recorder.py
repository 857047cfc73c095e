"""Records what torch runs: modules, functions and operators, with the nodes that each made.

```python
with Recorder() as recorder:
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
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from ..system.private_torch import next_sequence
from ..system.user_files import UsersFrames, is_user_file
from .argument_values import Keeper
from .call_names import op_name
from .executed_lines import CUT_NOTE, LineRecorder
from .gradient_cuts import GradientCuts
from .modes import FunctionMode, OperatorMode, custom_functions
from .module_paths import ModulePaths, NameOf
from .open_calls import OpenCalls
from .recording import Call, Kind, Place, Recording, Slot
from .statement_counts import StatementCounts
from .tensor_arguments import (
    given_tensors,
    in_order,
    tensor_arguments,
    tensors_of,
    written,
)
from .writes import Given, Watch

MAX_CALLS = 50_000


class _Begun(NamedTuple):
    """A function that is running. `call` is None where no more are recorded."""

    call: Call | None
    given: Given


class Recorder:
    """A context manager that records what this thread runs. Entered again, it goes on recording.

    The recording has everything: modules, functions and operators, their arguments and results as
    they were (up to `max_calls` calls and the keeper's bytes; `recording.notes` says what is
    missing). Operators are seen by a TorchDispatchMode, under which torch takes `view` in place of
    `_reshape_alias` for a reshape inside C++: the same numbers, another node's name.
    LightRecorder records less.

    `modules` names modules: a mapping, or a function that returns "" for a module it does not know
    (which is then named after the module around it, or by its class). `files` tells the user's
    own source files. With `counts` each line of these files that runs is a call too, around what
    it runs, numbered by how often it ran. Other threads are not seen, nor what NumPy writes into
    a tensor's memory.
    """

    def __init__(
        self,
        modules: Mapping[nn.Module, str] | NameOf | None = None,
        files: Callable[[str], bool] = is_user_file,
        *,
        watch: Watch | None = None,
        cuts: GradientCuts | None = None,
        keeper: Keeper | None = None,
        counts: StatementCounts | None = None,
        max_calls: int = MAX_CALLS,
    ) -> None:
        self.recording = Recording()
        self.keeper = keeper or Keeper()
        self.cuts = cuts or GradientCuts()
        self._counts = counts
        self._lines: LineRecorder | None = None
        if counts is not None:
            counts.watcher = self._lines = LineRecorder(self)
        self.place: Place | None = None
        """The place of calls that no line of the user's code runs."""
        self._watch = watch
        self._frames = UsersFrames(files)
        self._paths = ModulePaths(modules, self.recording.classes, self._frames.innermost)
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
        call = self._begin("module", title)
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
        self.quiet = True
        with torch.DisableTorchFunction():
            ordered = in_order(getattr(name, "__name__", ""), kwargs) if kwargs else kwargs
            given = given_tensors(args, ordered or kwargs)
            title = name if isinstance(name, str) else op_name(name, args)
            call = self._begin("function", title, name, args, kwargs)
        self.quiet = False
        return _Begun(call, given)

    def end_function(
        self, begun: _Begun, name: str | Callable, args: tuple, result: object
    ) -> None:
        self.quiet = True
        with torch.DisableTorchFunction():
            if self._watch is not None and begun.given and not isinstance(name, str):
                self._watch.after(name, args, begun.given, result)
            self._end(begun.call, result)
            if begun.call is not None and isinstance(name, str):
                begun.call.slots = self._slots(begun.given)
        self.quiet = False

    def fail_function(self, begun: _Begun, error: BaseException) -> None:
        self.quiet = False
        self._fail(begun.call, error)
        self._end(begun.call)

    # -- operators ---------------------------------------------------------------------------------

    def begin_op(self, func: Any, args: tuple, kwargs: dict[str, Any]) -> Call | None:
        self.quiet = True
        with torch.DisableTorchFunction():
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
        with torch.DisableTorchFunction():
            given: Given = [(t, None, t.requires_grad) for t in tensors_of(args, kwargs)]
            self._note_cuts(func.name().split(".")[0], given, result)
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
        with torch.DisableTorchFunction():
            self._paths.enter(module)
            self._begin("module", type(module).__name__, None, args, {})
        self.quiet = False

    def _after_module(self, module: nn.Module, args: tuple, result: object) -> None:
        if torch.compiler.is_compiling() or threading.get_ident() != self._thread:
            return
        self._paths.leave(module)
        self.quiet = True
        with torch.DisableTorchFunction():
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
        frame = self._frames.innermost()
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

    def _note_cuts(self, name: str, given: Given, result: object) -> None:
        for t in result if type(result) in (tuple, list) else (result,):  # pyright: ignore
            if isinstance(t, Tensor) and not t.requires_grad:
                self.cuts.note_result(name, given, t, self._place)

    def _place(self) -> Place | None:
        """The innermost line of the user's code that is running."""
        return self._frames.place() or self.place

    def note(self, text: str) -> None:
        """Add `text`, which says what the recording lacks, to its notes, once."""
        if text not in self.recording.notes:
            self.recording.notes.append(text)
